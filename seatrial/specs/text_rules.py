"""Texts that hold what can't be shown: escape sequences, direction marks, look-alike spaces, halves of characters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.specs.yaml_source import dotted, yaml_texts
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import MASK, credentials, holds_credential, redacted
from seatrial_base.text import replaced_text, unprintable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.specs.yaml_source import FieldPath, YamlSource


_PROSE = "\n\t\u00a0\u2009\u202f\u3000\u200c\u200d\u2028\u2029"
"""What may stand in a text of several lines and of any language: breaks, spaces, joiners."""
_HINT = "type the text again: it may have been copied with it"


def character_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield each field whose name or value holds such a character, those of every environment's overrides included."""
    for path, name, text in yaml_texts(source.data):
        if found := unprintable(text, layout=_PROSE if _is_prose(path, name) else ""):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Finding("SEA118", Place.at(where, dotted(path)), f"the text holds {found}", _HINT)


def _is_prose(path: FieldPath, name: str) -> bool:
    """Tell whether a text is a description or an option's value; the name of neither is (its own name is empty)."""
    return bool(name) and (path[-1] == "description" or path[-2:-1] == ("extra",))


_MESSAGE = "looks like a credential in plain text"
_SHORTEST = 6  # a shorter value is hidden by no search: it stands in other words too
_STORE_IT = "revoke it, store a new one in Secrets Manager and name that in model.hub_token_secret"


def secret_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield each field whose name or value holds a credential, those of every environment's overrides included."""
    for path, name, text in yaml_texts(source.data):
        if holds_credential(text, name=name):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Finding("SEA113", Place.at(where, dotted(path)), _MESSAGE, _STORE_IT)


WRITE_IT_OUT = "write the value itself; a hub token is named in model.hub_token_secret"


def reference_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield each field whose name or value CloudFormation or the CDK would replace, in whichever environment."""
    for path, _, text in yaml_texts(source.data):
        if found := replaced_text(text):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Finding("SEA137", Place.at(where, dotted(path)), f"the text holds {found}", WRITE_IT_OUT)


def file_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield what is wrong with a file whatever it describes.

    That is its name, YAML, credentials, characters that nobody sees, and what would be replaced when it is deployed.
    """
    yield from _name_problems(source.path)
    yield from source.problems
    yield from secret_problems(source)
    yield from character_problems(source)
    yield from reference_problems(source)


_FILE_NAME = re.compile(r"[\w .,+@=()-]+")


def _name_problems(path: str) -> Iterator[Finding]:
    """Yield that a file's name is none: it stands in comments, reports and commands, as others wrote it."""
    name = path.rpartition("/")[2]
    if name and not _FILE_NAME.fullmatch(name):
        hint = "rename the file: letters, digits, blanks and . , _ - + @ = ( ) are taken"
        yield Finding("SEA107", Place.at(path), "the name of the file holds other signs than names have", hint)


def secret_values(source: YamlSource) -> tuple[str, ...]:
    """Return the credentials of a file that only the name of their field tells, the longest first."""
    spans = ((text, one) for _, name, text in yaml_texts(source.data) for one in credentials(text, name=name))
    found = {text[one.start : one.end] for text, one in spans if one.end - one.start >= _SHORTEST}
    return tuple(sorted(found, key=len, reverse=True))


def without_secrets(problems: Iterable[Finding], secrets: Iterable[str] = ()) -> Iterator[Finding]:
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
            place=Place.at(redacted(problem.where), redacted(problem.field)),
            message=shown(problem.message),
            hint=redacted(problem.hint),
        )
