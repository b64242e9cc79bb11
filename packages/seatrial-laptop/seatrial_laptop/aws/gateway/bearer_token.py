"""The bearer token of a request to the OpenAI path: decoded, and the call that it presigns checked as a signature."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from seatrial_laptop.aws.gateway.signature import Received, Refusal, access_denied, read_claim
from seatrial_laptop.environment import REGION
from seatrial_load.aws.sigv4 import ACTION, HOST, LONGEST_S, PREFIX, SERVICE, VERSION

if TYPE_CHECKING:
    from datetime import datetime

    from seatrial_laptop.aws.gateway.signature import Claim
    from seatrial_laptop.state import RunningProcess


SCHEME: Final = "bearer "
LONGEST_TOKEN: Final = 16_384
"""Characters: a session token has up to 2,048 (AWS STS API reference), encoded twice here."""
NO_TOKEN: Final = "The OpenAI path takes a bearer token alone: Authorization: Bearer sagemaker-api-key-…"  # noqa: S105 (a message)
NOT_READ: Final = "The bearer token is not one of SageMaker's."


def read_bearer(received: Received, process: RunningProcess, now: datetime) -> Claim | Refusal:
    """Return whose token a request brings: its signature is right and of this Region, and it has not expired.

    A signature of the request itself is refused, as on AWS.

    Args:
        received: The head of the request.
        process: Whose key signs.
        now: The time.
    """
    given = received.headers.get("authorization", "")
    if not given.lower().startswith(SCHEME):
        return access_denied(NO_TOKEN)
    call = _presigned_call(given[len(SCHEME) :].strip())
    if call is None:
        return access_denied(NOT_READ)
    claim = read_claim(call, process, now)
    if isinstance(claim, Refusal):
        return claim
    scope = claim.signature
    if (scope.service, scope.region) != (SERVICE, REGION):
        return access_denied(f"The bearer token is for {scope.service} in {scope.region}.")
    return claim.refusal(b"") or claim


def _presigned_call(token: str) -> Received | None:
    """Return the call that a token presigns, or `None` when it is none of SageMaker's tokens."""
    if not token.startswith(PREFIX) or len(token) > LONGEST_TOKEN:
        return None
    try:
        decoded = b64decode(token.removeprefix(PREFIX), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    head = f"{HOST}/?"
    if not decoded.startswith(head) or not decoded.endswith(VERSION):
        return None
    query = parse_qs(decoded[len(head) : -len(VERSION)], keep_blank_values=True)
    expires = query.get("X-Amz-Expires", [""])[0]
    is_too_long = len(expires) > len(f"{LONGEST_S}") or (expires.isdigit() and int(expires) > LONGEST_S)
    if query.get("Action") != [ACTION] or is_too_long:
        return None
    return Received("POST", "/", "/", query, {"host": HOST})
