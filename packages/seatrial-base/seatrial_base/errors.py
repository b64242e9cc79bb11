"""Every error that Seatrial raises on purpose, and how a problem reads.

    SeatrialError                 printed without a traceback; carries one or more problems
    ├── SpecError                 exit 2: what the user wrote is wrong (spec, environment, lock, command line)
    ├── PlanError                 exit 2: no deployment satisfies what was asked
    ├── RenderError               exit 2: the plan can't be written as a serving configuration
    ├── BenchError                exit 1: the trial couldn't be started or refuses to measure
    ├── StageError                exit 1: a model couldn't be copied to S3
    └── LocalError                exit 1: the embedded AWS or the local engine failed

A failed request of a trial is data, never an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, which rule, what, and how to mend it.

    Attributes:
        where: The file with its line (`endpoints/chat.yaml:12`), or the thing that was read; empty when there is none.
        field: The dotted path of the field (`slo.ttft_ms.p95`); empty when no field is concerned.
        rule: The rule's ID (`SEA101`).
        message: What is wrong, with the value and the bound.
        hint: How to mend it; empty when the message says it.
        severity: `error` stops the work, `warning` does not.
    """

    where: str
    field: str
    rule: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = "".join(f"{part}: " for part in (self.where, self.field) if part)
        kind = "warning: " if self.severity == "warning" else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.rule}: {kind}{self.message}{hint}"


class SeatrialError(Exception):
    """The root of the tree: one message that lists every problem found."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(cls, rule: str, message: str, *, hint: str = "", where: str = "", field: str = "") -> Self:
        """Return an error of this class that holds a single problem."""
        return cls([Problem(where=where, field=field, rule=rule, message=message, hint=hint)])


class SpecError(SeatrialError):
    """What the user wrote is wrong; every problem of every file is listed."""

    exit_code = 2


class PlanError(SeatrialError):
    """No deployment satisfies the spec; says which was nearest and by how much it missed."""

    exit_code = 2


class RenderError(SeatrialError):
    """The plan can't be written as a serving configuration of its engine."""

    exit_code = 2


class BenchError(SeatrialError):
    """The trial couldn't be started, or refuses to measure something that isn't this deployment."""


class StageError(SeatrialError):
    """A model couldn't be copied to S3; every file that failed is listed."""


class LocalError(SeatrialError):
    """The embedded AWS or the local engine failed."""
