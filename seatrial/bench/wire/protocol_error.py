"""The one exception of the wire parsers; the client turns it into a request record, it never leaves the bench."""

from __future__ import annotations


class ProtocolError(ValueError):
    """The bytes are not what their format promises."""


class TooLargeError(ProtocolError):
    """The answer, or a line of it, is larger than its limit, which the message names."""
