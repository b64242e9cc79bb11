from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_laptop.aws.control_plane.cloud import in_background, open_cloud
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status

if TYPE_CHECKING:
    from pathlib import Path


def test_a_defect_in_a_change_fails_the_record_so_that_nobody_waits_for_it_for_ever(tmp_path: Path) -> None:
    cloud = open_cloud(tmp_path, {})
    record = cloud.store.add(Record(Kind.ENDPOINT, "chat", {}, status=Status.UPDATING))

    def defect() -> None:
        raise KeyError("EndpointConfigName")

    in_background(cloud, record, defect, name="update-chat").join()
    failed = cloud.store.need(Kind.ENDPOINT, "chat")
    assert failed.status is Status.FAILED
    assert failed.failure_reason == "InternalFailure: KeyError: 'EndpointConfigName'"
