"""Why a container does not answer a request: answers to the client, no failures."""

from __future__ import annotations


class BadRequest(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """The request can't be served; carries the message for the client."""


class UnknownModel(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """The request names a model that the container doesn't serve."""


class Overloaded(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """As many requests are in flight as the container admits."""
