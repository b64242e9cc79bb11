"""The two ways in which a body can be wrong; both are `SeatrialError`s and tell every problem at once.

RequestError    SEA370: the schema can't say what was asked for, or the values are impossible
AnswerError     SEA371: the bytes are not an answer of a known shape
"""

from __future__ import annotations

from seatrial_base.errors import SeatrialError

REQUEST_RULE = "SEA370"
ANSWER_RULE = "SEA371"


class RequestError(SeatrialError):
    """The request can't be written in this schema."""

    exit_code = 2


class AnswerError(SeatrialError):
    """The bytes are not an answer of a known shape."""
