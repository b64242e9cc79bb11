"""Every error that Seatrial raises on purpose, and the exit codes of commands.

    SeatrialError                 printed without a traceback; carries one or more findings
    ├── SpecError                 exit 2: what the user wrote is wrong (spec, environment, lock, command line)
    ├── PlanError                 exit 2: no deployment satisfies what was requested
    ├── RenderError               exit 2: the plan can't be written as a serving configuration
    ├── BenchError                exit 1: the trial couldn't be started or refuses to measure
    ├── StageError                exit 1: a model couldn't be copied to S3
    └── LocalError                exit 1: the embedded AWS or the local engine failed

A failed request of a trial is data, never an exception.

Exit codes, of every command: 0, nothing is wrong; 1, a command that judges has found an error or a warning, or AWS or
the machine failed; 2, what the user wrote (command line, spec, lock, file) can't be used. A note never changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable


class SeatrialError(Exception):
    """The root of the tree: one message that lists every finding."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: Iterable[Finding]) -> None:
        self.problems: tuple[Finding, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Finding, ...]]]:
        """Pickle the findings: an exception's own way would make one of the text."""
        return type(self), (self.problems,)

    @classmethod
    def of(cls, rule: str, message: str, *, hint: str = "", where: str = "", field: str = "") -> Self:
        """Return an error of this class that holds a single finding."""
        return cls([Finding(rule, Place.at(where, field), message, hint)])


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
