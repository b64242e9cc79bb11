from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.local.aws.control_plane.containers import ContainerSpec
from seatrial.local.aws.runtime.copy_process import CopyFailed
from seatrial.local.aws.runtime.running_copies import Place, RunningCopies

if TYPE_CHECKING:
    from pathlib import Path


def test_a_process_that_can_not_be_started_fails_its_copy_and_nothing_waits_for_it(tmp_path: Path) -> None:
    running = RunningCopies(tmp_path, {}, lambda _place, _why: None)  # its folder of logs does not exist
    with pytest.raises(CopyFailed, match=r"The container's process could not be started: .*No such file or directory"):
        running.launch(Place("chat"), ContainerSpec(image="djl-inference"), 1)
