"""JSON of bodies: its types, a strict reader, and the errors of both directions.

RequestError    SEA370: the schema can't express what was requested, or the values are impossible
AnswerError     SEA371: the bytes are not an answer of a known shape

Both are `SeatrialError`s and list every problem at once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Mapping


REQUEST_RULE = "SEA370"
ANSWER_RULE = "SEA371"


class RequestError(SeatrialError):
    """The request can't be written in this schema."""

    exit_code = 2


class AnswerError(SeatrialError):
    """The bytes are not an answer of a known shape."""


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "Mapping[str, object]"

MAX_QUOTED_BYTES = 80
MAX_COUNT = 1_000_000_000


def _constant(name: str) -> float:
    # Python writes infinities for an impossible token; NaN is of a broken model.
    if name == "NaN":
        raise ValueError("NaN is not a JSON number")
    return float(name)


_DECODER: Final = json.JSONDecoder(parse_constant=_constant)


def parse_json(text: bytes) -> object:
    """Parse UTF-8 JSON.

    Raises:
        AnswerError: SEA371, it isn't.
    """
    try:
        words = text.decode()
        document, end = _DECODER.raw_decode(words) if words.startswith("{") else (None, -1)
        if end != len(words):  # white space around it, or no object
            document = _DECODER.decode(words)
    except (ValueError, RecursionError) as malformed:
        raise AnswerError.of(ANSWER_RULE, f"not JSON: {text[:MAX_QUOTED_BYTES]!r}") from malformed
    return cast("object", document)


def write_json(document: Mapping[str, Json]) -> bytes:
    """Write a document without spaces; text is escaped to ASCII, so that any text can be sent."""
    return json.dumps(document, separators=(",", ":")).encode()


def object_of(value: object) -> JsonObject:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def json_string(value: object) -> str | None:
    """Return the value if it is a text."""
    return value if isinstance(value, str) else None


def json_count(value: object) -> int | None:
    """Return the value if it is a whole number that can count tokens (0 to 10⁹)."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def whole_number_of(value: object) -> int | None:
    """Return the value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
