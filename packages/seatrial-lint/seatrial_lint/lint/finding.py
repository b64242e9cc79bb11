"""One finding: where, which rule, what the container does, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters of a file that are replaced.

    Attributes:
        start: First character.
        end: One past the last.
        text: What stands there afterwards.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule says of one key.

    Attributes:
        file: Path as the user gave it.
        line: Line of the key, counted from 1.
        key: The key as it is written; empty when what is missing has no line.
        rule: The rule's ID.
        severity: `error`: the container will not start or serve as written; `warning`: something written has no
            effect, or another than meant; `note`: worth knowing.
        message: What the container does.
        fix: How to mend it.
        edit: The change that `--fix` makes; `None` where the meaning would change.
    """

    file: str
    line: int
    key: str
    rule: str
    severity: Severity
    message: str
    fix: str
    edit: Edit | None = None

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        fix = f"\n  fix: {self.fix}" if self.fix else ""
        return f"{self.file}:{self.line}: {key}{self.rule}: {self.severity}: {self.message}{fix}"
