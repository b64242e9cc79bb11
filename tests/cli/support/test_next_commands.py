"""`seatrial` alone, and the help: what a newcomer sees first."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
import typer

from seatrial.cli.app import app
from seatrial.cli.support.next_commands import lines_of, next_commands, situation_of
from tests.docs.test_commands import mistakes

if TYPE_CHECKING:
    from pathlib import Path

    import click

LONGEST_LINE = 57
"""Of a command, beside the longest name, in a terminal of 80 columns."""
SPEC = "name: chat\nmodel: {hub_id: Qwen/Qwen3-32B}\nworkload: {input_tokens: 9, output_tokens: 9, concurrency: 1}\n"


def place(folder: Path, *environments: str, specs: tuple[str, ...] = (), locked: tuple[str, ...] = ()) -> Path:
    for name in ("endpoints", "environments"):
        (folder / name).mkdir(exist_ok=True)
    for name in specs:
        (folder / "endpoints" / f"{name}.yaml").write_text(SPEC)
    for name in locked:
        (folder / "endpoints" / f"{name}.lock.json").write_text(
            '{"schema_version": "1", "environments": {"dev": {}}, "digests": {}}'
        )
    for name in environments:
        account = 'account: "000000000000"\n' if name == "laptop" else ""
        (folder / "environments" / f"{name}.yaml").write_text(f"name: {name}\nregion: us-east-1\n{account}")
    return folder


def first_words(folder: Path) -> list[str]:
    return [each.line.split()[1] for each in next_commands(situation_of(folder))]


def test_in_an_empty_folder_an_answer_needs_no_file(tmp_path: Path) -> None:
    assert first_words(tmp_path) == ["plan", "init", "models", "doctor", "lint"]


def test_specs_without_locks_are_validated_and_planned(tmp_path: Path) -> None:
    seen = situation_of(place(tmp_path, "laptop", "dev", specs=("chat", "mail")))
    assert seen.words == "Here: 2 specs, environments dev, laptop; 0 locked in dev."
    assert first_words(tmp_path) == ["validate", "plan", "compare-instances", "recipes", "plan"]
    assert next_commands(seen)[-1].line == "seatrial plan endpoints/chat.yaml -e dev --write"


def test_locked_specs_are_checked_and_deployed(tmp_path: Path) -> None:
    place(tmp_path, "dev", specs=("chat", "mail"), locked=("chat",))
    lines = [each.line for each in next_commands(situation_of(tmp_path))]
    assert lines[0] == "seatrial plan endpoints/mail.yaml --write"
    assert "seatrial preflight endpoints/chat.yaml" in lines
    assert [(tmp_path / line.split()[2]).exists() for line in lines] == [True] * 5


def test_a_spec_in_the_folder_itself_is_found_and_other_yaml_is_not(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(SPEC)
    (tmp_path / "values.yaml").write_text("model: gpt\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    seen = situation_of(tmp_path)
    assert [each.name for each in seen.specs] == ["chat.yaml"]
    assert next_commands(seen)[-1].line == "seatrial init FOLDER"
    place(tmp_path, "dev")
    (tmp_path / "endpoints").rmdir()
    (tmp_path / "chat.lock.json").write_text('{"schema_version": "1", "environments": {"dev": {}}, "digests": {}}')
    assert all((tmp_path / each.line.split()[2]).exists() for each in next_commands(situation_of(tmp_path)))


def test_files_that_cannot_be_read_do_no_harm(tmp_path: Path) -> None:
    place(tmp_path, "dev", specs=("chat",), locked=("chat",))
    (tmp_path / "environments" / "bad.yaml").write_text(": [")
    (tmp_path / "endpoints" / "chat.lock.json").write_text("{")
    assert situation_of(tmp_path).words == "Here: 1 spec, environments bad, dev; 0 locked in bad."


@pytest.mark.parametrize("locked", [(), ("chat",)])
@pytest.mark.parametrize("environments", [(), ("dev",), ("dev", "prod")])
def test_every_line_is_a_command_and_fits_a_terminal(
    tmp_path: Path, environments: tuple[str, ...], locked: tuple[str, ...]
) -> None:
    seen = situation_of(place(tmp_path, *environments, specs=("chat",), locked=locked))
    commands = next_commands(seen)
    assert len(commands) == 5
    assert [mistake for each in commands for mistake in mistakes(shlex.split(each.line))] == []
    assert max(map(len, lines_of(seen))) <= 80


def test_each_command_has_one_line_of_its_own_in_a_group() -> None:
    group = typer.main.get_command(app)
    commands: dict[str, click.Command] = vars(group)["commands"]
    lines = {name: f"{command.short_help or ''}" for name, command in commands.items()}
    assert [name for name, line in lines.items() if not 0 < len(line) <= LONGEST_LINE] == []
    assert len(set(lines.values())) == len(lines)
    assert all(getattr(command, "rich_help_panel", None) for command in commands.values())
