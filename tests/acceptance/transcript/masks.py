"""What a transcript never holds: credentials, account IDs, names of people; the same text gives the same mask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from seatrial_base.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.printer import Json

ACCOUNT: Final = "ACCOUNT"
LONGEST_TEXT: Final = 4_000
"""Characters of one text that are kept: an error's words are shorter, a template's body is longer."""
_QUOTED: Final = re.compile(r"%(?:22|2F|3A)")
"""A text of a URL, as IAM writes its policies: what stands in it is masked as if it stood there plainly."""
_ACCOUNT_ID: Final = re.compile(r"(?<![0-9A-Za-z])[0-9]{12}(?![0-9A-Za-z])")
_PRINCIPAL_ID: Final = re.compile(r"\b(?:AIDA|AROA|AGPA|ANPA|ANVA|AIPA|APKA)[A-Z0-9]{8,}")
"""IAM user guide, IAM identifiers: understanding unique ID prefixes."""
_SESSION: Final = re.compile(r"(:assumed-role/[^/\s\"]+/)(?!seatrial-)[^\s\",]+")
"""The session's name: with single sign-on it is an e-mail address. Those of our own functions are their names."""
_USER: Final = re.compile(r"(:(?:user|federated-user)/)(?!seatrial-)[^\s\",]+")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}")
_NAMES: Final = ("Key", "ParameterKey", "OutputKey", "Name")
_VALUES: Final = ("Value", "ParameterValue", "OutputValue")


def masked_text(text: str, hidden: Mapping[str, str], *, name: str = "") -> str:
    """Return a text without what must not be told, cut to `LONGEST_TEXT` characters.

    Args:
        text: The text.
        hidden: Further texts that are hidden wherever they stand, by what stands there instead.
        name: The name of the field whose whole value the text is.
    """
    shown = redacted(unquote(text) if _QUOTED.search(text) else text, name=name)
    for secret, instead in hidden.items():
        shown = shown.replace(secret, instead)
    shown = _ACCOUNT_ID.sub(ACCOUNT, shown)
    shown = _PRINCIPAL_ID.sub("PRINCIPAL", shown)
    shown = _USER.sub(r"\1USER", _SESSION.sub(r"\1SESSION", shown))
    shown = _EMAIL.sub("EMAIL", shown)
    return shown if len(shown) <= LONGEST_TEXT else f"{shown[:LONGEST_TEXT]}… ({len(shown)} characters)"


def masked(value: Json, hidden: Mapping[str, str], *, name: str = "") -> Json:
    """Return a document without what must not be told; a name beside a value tells what it is, as in tags."""
    if isinstance(value, str):
        return masked_text(value, hidden, name=name)
    if isinstance(value, dict):
        beside = next((str(value[key]) for key in _NAMES if isinstance(value.get(key), str)), "")
        return {
            masked_text(key, hidden): masked(inner, hidden, name=beside if key in _VALUES and beside else key)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(inner, hidden, name=name) for inner in value]
    return value
