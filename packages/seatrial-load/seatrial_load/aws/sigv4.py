"""AWS Signature Version 4 for POST requests with a known body; the signing key is derived once a day.

Facts: AWS documentation, "Create a signed AWS API request"; checked in the tests against botocore.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from seatrial_load.aws.credentials import Credentials, CredentialSource


SERVICE = "sagemaker"
ALGORITHM = "AWS4-HMAC-SHA256"
TIMESTAMP_FORM = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests to one service of one region; asks for the credentials each time, since they may be renewed."""

    credentials: CredentialSource
    region: str
    service: str = SERVICE

    def signed_headers(self, path: str, headers: Mapping[str, str], body_sha256: str, now: datetime) -> dict[str, str]:
        """Return the headers with the date, the session token and the signature added.

        Args:
            path: The path as it stands in the request line (percent-encoded once); no query.
            headers: The headers to sign, `Host` among them.
            body_sha256: The body's SHA-256 in hexadecimal digits.
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
        signed["Authorization"] = self._authorization(credentials, timestamp, request, names)
        return signed

    def _authorization(self, credentials: Credentials, timestamp: str, canonical_request: str, names: str) -> str:
        scope = scope_of(timestamp, self.region, self.service)
        signed = signature(credentials, timestamp, scope, canonical_request)
        credential = f"{credentials.access_key_id}/{scope}"
        return f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signed}"


def scope_of(timestamp: str, region: str, service: str) -> str:
    """Return what a signature of a time is good for."""
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
