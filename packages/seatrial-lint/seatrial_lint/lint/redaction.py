"""Secrets in a configuration: found by their form or their key's name, and never repeated in what is reported."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from seatrial_base.secrets import BY_NAME, credentials, holds_credential, redacted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial_base.findings import Finding
    from seatrial_base.secrets import Credential
    from seatrial_lint.lint.source import ConfigSource, SourceEntry


HIDDEN = "(hidden)"
# A shorter value is hidden by no search: it is in other words too.
_SHORTEST = 4
_SHORTEST_DISTINCT = 8
# Words and numbers, which messages are made of.
_ORDINARY = re.compile(r"[A-Za-z_. /-]*|[0-9.]*")
_OF_WORD = re.compile("[A-Za-z0-9_]")
# That a secret is there.
_TELLS_NO_VALUE = "SEA330"
# Of Unicode's private use area: stands for one character of a secret.
_COVER = "\ue000"


@dataclass(slots=True)
class _FileSecrets:
    """The secrets of one file.

    Attributes:
        of_key: The secret values by the key that has them.
        distinct: Those that no message contains by chance.
    """

    of_key: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    distinct: set[str] = field(default_factory=set)


def secret_in(key: str, value: str) -> str:
    """Return what kind of secret is in a value; empty for none, and for a reference to one."""
    kinds = {one.kind for one in _credentials_of(value, key)}
    if kinds == {BY_NAME}:
        return "a secret"
    return "a credential" if kinds or holds_credential(key) else ""


def shown(entry: SourceEntry) -> str:
    """Return a value as another entry's message may tell it."""
    return HIDDEN if secret_in(entry.key, entry.value) else entry.value


def redact_findings(findings: Iterable[Finding], sources: Iterable[ConfigSource]) -> Iterator[Finding]:
    """Yield findings whose words repeat no secret.

    A secret is hidden in the messages about its own key, and in those about its own file when it is no ordinary word.
    """
    secrets: dict[str, _FileSecrets] = defaultdict(_FileSecrets)
    for source in sources:
        for entry in source.entries:
            for secret in _secrets_of(entry):
                secrets[source.file].of_key[entry.key].append(secret)
                if len(secret) >= _SHORTEST_DISTINCT and not _ORDINARY.fullmatch(secret):
                    secrets[source.file].distinct.add(secret)
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.place.file].append(finding)
    for file, judged in by_file.items():
        known = secrets.get(file, _FileSecrets())
        words = "\n".join(f"{one.message}\n{one.hint}" for one in judged) if known.distinct else ""
        distinct = [secret for secret in known.distinct if secret in words]
        for one in judged:
            own = () if one.rule == _TELLS_NO_VALUE else known.of_key.get(one.field, ())
            message, hint = one.message, one.hint
            # The longest first: a secret may be a part of another one.
            for secret in sorted([*own, *distinct], key=len, reverse=True):
                message, hint = _without(message, secret), _without(hint, secret)
            place = replace(one.place, field=redacted(one.field))
            yield replace(one, place=place, message=redacted(message), hint=redacted(hint))


def _without(text: str, secret: str) -> str:
    """Return a text in which a secret that is no part of a longer word is hidden.

    A pattern of the secret would be compiled again for each one, which takes a second for a megabyte.
    """
    parts: list[str] = []
    at = 0
    start = text.find(secret)
    while start >= 0:
        end = start + len(secret)
        if _OF_WORD.match(text[start - 1 : start]) or _OF_WORD.match(text, end):
            start = text.find(secret, start + 1)
            continue
        parts += [text[at:start], HIDDEN]
        at, start = end, text.find(secret, end)
    return "".join((*parts, text[at:]))


def _secrets_of(entry: SourceEntry) -> Iterator[str]:
    for one in _credentials_of(entry.value, entry.key):
        if one.end - one.start >= _SHORTEST:
            yield entry.value[one.start : one.end]


@lru_cache(maxsize=1_024)
def _credentials_of(value: str, key: str) -> tuple[Credential, ...]:
    """Return the credentials of a value: asked when it is judged, covered, and when findings are redacted."""
    return credentials(value, name=key)


def covered(source: ConfigSource) -> str:
    """Return a file's text whose secret values are covered, each character by one, so that every place stays."""
    parts: list[str] = []
    at = 0
    entries = (entry for entry in source.entries if next(_secrets_of(entry), None) is not None)
    for start, end in sorted(entry.value_span for entry in entries):
        if start >= at:
            parts += [source.text[at:start], _COVER * (end - start)]
            at = end
    return "".join((*parts, source.text[at:]))


def uncovered(text: str) -> str:
    """Return a text for users in which something was covered."""
    return redacted(re.sub(f"{_COVER}+", HIDDEN, text))
