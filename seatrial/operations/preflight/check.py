"""One question to the account and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures, error_code, error_sentence
from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

UNREAD = "SEA436"


@dataclass(frozen=True, slots=True)
class AccountCheck:
    """A check of the account.

    Attributes:
        answer: What the account has, or why it could not be read.
        finding: What is wrong, an error; a note where it could not be read; `None` where all is well.
    """

    subject: str
    answer: str
    finding: Finding | None = None

    @property
    def is_ok(self) -> bool:
        """Whether all is well."""
        return self.finding is None

    @property
    def is_wrong(self) -> bool:
        """Whether something would fail."""
        return self.finding is not None and self.finding.severity == "error"

    @property
    def is_unread(self) -> bool:
        """Whether it could not be read."""
        return self.finding is not None and self.finding.severity == "note"


def ok(subject: str, answer: str) -> AccountCheck:
    """Return that all is well."""
    return AccountCheck(subject, answer)


def problem(subject: str, rule: str, answer: str, hint: str) -> AccountCheck:
    """Return what would fail, and how to fix it."""
    return AccountCheck(subject, answer, Finding(rule, Place(field=subject), answer, hint, severity="error"))


def unread(subject: str, because: str) -> AccountCheck:
    """Return that it could not be read."""
    message = f"could not be read: {because}"
    return AccountCheck(subject, because, Finding(UNREAD, Place(field=subject), message, severity="note"))


def account_check(subject: str, ask: Callable[[], AccountCheck], *, refusals: Mapping[str, Finding]) -> AccountCheck:
    """Ask, and make a problem of a refusal of AWS whose code is among `refusals`; at another one nothing is known."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures(subject):
            return ask()
    except BenchError as error:
        return unread(subject, error.problems[0].message)
    except ClientError as error:
        known = refusals.get(error_code(error))
        if known is None:
            return unread(subject, error_sentence(error))
        return problem(subject, known.rule, known.message, known.hint)


def refusal(rule: str, message: str, hint: str) -> Finding:
    """Return what an error of AWS means."""
    return Finding(rule, Place(), message, hint)
