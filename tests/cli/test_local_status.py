"""`seatrial local status` tells whether the embedded AWS answers, and what to do when it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from seatrial.cli.local import local
from seatrial_laptop import lifecycle
from seatrial_laptop.lifecycle import LocalAws, LocalStatus

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = LocalAws(4242, 4566, "AKIDEXAMPLE", "a")


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (LocalStatus(LOCAL, state="running"), 0, ["running at http://127.0.0.1:4566 (pid 4242)"]),
        (LocalStatus(LOCAL, state="not answering"), 1, ["not responding: ", "kill -CONT 4242", "seatrial local down"]),
        (LocalStatus(None, state="starting"), 1, ["starting: ", "seatrial local down"]),
        (LocalStatus(None, state="killed"), 1, ["killed", "seatrial local up"]),
        (LocalStatus(None), 1, ["not running: ", "--state"]),
    ],
)
def test_each_state_is_told_with_the_next_command(
    status: LocalStatus, code: int, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "read_local_status", lambda _: status)
    done = CliRunner().invoke(local, ["status", "--state", str(tmp_path)])
    assert done.exit_code == code
    assert [word for word in words if word not in done.stdout] == []
