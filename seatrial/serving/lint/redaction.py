"""Secrets in a configuration: found by their form or their key's name, and never repeated in what is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.secrets import BY_NAME, credentials, holds_credential, redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.serving.lint.finding import Finding
    from seatrial.serving.lint.source import ConfigSource


HIDDEN = "(hidden)"
_SHORTEST = 4  # a shorter value is hidden by no search: it stands in other words too


def secret_in(key: str, value: str) -> str:
    """Return what kind of secret stands in a value; empty for none, and for a reference to one."""
    kinds = {one.kind for one in credentials(value, name=key)}
    if kinds == {BY_NAME}:
        return "a secret"
    return "a credential" if kinds or holds_credential(key) else ""


def secrets_of(sources: Iterable[ConfigSource]) -> tuple[str, ...]:
    """Return the secret values of configurations, the longest first."""
    entries = (entry for source in sources for entry in source.entries)
    spans = ((entry.value, one) for entry in entries for one in credentials(entry.value, name=entry.key))
    found = {value[one.start : one.end] for value, one in spans if one.end - one.start >= _SHORTEST}
    return tuple(sorted(found, key=len, reverse=True))


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text in which no secret is left."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return redacted(text)


def told(finding: Finding, secrets: tuple[str, ...]) -> Finding:
    """Return a finding whose words repeat no secret."""
    key, message, fix = (without_secrets(text, secrets) for text in (finding.key, finding.message, finding.fix))
    return replace(finding, key=key, message=message, fix=fix)
