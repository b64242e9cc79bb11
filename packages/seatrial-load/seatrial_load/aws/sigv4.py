"""AWS Signature Version 4: of POST requests with a known body, and of the bearer tokens of SageMaker's OpenAI clients.

The signing key is derived once a day. A bearer token is a presigned call that is made on this machine and never sent.
It has the caller's whole authority until it, or the credentials that signed it, expire. Nothing here keeps or
shows one.

Facts: AWS documentation, "Create a signed AWS API request"; SageMaker developer guide, "Invoke endpoints with
OpenAI-compatible APIs"; sagemaker-core 2.27.0, `sagemaker/core/token_generator`; checked in the tests against botocore.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64encode
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from seatrial_load.aws.credentials import Credentials, CredentialSource


SERVICE = "sagemaker"
ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP_FORM = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests to one service of one region; reads the credentials each time, since they may be renewed."""

    credentials: CredentialSource
    region: str
    service: str = SERVICE

    def signed_headers(self, path: str, headers: Mapping[str, str], body_sha256: str, now: datetime) -> dict[str, str]:
        """Return the headers with the date, the session token and the signature added.

        Args:
            path: The path of the request line (percent-encoded once); no query.
            now: The time of signing, in UTC; the service accepts it for five minutes.
        """
        credentials = self.credentials()
        timestamp = now.strftime(TIMESTAMP_FORM)
        signed = {**headers, "X-Amz-Date": timestamp}
        if credentials.session_token:
            signed["X-Amz-Security-Token"] = credentials.session_token
        canonical = sorted((name.lower(), " ".join(value.split())) for name, value in signed.items())
        names = ";".join(name for name, _ in canonical)
        lines = "".join(f"{name}:{value}\n" for name, value in canonical)
        request = f"POST\n{canonical_path(path)}\n\n{lines}\n{names}\n{body_sha256}"
        scope = scope_of(timestamp, self.region, self.service)
        credential, value = f"{credentials.access_key_id}/{scope}", signature(credentials, timestamp, scope, request)
        signed["Authorization"] = f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={value}"
        return signed


def scope_of(timestamp: str, region: str, service: str) -> str:
    """Return the scope of a signature: day, region and service."""
    return f"{timestamp[:8]}/{region}/{service}/aws4_request"


def signature(credentials: Credentials, timestamp: str, scope: str, canonical_request: str) -> str:
    """Return the signature of a canonical request, in hexadecimal digits."""
    hashed = hashlib.sha256(canonical_request.encode()).hexdigest()
    key = _signing_key(credentials.secret_access_key, scope)
    return hmac.digest(key, f"{ALGORITHM}\n{timestamp}\n{scope}\n{hashed}".encode(), "sha256").hex()


@lru_cache(maxsize=256)
def canonical_path(path: str) -> str:
    """Encode the path once more, as every service but S3 wants it."""
    return quote(path, safe="/~")


@lru_cache(maxsize=4)
def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


PREFIX: Final = "sagemaker-api-key-"
# The host that is signed, in every Region; the request goes elsewhere.
HOST: Final = "sagemaker.amazonaws.com"
ACTION: Final = "CallWithBearerToken"
VERSION: Final = "&Version=1"
# The longest life that a token may have.
LONGEST_S: Final = 43_200
NOTHING_SHA256: Final = sha256(b"").hexdigest()


def bearer_token(credentials: Credentials, region: str, now: datetime, *, expires_s: int) -> str:
    """Return a token for the OpenAI path of every endpoint of a Region that the credentials may invoke.

    Args:
        credentials: Sign it; the token ends with them, at the latest.
        expires_s: Its lifetime in seconds: 1 to 43,200.

    Raises:
        ValueError: `expires_s` is out of these bounds.
    """
    if not 1 <= expires_s <= LONGEST_S:
        raise ValueError(f"a token holds 1 to {LONGEST_S:,} s, not {expires_s:,}")
    timestamp = now.strftime(TIMESTAMP_FORM)
    scope = scope_of(timestamp, region, SERVICE)
    query = {
        "Action": ACTION,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
        "X-Amz-Date": timestamp,
        "X-Amz-Expires": f"{expires_s}",
        "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": credentials.session_token} if credentials.session_token else {}),
    }
    canonical = "&".join(sorted(f"{name}={quote(value, safe='-_.~')}" for name, value in query.items()))
    request = f"POST\n/\n{canonical}\nhost:{HOST}\n\nhost\n{NOTHING_SHA256}"
    signed = f"{canonical}&X-Amz-Signature={signature(credentials, timestamp, scope, request)}"
    return PREFIX + b64encode(f"{HOST}/?{signed}{VERSION}".encode()).decode()


@dataclass(slots=True)
class RenewedToken:
    """A source of tokens: each is used for half of its life, and no longer than the credentials that signed it."""

    credentials: CredentialSource
    region: str
    now: Callable[[], datetime]
    expires_s: int
    clock: Callable[[], float] = time.monotonic
    _token: str = field(default="", repr=False)
    _signer: Credentials | None = field(default=None, repr=False)
    _until_s: float = 0.0

    def __call__(self) -> str:
        """Return a token that holds for half of its lifetime at least."""
        signer, now_s = self.credentials(), self.clock()
        if signer != self._signer or now_s >= self._until_s:
            self._token = bearer_token(signer, self.region, self.now(), expires_s=self.expires_s)
            self._signer, self._until_s = signer, now_s + self.expires_s / 2
        return self._token
