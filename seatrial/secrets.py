"""What credentials look like, so that one in plain text is refused and never repeated."""

from __future__ import annotations

import re

SHOWN = 3
"""Characters of a credential that a message may show: its kind, nothing of its value."""

# Each with its source: hf_ and api_org_, Hugging Face user and organisation tokens (hub security documentation);
# AKIA and ASIA, AWS access key ids (IAM user guide, unique identifiers); ghp_ and github_pat_, GitHub tokens (GitHub
# documentation, token formats); PEM private keys (RFC 7468).
_FORMS = (
    r"(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{20,}",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*",
)
# A secret access key is 40 characters of Base64, as other things are: only its name beside it tells.
_NAMED = r"(?i:secret_?access_?key)\W{1,5}(?P<key>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])"
_CREDENTIAL = re.compile("|".join((*_FORMS, _NAMED)))
_SECRET_ACCESS_KEY = re.compile(r"[A-Za-z0-9+/]{40}")


def holds_credential(text: str, *, name: str = "") -> bool:
    """Return whether a text holds a credential.

    Args:
        text: The text.
        name: The name of the field that holds it, which tells an AWS secret access key.
    """
    if _CREDENTIAL.search(text):
        return True
    flat = name.lower().replace("_", "").replace("-", "")
    return "secretaccesskey" in flat and _SECRET_ACCESS_KEY.fullmatch(text) is not None


def redacted(text: str) -> str:
    """Return a text in which of each credential only the first three characters are left, and an ellipsis."""
    return _CREDENTIAL.sub(_cut, text)


def _cut(found: re.Match[str]) -> str:
    key = found["key"]
    if key is None:
        return f"{found[0][:SHOWN]}…"
    return f"{found[0][: -len(key)]}{key[:SHOWN]}…"
