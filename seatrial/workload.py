"""A file of prompts of exact lengths, one JSON object a line, for `workload.source: jsonl`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.files import read_text, whole_file
from seatrial_base.units import MIB
from seatrial_load.prompts.synthetic import WORDS, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


MOST_BYTES = 256 * MIB
"""Tokenizers of many languages have 10 to 40 MiB."""
TokenCount: TypeAlias = "Callable[[str], int]"


def write_prompts(path: Path, count: TokenCount, lengths: Iterable[tuple[int, int]], *, seed: str) -> int:
    """Write one prompt for each pair of input and output tokens; return how many there are.

    The file is complete or not there: it is written next to its place first.

    Args:
        path: The file.
        count: Counts a text's tokens.
        lengths: Tokens of each prompt and of its answer; a trace's rows, or equal ones.
        seed: Another seed gives prompts that share nothing with these.

    Raises:
        BenchError: SEA509, a length that no text has.
    """
    written = 0
    with whole_file(path) as file:
        for index, (tokens_in, tokens_out) in enumerate(lengths):
            text = exact_text(count, tokens_in, f"{seed}:{index}")
            file.write(json.dumps({"prompt": text, "output_tokens": tokens_out}) + "\n")
            written += 1
    return written


MAX_DRAWS: Final = 8
MAX_WORDS_PER_TOKEN: Final = 64
_FILLERS: Final = (" a", "a", ".", ",", "!", "\n", *(f" {word}" for word in WORDS))


def exact_text(count: TokenCount, tokens: int, seed: str) -> str:
    """Write a text of exactly `tokens` tokens; another seed gives one that shares no beginning with it.

    Args:
        count: Counts a text's tokens.
        tokens: The length, special tokens included where `count` counts them.
        seed: Of the words.

    Raises:
        BenchError: SEA509, there is no such text: the tokenizer adds more special tokens itself, or knows no piece
            that is one token.
    """
    for draw in range(MAX_DRAWS):
        drawn = f"{seed}/{draw}" if draw else seed
        filled = _filled(count, " ".join(words(drawn, _most_words(count, tokens, drawn))), tokens)
        if filled is not None:
            return filled
    message = f"no text of exactly {tokens} tokens exists: an empty text has {count('')} with this tokenizer"
    raise BenchError.of("SEA509", message, where="tokenizer")


def _most_words(count: TokenCount, tokens: int, seed: str) -> int:
    """Find how many words fit, by interpolation between a number that fits and one that doesn't."""
    empty = count("")
    fits, exceeds = 0, max(2, tokens * MAX_WORDS_PER_TOKEN)
    guess = max(1, tokens - empty)
    while exceeds - fits > 1:
        guess = guess if fits < guess < exceeds else (fits + exceeds) // 2
        counted = count(" ".join(words(seed, guess)))
        if counted == tokens:
            return guess
        if counted < tokens:
            fits = guess
        else:
            exceeds = guess
        guess = round(guess * (tokens - empty) / max(1, counted - empty))
    return fits


def _filled(count: TokenCount, text: str, tokens: int) -> str | None:
    """Add pieces of one token until the length is right; None when there is no such piece, or the text is too long."""
    counted = count(text)
    while counted < tokens:
        longer = next((text + piece for piece in _FILLERS if count(text + piece) == counted + 1), None)
        if longer is None:
            return None
        text, counted = longer, counted + 1
    return text if counted == tokens else None


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
