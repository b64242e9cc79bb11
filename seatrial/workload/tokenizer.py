"""A model's `tokenizer.json` into a function that counts tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.files import read_text
from seatrial_base.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_BYTES = 256 * MIB
"""Tokenizers of many languages have 10 to 40 MiB."""
TokenCount: TypeAlias = "Callable[[str], int]"


def token_count(path: Path, *, special_tokens: bool = True) -> TokenCount:
    """Return the function that counts a text's tokens as this tokenizer makes them.

    Args:
        path: The `tokenizer.json` of a model.
        special_tokens: Whether to count those that the tokenizer adds to a text (such as the one for its beginning).
            Engines add them to a plain prompt; a chat's template is the engine's own, and is not counted here.

    Raises:
        BenchError: SEA603, the package that reads it is not installed; SEA509, it can't be read.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 (an optional dependency)
    except ImportError as missing:
        message = f"counting tokens needs a package that is not installed: {missing.name}"
        raise BenchError.of("SEA603", message, hint="pip install 'seatrial[local]'") from missing
    try:
        tokenizer = Tokenizer.from_str(read_text(path, most_bytes=MOST_BYTES))
    except OSError as unread:
        raise BenchError.of("SEA509", f"can't be read: {unread.strerror}", where=str(path)) from unread
    except Exception as malformed:  # the package raises nothing narrower
        raise BenchError.of("SEA509", f"not a tokenizer.json: {malformed}", where=str(path)) from malformed
    return lambda text: len(tokenizer.encode(text, add_special_tokens=special_tokens).ids)
