"""One demo at a time in a checkout, and nothing started where it can't work."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import LocalError
from seatrial_base.files import hold_file_lock
from seatrial_laptop import lifecycle
from seatrial_laptop.demo import workspace as disk
from seatrial_laptop.demo.workspace import check_machine, clear_scratch, disk_failures, only_demo, renew, workspace_of

if TYPE_CHECKING:
    from seatrial_laptop.demo.workspace import Workspace

HOLD = """
import sys
from pathlib import Path
from seatrial_laptop.demo.workspace import only_demo, workspace_of
with only_demo(workspace_of(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def full_disk() -> Path:
    """Return a device that refuses every write as a full disk does."""
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("this system has no /dev/full")
    return device


class TestASecondDemo:
    def test_is_refused_with_the_process_of_the_first_and_touches_nothing(self, workspace: Workspace) -> None:
        report = workspace.folder / "reports" / "report.html"
        report.parent.mkdir(parents=True)
        report.touch()
        holder = [sys.executable, "-c", HOLD, str(workspace.root)]
        with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == "held\n"
            with pytest.raises(LocalError) as refused, only_demo(workspace):
                pass
            first.communicate("")
        assert str(refused.value) == (
            f"{workspace.folder}: SEA611: another demo runs in this checkout (process {first.pid})\n"
            "  hint: wait until it ends, or use another checkout"
        )
        assert report.exists()

    def test_may_run_when_the_first_has_ended_however_it_did(self, workspace: Workspace) -> None:
        holder = [sys.executable, "-c", HOLD, str(workspace.root)]
        with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == "held\n"
            first.kill()
            first.wait()
        with only_demo(workspace):
            assert (workspace.folder.parent / "demo.lock").read_text() == f"{os.getpid()}\n"


def test_what_a_killed_demo_left_running_is_stopped_before_its_folder_goes(workspace: Workspace) -> None:
    left = lifecycle.start_embedded_aws(state_dir=workspace.aws)
    renew(workspace)
    assert not workspace.aws.exists()
    port = int(left.endpoint_url.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass


def test_a_fresh_folder_holds_the_spec_and_the_environments_only(workspace: Workspace) -> None:
    (workspace.folder / "reports").mkdir(parents=True)
    renew(workspace)
    assert sorted(path.name for path in workspace.folder.rglob("*") if path.is_file()) == [
        "llama-2-7b-chat.yaml",
        "local.yaml",
    ]


def test_temporary_files_go_and_logs_stay(workspace: Workspace) -> None:
    renew(workspace)
    (workspace.scratch / "jsii-kernel").mkdir()
    (workspace.aws / "tmp" / "function").mkdir(parents=True)
    (workspace.folder / "tools.log").touch()
    clear_scratch(workspace)
    assert not workspace.scratch.exists()
    assert not (workspace.aws / "tmp").exists()
    assert (workspace.folder / "tools.log").exists()


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalError) as refused:
        workspace_of(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: SEA606: app.py, cdk.json, endpoints/llama-2-7b-chat.yaml not found\n"
        "  hint: run the demo in a checkout of the repository"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_checkout_that_cannot_be_written_is_refused(workspace: Workspace) -> None:
    (workspace.root / ".seatrial").touch()  # no folder can be made here, not even by root
    with pytest.raises(LocalError) as refused, only_demo(workspace):
        pass
    assert str(refused.value) == (
        f"{workspace.root / '.seatrial'}: SEA612: File exists\n"
        "  hint: the demo needs write access and free space in .seatrial of the checkout"
    )


def test_every_folder_that_cannot_be_written_is_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    home = workspace.root / "app.py"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    hint = "set HOME and XDG_CACHE_HOME to writable folders"
    with pytest.raises(LocalError) as refused:
        check_machine(workspace)
    assert str(refused.value) == (
        f"{home}: SEA612: can't be written: File exists\n  hint: {hint}\n"
        f"{home}/.cache/seatrial: SEA612: can't be written: Not a directory\n  hint: {hint}"
    )


def test_a_disk_without_room_is_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "NEEDED_BYTES", 2**80)
    with pytest.raises(LocalError, match=r"SEA612: \d+ MiB free; the demo needs 1152921504606846976 MiB"):
        check_machine(workspace)


def test_a_full_disk_refuses_the_lock_at_its_write_and_not_again_at_its_end(full_disk: Path) -> None:
    lock = hold_file_lock(full_disk)
    assert lock is not None
    with lock as file, pytest.raises(OSError, match="No space left on device"):
        file.write(b"1")


def test_a_disk_that_gets_full_is_told_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(LocalError) as told, disk_failures(tmp_path):
        raise OSError(28, "No space left on device", "cdk.out/manifest.json")
    assert str(told.value) == (
        "cdk.out/manifest.json: SEA612: No space left on device\n"
        "  hint: the demo needs write access and free space in .seatrial of the checkout"
    )
