"""Credentials that stand in plain text in a file of the user's: refused wherever they are, and not repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.errors import Problem
from seatrial.secrets import holds_credential, redacted
from seatrial.spec.source import dotted, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.spec.source import Source

_MESSAGE = "this looks like a credential in plain text"
_HINT = "store it in Secrets Manager and give model.hub_token_secret; revoke this one"


def secret_problems(source: Source) -> Iterator[Problem]:
    """Yield each field whose name or value holds a credential, those of every environment's overrides included."""
    for path, name, text in texts(source.data):
        if holds_credential(text, name=name):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Problem(where, dotted(path), "SEA113", _MESSAGE, _HINT)


def without_secrets(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems as they may be shown: what the user wrote is quoted in them."""
    for problem in problems:
        yield replace(
            problem,
            where=redacted(problem.where),
            field=redacted(problem.field),
            message=redacted(problem.message),
            hint=redacted(problem.hint),
        )
