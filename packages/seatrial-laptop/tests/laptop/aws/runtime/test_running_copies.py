from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_laptop.aws.control_plane.cloud import in_background, open_cloud
from seatrial_laptop.aws.control_plane.containers import ContainerSpec
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status
from seatrial_laptop.aws.runtime.running_copies import CopyFailed, CopyPlace, RunningCopies

if TYPE_CHECKING:
    from pathlib import Path


def test_a_process_that_can_not_be_started_fails_its_copy_and_nothing_waits_for_it(tmp_path: Path) -> None:
    running = RunningCopies(tmp_path, {}, lambda _place, _why: None)  # its folder of logs does not exist
    with pytest.raises(CopyFailed, match=r"The container's process could not be started: .*No such file or directory"):
        running.launch(CopyPlace("chat"), ContainerSpec(image="djl-inference"), 1)


def test_a_defect_in_a_change_fails_the_record_so_that_nobody_waits_for_it_for_ever(tmp_path: Path) -> None:
    cloud = open_cloud(tmp_path, {})
    record = cloud.store.add(Record(Kind.ENDPOINT, "chat", {}, status=Status.UPDATING))

    def defect() -> None:
        raise KeyError("EndpointConfigName")

    in_background(cloud, record, defect, name="update-chat").join()
    failed = cloud.store.need(Kind.ENDPOINT, "chat")
    assert failed.status is Status.FAILED
    assert failed.failure_reason == "InternalFailure: KeyError: 'EndpointConfigName'"
