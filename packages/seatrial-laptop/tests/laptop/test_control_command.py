from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from seatrial.cli.local import local
from seatrial_base.errors import LocalError

if TYPE_CHECKING:
    from pathlib import Path

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def printed(laptop: Laptop, *words: str) -> dict[str, object]:
    ran = CliRunner().invoke(local, ["control", "--state", str(laptop.state_dir), *words])
    assert ran.exit_code == 0, ran.output
    settings: dict[str, object] = json.loads(ran.stdout)
    return settings


def test_the_command_prints_changes_and_resets_the_settings(laptop: Laptop) -> None:
    defaults = printed(laptop, "--reset")
    assert printed(laptop, "instance_start_s=2.5", "stuck=chat") == {
        **defaults,
        "instance_start_s": 2.5,
        "stuck": "chat",
    }
    assert printed(laptop, "--reset", "capacity_limit=3") == {**defaults, "capacity_limit": 3}
    assert printed(laptop)["capacity_limit"] == 3
    assert printed(laptop, "--reset") == defaults


def test_a_wrong_setting_or_no_embedded_aws_is_an_error(laptop: Laptop, tmp_path: Path) -> None:
    for words, rule in (
        (["--state", str(laptop.state_dir), "clock_speed=fast"], "SEA608: clock_speed: "),
        (["--state", str(laptop.state_dir), "clock_speed"], "SEA608: 'clock_speed' is not of the form KEY=VALUE"),
        (["--state", str(tmp_path)], "SEA602"),
    ):
        ran = CliRunner().invoke(local, ["control", *words])
        assert isinstance(ran.exception, LocalError)
        assert rule in str(ran.exception)
