"""Calls of AWS that fail for whatever reason, as one exception that handlers can tell from their own mistakes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class UnavailableError(Exception):
    """AWS refused or throttled a call, or could not be reached; the message says which call and why."""


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Turn a failed call inside the block into an UnavailableError."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

    try:
        yield
    except (BotoCoreError, ClientError) as failed:
        raise UnavailableError(f"{what}: {failed}") from failed
