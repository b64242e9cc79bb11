"""`seatrial migrate` as a user runs it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial

OLD = Path(__file__).parents[1] / "compatibility" / "schema-2"
LOCK = "endpoints/llama-2-7b-chat.lock.json"
TOLD = f"{LOCK}: dev: schema 2 to 3, trial_update: candidate"


def test_an_older_lock_is_told_written_and_then_current(seatrial: Seatrial, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OLD, tmp_path / "old"))
    before = (folder / LOCK).read_bytes()
    told = seatrial("migrate", folder=folder)
    checked = seatrial("migrate", "--check", folder=folder)
    assert (told.returncode, told.stdout.splitlines()[0], told.stdout) == (0, TOLD, checked.stdout)
    assert (checked.returncode, (folder / LOCK).read_bytes()) == (1, before)
    written = seatrial("migrate", LOCK, "--write", "--check", folder=folder)
    assert (written.returncode, written.stdout) == (0, f"{TOLD}\n1 of 1 locks written\n")
    after = seatrial("migrate", "--check", folder=folder)
    assert (after.returncode, after.stdout) == (0, "every file is current\n")


def test_a_newer_file_is_refused_and_nothing_is_written(seatrial: Seatrial, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OLD, tmp_path / "old"))
    before = (folder / LOCK).read_bytes()
    (folder / "environments" / "next.yaml").write_text("schema_version: 2\nname: next\nzone: a\n")
    done = seatrial("migrate", "--write", folder=folder)
    assert (done.returncode, done.stderr.count("SEA")) == (2, 1)
    assert "environments/next.yaml:1: schema_version: SEA122: schema_version is 2; this release reads 1" in done.stderr
    assert (folder / LOCK).read_bytes() == before


def test_a_folder_without_files_is_told(seatrial: Seatrial, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    done = seatrial("migrate", folder=folder)
    assert (done.returncode, "SEA404" in done.stderr) == (2, True)
