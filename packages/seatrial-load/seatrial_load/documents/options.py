"""The options that write a trial's request on a command line, read off its fields (`Facts.option`).

`seatrial-load` takes them with argparse, `seatrial bench` with typer; a report names them in the command of its trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 (the table resolves the fields' types)
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from seatrial_base.field_facts import Facts, Option, data_field, defaults_of, facts_of
from seatrial_load.documents.request import LIMITS, Gate, Load, TrialRequest, TrialTarget, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET, LOAD, PROMPTS, OUTPUT = "Target", "Load", "Prompts", "Output"
FILES: Final = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFiles:
    """The files that a trial reads prompts from, and writes; all None is made-up prompts, and nothing written."""

    prompts: Path | None = data_field(None, "JSONL file of prompts.", option=Option("--prompts"))
    trace: Path | None = data_field(None, "Trace to replay: CSV or JSONL.", option=Option("--trace"))
    speed: float = data_field(
        1.0, "Replay speed; 2 is twice as fast as recorded.", option=Option("--speed", needs=("--trace",))
    )
    in_flight: bool = data_field(default=False, help="Whether levels of sessions at once were requested.")
    records: Path | None = data_field(
        None, "Write every request to this JSONL file.", option=Option("--records", OUTPUT, metavar="FILE")
    )


_PARTS: Final = (
    ("target", TrialTarget, TARGET),
    ("", TrialRequest, TARGET),
    ("gate", Gate, TARGET),
    ("load", Load, LOAD),
    ("workload", Workload, PROMPTS),
    (FILES, TrialFiles, PROMPTS),
)
_GROUPS: Final = (TARGET, LOAD, PROMPTS, LIMITS, OUTPUT)


@dataclass(frozen=True, slots=True)
class CommandOption:
    """One option, with the field that it fills.

    Attributes:
        part: The part of a trial's request that has the field; empty for the request itself, `files` for none of it.
        name: The field.
        option: How a command line sets it.
        group: Where the help lists it.
        kind: The type of a value as it is written: of a list, and of what is read further, a text.
        usual: What the field has where nothing is written and there is no spec; None where nothing is usual.
    """

    part: str
    name: str
    facts: Facts
    option: Option
    group: str
    kind: Any
    usual: Any

    @property
    def flag(self) -> str:
        """As it is written, `--level-seconds`."""
        return self.option.flag

    @property
    def field(self) -> str:
        """The field's place, `load.level_s`."""
        return f"{self.part}.{self.name}".lstrip(".")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it takes; empty for all of its type."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    def words(self, *, known: str = "") -> str:
        """Return the help."""
        text = self.option.help or f"{self.facts.help.partition('. ')[0].rstrip('.')}."
        needs = " or ".join(flag for flag in self.option.needs if flag != known)
        if needs and not text.startswith("With "):
            text = f"With {needs}: {text[0].lower()}{text[1:]}"
        if self.option.needs and self.usual is not None and "Default" not in text:
            text += f" Default: {self.usual if isinstance(self.usual, str) else f'{self.usual:g}'}."
        return text


def _rows() -> Iterator[CommandOption]:
    for part, document, group in _PARTS:
        hints, defaults = get_type_hints(document), defaults_of(document)
        for name, facts in facts_of(document).items():
            if (option := facts.option) is None:
                continue
            usual, kind = defaults.get(name) if option.default is None else option.default, hints[name]
            if option.sets is not None:
                kind = bool
            if get_origin(kind) in (Union, UnionType):
                (kind,) = (member for member in get_args(kind) if member is not NoneType)
            if get_origin(kind) is Literal:
                kind = Literal[option.choices or get_args(kind)]
            elif not isinstance(kind, type) or get_origin(kind) is not None:
                kind = str
            yield CommandOption(part, name, facts, option, option.group or group, kind, usual)


OPTIONS: Final = {row.flag: row for group in _GROUPS for row in _rows() if row.group == group}
