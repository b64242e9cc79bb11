"""Texts that CloudFormation or the CDK replace by something else before anybody reads them."""

from __future__ import annotations

import re

_DYNAMIC_REFERENCE = re.compile(r"\{\{\s*resolve\s*:", re.IGNORECASE)
_CDK_TOKEN = re.compile(r"[$#]\{\s*token\s*\[", re.IGNORECASE)


def replaced_text(text: str) -> str:
    """Name what a text would be replaced by when it is deployed; empty where it stays as it is.

    CloudFormation resolves `{{resolve:SERVICE:KEY}}` with the rights of whoever deploys (user guide, dynamic
    references); the CDK resolves `${Token[…]}` and `#{Token[…]}` (aws-cdk-lib, `core/lib/private/encoding`). Other
    spellings, which neither resolves today, are named too.

    Args:
        text: A text that may reach a template.
    """
    if _DYNAMIC_REFERENCE.search(text):
        return "a dynamic reference of CloudFormation, {{resolve:…}}"
    return "a token of the CDK, ${Token[…]}" if _CDK_TOKEN.search(text) else ""
