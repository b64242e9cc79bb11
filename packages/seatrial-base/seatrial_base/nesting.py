"""JSON that is nested no deeper than what reads it can follow."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Lists and objects within each other. Ours have about ten, and functions that follow them call themselves.
MOST_DEPTH: Final = 100
_TOO_DEEP: Final = f"nested more than {MOST_DEPTH} deep"


def json_document(
    text: str | bytes,
    *,
    parse_constant: Callable[[str], object] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> object:
    """Parse JSON as `json.loads`, to the same depth on every Python.

    Python 3.11 parses about 1,000 levels, 3.13 about 10,000 and 3.14 some ten thousand more, each with words of its
    own beyond; a function that follows the document by calling itself ends at 1,000 on each.

    Raises:
        ValueError: It is no JSON, or nested more than 100 deep.
    """
    try:
        document: object = json.loads(text, parse_constant=parse_constant, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [document]
    for _ in range(MOST_DEPTH + 1):
        nested = [each for each in level if isinstance(each, dict | list)]
        if not nested:
            return document
        level = list(chain.from_iterable(each.values() if isinstance(each, dict) else each for each in nested))
    raise ValueError(_TOO_DEEP)
