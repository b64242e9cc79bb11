"""Who sent a request: AWS Signature Version 4, in headers or in a presigned URL, checked as AWS checks it.

Accepted are the access key of this start and what MiniStack issued under it: the temporary credentials of STS roles, of
functions too, and the access keys of IAM users. The canonical request and the signature are computed by MiniStack's own
primitives.

Facts: AWS documentation, "Create a signed AWS API request" and "Authenticating Requests (AWS Signature Version 4)".
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ministack.core.iam_evaluator import CredentialResolutionError, is_root_access_key, resolve_credential
from ministack.core.responses import _account_from_sts_session
from ministack.core.sigv4 import (
    HeaderSignature,
    header_signature_failure,
    parse_header_signature,
    parse_query_signature,
    request_time_failure,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial_laptop.state import LocalAws


EXPIRED: Final = "RequestExpired"
ALGORITHM: Final = "AWS4-HMAC-SHA256"
TIMESTAMP: Final = re.compile(r"\d{8}T\d{6}Z")
TIMESTAMP_FORM: Final = "%Y%m%dT%H%M%SZ"
SHA256: Final = re.compile(r"[0-9a-f]{64}")
UNSIGNED: Final = (
    "UNSIGNED-PAYLOAD",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
)
"""What `x-amz-content-sha256` may say instead of a hash; the signed chunks of the last two are checked one by one."""
SKEW: Final = timedelta(minutes=15)
LONGEST_EXPIRY_S: Final = 7 * 24 * 3600
MOST_EXPIRY_DIGITS: Final = 9
BODY_HEADER: Final = "x-amz-content-sha256"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: the error's code in each of AWS's three forms of errors, its message and status."""

    json: str
    query: str
    s3: str
    message: str
    status: HTTPStatus = HTTPStatus.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Received:
    """The head of a request as it arrived; names of headers in lower case, values of repeated ones joined by commas.

    Attributes:
        path: Its path, decoded: by it the request is routed.
        raw_path: Its path as it was sent: this is what its sender signed.
    """

    method: str
    path: str
    raw_path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]

    def parameter(self, name: str) -> str:
        """Return the first value of a query parameter, or nothing."""
        return next(iter(self.query.get(name, ())), "")


@dataclass(frozen=True, slots=True)
class Claim:
    """A signature whose form, time and access key are right; whether the secret was known shows with the body."""

    received: Received
    signature: HeaderSignature
    secret: str
    presigned: bool

    @property
    def is_independent_of_body(self) -> bool:
        """Whether the signature can be checked before the body arrives: the head states the body's hash, or none."""
        stated = self.received.headers.get(BODY_HEADER, "")
        # A presigned request of S3 leaves the body out of its signature.
        is_of_s3 = self.presigned and self.signature.service == "s3"
        return is_of_s3 or bool(SHA256.fullmatch(stated)) or stated in UNSIGNED[:2]

    def refusal_of_head(self) -> Refusal | None:
        """Return why the head isn't what its sender signed; `None` when it is, or when the body decides."""
        return self._mismatch(b"") if self.is_independent_of_body else None

    def refusal(self, body: bytes) -> Refusal | None:
        """Return why the request isn't what its sender signed, or None when it is."""
        stated = self.received.headers.get(BODY_HEADER, "")
        if SHA256.fullmatch(stated) and not hmac.compare_digest(stated, hashlib.sha256(body).hexdigest()):
            return _body_differs("The provided 'x-amz-content-sha256' header does not match what was computed.")
        if stated and not SHA256.fullmatch(stated) and stated not in UNSIGNED:
            return _body_differs(f"x-amz-content-sha256 must be a SHA-256 hash or one of {', '.join(UNSIGNED)}.")
        return self._mismatch(body)

    def _mismatch(self, body: bytes) -> Refusal | None:
        failure = header_signature_failure(
            self.signature,
            self.secret,
            self.received.method,
            self.received.raw_path,
            self.received.query,
            self.received.headers,
            body,
            presigned=self.presigned,
        )
        return _mismatch(failure[1]) if failure else None


def read_claim(received: Received, process: LocalAws, now: datetime) -> Claim | Refusal:
    """Read a request's signature and look up the secret of its access key; the body isn't needed yet."""
    presigned = "authorization" not in received.headers and "X-Amz-Signature" in received.query
    if not presigned and "authorization" not in received.headers:
        return Refusal(
            "MissingAuthenticationTokenException",
            "MissingAuthenticationToken",
            "AccessDenied",
            "Missing Authentication Token",
        )
    named = received.parameter("X-Amz-Algorithm") if presigned else received.headers["authorization"].partition(" ")[0]
    if named != ALGORITHM:
        return _incomplete(f"The only algorithm is {ALGORITHM}.")
    signature = parse_query_signature(received.query) if presigned else parse_header_signature(received.headers)
    if not isinstance(signature, HeaderSignature):
        return _incomplete(signature[1])
    refused = _unsigned_header(received, signature) or _out_of_time(received, signature, now, presigned=presigned)
    if refused:
        return refused
    token = received.parameter("X-Amz-Security-Token") if presigned else received.headers.get("x-amz-security-token")
    secret = _secret_of(signature.access_key_id, token or "", process)
    return Claim(received, signature, secret, presigned) if isinstance(secret, str) else secret


def access_denied(message: str) -> Refusal:
    """Return the refusal of a request that no signature would help."""
    return Refusal("AccessDeniedException", "AccessDenied", "AccessDenied", message)


def _unsigned_header(received: Received, signature: HeaderSignature) -> Refusal | None:
    signed = signature.signed_headers.split(";")
    needed = {"host", *(name for name in received.headers if name.startswith("x-amz-") and name != BODY_HEADER)}
    if left := sorted(needed.difference(signed)):
        return _mismatch(f"There were headers present in the request which were not signed: {', '.join(left)}")
    return None


def _out_of_time(received: Received, signature: HeaderSignature, now: datetime, *, presigned: bool) -> Refusal | None:
    if not TIMESTAMP.fullmatch(signature.amz_date):
        return _incomplete("The date of the signature must be of the form YYYYMMDDTHHMMSSZ.")
    if presigned:
        expires = received.parameter("X-Amz-Expires")
        is_number = len(expires) <= MOST_EXPIRY_DIGITS and expires.isascii() and expires.isdigit()
        if not (is_number and 0 < int(expires) <= LONGEST_EXPIRY_S):
            return _incomplete(f"X-Amz-Expires must be from 1 to {LONGEST_EXPIRY_S} s.")
        try:
            signed = datetime.strptime(signature.amz_date, TIMESTAMP_FORM).replace(tzinfo=UTC)
        except ValueError:
            return _incomplete("The date of the signature is no date.")
        if signed - SKEW <= now <= signed + timedelta(seconds=int(expires)):
            return None
        return Refusal("InvalidSignatureException", EXPIRED, "AccessDenied", "Request has expired")
    failure = request_time_failure(signature, now=now)
    return Refusal("InvalidSignatureException", EXPIRED, "RequestTimeTooSkewed", failure[1]) if failure else None


def _secret_of(access_key_id: str, token: str, process: LocalAws) -> str | Refusal:
    if access_key_id == process.access_key_id:
        # The key of this start is no temporary one: a session token with it belongs to another key.
        return _unknown() if token else process.secret_access_key
    # MiniStack's well-known ones.
    if is_root_access_key(access_key_id):
        return _unknown()
    account = _account_from_sts_session(access_key_id) or process.account
    credential = resolve_credential(access_key_id, account, token)
    if not isinstance(credential, CredentialResolutionError):
        return str(credential.secret_access_key)
    if credential.code == "ExpiredTokenException":
        return Refusal("ExpiredTokenException", "ExpiredToken", "ExpiredToken", credential.message)
    return _unknown()


def too_large(most_bytes: int) -> Refusal:
    """Return the refusal of a body that is longer than what is read of a sender who is not proven."""
    return Refusal(
        "RequestEntityTooLargeException",
        "RequestEntityTooLarge",
        "EntityTooLarge",
        f"A request whose head does not prove its sender has at most {most_bytes:,} bytes.",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    )


def _incomplete(message: str) -> Refusal:
    return Refusal("IncompleteSignatureException", "IncompleteSignature", "AuthorizationHeaderMalformed", message)


def _unknown() -> Refusal:
    return Refusal(
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidAccessKeyId",
        "The security token included in the request is invalid.",
    )


def _mismatch(message: str) -> Refusal:
    return Refusal("InvalidSignatureException", "SignatureDoesNotMatch", "SignatureDoesNotMatch", message)


def _body_differs(message: str) -> Refusal:
    return Refusal("InvalidSignatureException", "SignatureDoesNotMatch", "XAmzContentSHA256Mismatch", message)
