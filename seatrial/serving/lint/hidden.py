"""Secrets in a configuration: found by their form or their key's name, and never repeated in what is told."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.secrets import holds_credential, redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.serving.lint.finding import Finding
    from seatrial.serving.lint.source import Source

HIDDEN = "(hidden)"
_SHORTEST = 4  # a shorter value is hidden by no search: it stands in other words too
_NAMES = re.compile(
    r"(^|_)(hf_token|hf_api_token|hugging_face_hub_token|hub_token|secret_access_key|password|api_key|authtoken)$"
)
_REFERENCE = re.compile(r"^(\{\{resolve:|arn:aws|\$\{|<|\(from )")


def secret_in(key: str, value: str) -> str:
    """Return what kind of secret stands in a value; empty for none, and for a reference to one."""
    if holds_credential(value, name=key):
        return "a credential"
    if not value.strip() or _REFERENCE.match(value):
        return ""
    return "a secret" if _NAMES.search(key.removeprefix("option.").lower()) else ""


def secrets_of(sources: Iterable[Source]) -> tuple[str, ...]:
    """Return the secret values of configurations, the longest first."""
    entries = (entry for source in sources for entry in source.entries)
    found = {entry.value for entry in entries if len(entry.value) >= _SHORTEST and secret_in(entry.key, entry.value)}
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
