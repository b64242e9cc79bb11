"""SageMaker's bearer tokens for OpenAI clients: a presigned call that is made on this machine and never sent.

A token has the caller's whole authority until it, or the credentials that signed it, expire. Nothing here keeps or
shows one.

Facts: SageMaker developer guide, "Invoke endpoints with OpenAI-compatible APIs"; sagemaker-core 2.27.0,
`sagemaker/core/token_generator`; checked in the tests against botocore.
"""

from __future__ import annotations

import time
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from seatrial_load.aws.sigv4 import ALGORITHM, SERVICE, TIMESTAMP_FORM, scope_of, signature

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from seatrial_load.aws.credentials import Credentials, CredentialSource


PREFIX: Final = "sagemaker-api-key-"
HOST: Final = "sagemaker.amazonaws.com"
"""The host that is signed, in every Region; the request goes elsewhere."""
ACTION: Final = "CallWithBearerToken"
VERSION: Final = "&Version=1"
LONGEST_S: Final = 43_200
"""The longest life that a token may have."""
NOTHING_SHA256: Final = sha256(b"").hexdigest()


def bearer_token(credentials: Credentials, region: str, now: datetime, *, expires_s: int) -> str:
    """Return a token for the OpenAI path of every endpoint of a Region that the credentials may invoke.

    Args:
        credentials: What signs it; the token ends with them, at the latest.
        region: The Region.
        now: The time of signing, in UTC.
        expires_s: Seconds that it holds: 1 to 43,200.

    Raises:
        ValueError: `expires_s` is out of these bounds.
    """
    if not 1 <= expires_s <= LONGEST_S:
        raise ValueError(f"a token holds 1 to {LONGEST_S:,} s, not {expires_s:,}")
    timestamp = now.strftime(TIMESTAMP_FORM)
    scope = scope_of(timestamp, region, SERVICE)
    asked = {
        "Action": ACTION,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
        "X-Amz-Date": timestamp,
        "X-Amz-Expires": f"{expires_s}",
        "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": credentials.session_token} if credentials.session_token else {}),
    }
    canonical = "&".join(sorted(f"{name}={quote(value, safe='-_.~')}" for name, value in asked.items()))
    request = f"POST\n/\n{canonical}\nhost:{HOST}\n\nhost\n{NOTHING_SHA256}"
    signed = f"{canonical}&X-Amz-Signature={signature(credentials, timestamp, scope, request)}"
    return PREFIX + b64encode(f"{HOST}/?{signed}{VERSION}".encode()).decode()


@dataclass(slots=True)
class RenewedToken:
    """A source of tokens: each is used for half of its life, and no longer than the credentials that signed it.

    Attributes:
        credentials: What signs.
        region: The Region.
        now: The time of day in UTC, which dates the tokens.
        expires_s: Seconds that a token holds.
        clock: Seconds that only grow.
    """

    credentials: CredentialSource
    region: str
    now: Callable[[], datetime]
    expires_s: int
    clock: Callable[[], float] = time.monotonic
    _token: str = field(default="", repr=False)
    _signer: Credentials | None = field(default=None, repr=False)
    _until_s: float = 0.0

    def __call__(self) -> str:
        """Return a token that holds for half of its life at least."""
        signer, now_s = self.credentials(), self.clock()
        if signer != self._signer or now_s >= self._until_s:
            self._token = bearer_token(signer, self.region, self.now(), expires_s=self.expires_s)
            self._signer, self._until_s = signer, now_s + self.expires_s / 2
        return self._token
