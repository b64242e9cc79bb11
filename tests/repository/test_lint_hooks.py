"""The pre-commit hook and the action for others' repositories run commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial_base import __version__

if TYPE_CHECKING:
    from tests.command_line import CommandLine

ROOT = Path(__file__).parents[2]
BAD = "option.model_id=a/b\noption.dtype=bfloat16\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "serving.properties").write_text(BAD)
    (tmp_path / "other.yaml").write_text("a: 1\n")
    return tmp_path


def test_the_hook_passes_over_other_files(folder: Path, command_line: CommandLine) -> None:
    page = (ROOT / "docs" / "how-to" / "lint.md").read_text(encoding="utf-8")
    (written,) = (
        text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "additional_dependencies" in text
    )
    (hook,) = yaml.safe_load(written)["repos"][0]["hooks"]
    assert hook["additional_dependencies"] == [f"seatrial-lint=={__version__}"]
    named = ["serving.properties", "deploy/.env.prod", "a.ipynb", "other.yaml", "README.md"]
    assert [name for name in named if re.search(hook["files"], name)] == named[:-1]
    _, *arguments = shlex.split(hook["entry"])
    done = command_line.run(*arguments, "serving.properties", "other.yaml", folder=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert "SEA317" in done.stdout
    assert command_line.run(*arguments, "other.yaml", folder=folder).returncode == 0


def test_the_action_lints_and_keeps_the_exit_code(folder: Path, command_line: CommandLine) -> None:
    action = yaml.safe_load((ROOT / "lint-action" / "action.yml").read_text())
    steps = {step.get("name", step.get("uses")): step for step in action["runs"]["steps"]}
    commands = re.findall(r"seatrial-lint (lint .*?)(?: > .*| \|\| .*)$", steps["Lint"]["run"], re.MULTILINE)
    for command in commands:
        filled = command.replace("$PATHS", ".").replace("$ARGUMENTS", "--engine lmi --version lmi27")
        assert command_line.run(*shlex.split(filled), folder=folder).returncode == 1
    assert len(commands) == 2
    used = [step["uses"] for step in action["runs"]["steps"] if "uses" in step]
    assert [one.partition("@")[0] for one in used] == ["actions/setup-python", "github/codeql-action/upload-sarif"]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one) for one in used)  # a tag may be moved
