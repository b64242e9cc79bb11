"""Credentials that stand in plain text in a file of the user's: refused wherever they are, and not repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.errors import Problem
from seatrial.secrets import MASK, credentials, holds_credential, redacted
from seatrial.spec.source import dotted, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.spec.source import Source

_MESSAGE = "this looks like a credential in plain text"
_SHORTEST = 6  # a shorter value is hidden by no search: it stands in other words too
_HINT = "store it in Secrets Manager and give model.hub_token_secret; revoke this one"


def secret_problems(source: Source) -> Iterator[Problem]:
    """Yield each field whose name or value holds a credential, those of every environment's overrides included."""
    for path, name, text in texts(source.data):
        if holds_credential(text, name=name):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Problem(where, dotted(path), "SEA113", _MESSAGE, _HINT)


def secret_values(source: Source) -> tuple[str, ...]:
    """Return the credentials of a file that only the name of their field tells, the longest first."""
    spans = ((text, one) for _, name, text in texts(source.data) for one in credentials(text, name=name))
    found = {text[one.start : one.end] for text, one in spans if one.end - one.start >= _SHORTEST}
    return tuple(sorted(found, key=len, reverse=True))


def without_secrets(problems: Iterable[Problem], secrets: Iterable[str] = ()) -> Iterator[Problem]:
    """Yield the problems as they may be shown: what the user wrote is quoted in them.

    Args:
        problems: The problems.
        secrets: Values that must not be repeated although their form does not tell them.
    """

    def shown(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASK)
        return redacted(text)

    for problem in problems:
        yield replace(
            problem,
            where=redacted(problem.where),
            field=redacted(problem.field),
            message=shown(problem.message),
            hint=redacted(problem.hint),
        )
