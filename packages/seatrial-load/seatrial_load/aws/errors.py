"""Failures of calls of AWS, as problems with their rules: the one place where botocore's exceptions are read.

Facts: the errors common to all AWS services ("Common error types" of their API references), those of AWS STS, Amazon
EC2 and Amazon S3, and `botocore.exceptions`. Some failures arrive as Python's own: a file of credentials that
can't be read is an `OSError`, an endpoint that is no URL a `ValueError`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError


EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
REFUSED = (
    "AuthFailure",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "InvalidToken",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotSignedUp",
    "OptInRequired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
    "UnrecognizedClientException",
)
DENIED = (
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "NotAuthorized",
    "UnauthorizedException",
    "UnauthorizedOperation",
)
BUSY = (
    "InternalFailure",
    "InternalServerError",
    "InternalServerException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
)
RENEW = (
    "renew them (`aws sso login`, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN); check with `aws "
    "sts get-caller-identity`"
)
LOG_IN = "log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
PROFILES = "set AWS_PROFILE to one of `aws configure list-profiles`"
CONFIGURE = "fix the profile in ~/.aws/config (AWS_CONFIG_FILE), or choose another with AWS_PROFILE"
CONNECTION = "check the connection, the region and AWS_ENDPOINT_URL"
AGAIN = "try again in a minute; the Service Quotas console shows the account's quotas"
WRONG_VALUE = "check AWS_ENDPOINT_URL and the other AWS_ variables, and the profile in ~/.aws/config"
_NOT_AUTHORIZED = re.compile(
    r"(?:User: (?P<who>\S+) is )?not authorized to perform: (?P<action>[\w-]+:\w+)(?: on resource: (?P<what>\S+))?"
)


def aws_problem(error: BaseException, *, where: str) -> Finding | None:
    """Return the problem of a failed call, and its fix.

    SEA503: there are no credentials, they have expired, or they are refused. SEA504: AWS can't be reached, or refuses
    for load. SEA511: a permission is missing. SEA512: a value of the AWS configuration can't be used. SEA501: a name
    in the call is impossible.

    Returns:
        The problem; None of a response about the call's subject, and of any other exception.
    """
    from botocore import exceptions  # noqa: PLC0415 (half a second; the raiser of such an error has loaded it)

    if isinstance(error, exceptions.ClientError):
        return _of_answer(error, where)
    if isinstance(error, exceptions.BotoCoreError):
        return _of_botocore(error, where)
    if isinstance(error, json.JSONDecodeError):
        message = f"the output of credential_process is not JSON: {error}"
        return Finding("SEA503", Place.at(where), message, CONFIGURE)
    if isinstance(error, OSError) and error.filename:
        # a file that botocore itself opens holds a token, or is the program that prints credentials
        message = f"the AWS credentials come from {error.filename}, which can't be read: {error.strerror}"
        hint = "check AWS_WEB_IDENTITY_TOKEN_FILE, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE and credential_process"
        return Finding("SEA503", Place.at(where), message, hint)
    if isinstance(error, ValueError):
        return Finding("SEA512", Place.at(where), f"the AWS configuration has an invalid value: {error}", WRONG_VALUE)
    return None


def is_denied(error: ClientError) -> bool:
    """Return whether a service refused a call for lack of a permission."""
    return error.response.get("Error", {}).get("Code", "") in DENIED


def _of_answer(error: ClientError, where: str) -> Finding | None:
    error_body = error.response.get("Error", {})
    code, message = error_body.get("Code", ""), error_body.get("Message", "")
    text = f"{code}: {message}" if message else code
    if code in EXPIRED:
        clock = "; if they are new, check this machine's clock" if code == "RequestExpired" else ""
        return Finding("SEA503", Place.at(where), f"the AWS credentials have expired ({text})", f"{RENEW}{clock}")
    if code == "RequestTimeTooSkewed":
        hint = "set this machine's clock"
        return Finding("SEA503", Place.at(where), f"the request's timestamp is refused ({text})", hint)
    if code in REFUSED:
        return Finding("SEA503", Place.at(where), f"the AWS credentials are refused ({text})", RENEW)
    if code in DENIED:
        return _denied(error.operation_name, text, where)
    if code in BUSY:
        return Finding("SEA504", Place.at(where), f"AWS could not carry out {error.operation_name} ({text})", AGAIN)
    return None


def _denied(operation: str, text: str, where: str) -> Finding:
    # Some services name the operation alone, others caller, action and resource.
    match = _NOT_AUTHORIZED.search(text)
    if match is None:
        hint = f"allow the caller to call {operation} there, or use other credentials"
        return Finding("SEA511", Place.at(where), f"access is denied: {operation} ({text})", hint)
    action, what = match["action"], (match["what"] or "").rstrip(".,")
    who = match["who"] or "the caller"
    target = f" on {what}" if what else ""
    reason = text[match.end() :].strip(" .,")
    hint = f"allow {action}{target} in the caller's policy, or use other credentials"
    return Finding("SEA511", Place.at(where), f"{who} may not {action}{target}{f' ({reason})' if reason else ''}", hint)


def _of_botocore(error: BotoCoreError, where: str) -> Finding:
    from botocore import exceptions  # noqa: PLC0415 (likewise)

    text = f"{error}".replace("\n", " ").strip()
    if isinstance(error, exceptions.ProfileNotFound):
        return Finding("SEA503", Place.at(where), text, PROFILES)
    if isinstance(error, exceptions.ConfigParseError | exceptions.ConfigNotFound | exceptions.InvalidConfigError):
        return Finding("SEA503", Place.at(where), f"the AWS configuration holds no credentials: {text}", CONFIGURE)
    expired = (exceptions.UnauthorizedSSOTokenError, exceptions.LoginRefreshRequired)
    if isinstance(error, expired) or (isinstance(error, exceptions.TokenRetrievalError) and "expired" in text):
        return Finding("SEA503", Place.at(where), f"the AWS login has expired: {text}", RENEW)
    missing = (
        exceptions.CredentialRetrievalError,
        exceptions.LoginError,
        exceptions.MetadataRetrievalError,
        exceptions.MissingDependencyException,
        exceptions.NoAuthTokenError,
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.RefreshWithMFAUnsupportedError,
        exceptions.SSOError,
        exceptions.TokenRetrievalError,
        exceptions.UnknownCredentialError,
    )
    if isinstance(error, missing):
        return Finding("SEA503", Place.at(where), f"there are no AWS credentials: {text}", LOG_IN)
    if isinstance(error, exceptions.ParamValidationError):
        return Finding("SEA501", Place.at(where), text)
    return Finding("SEA504", Place.at(where), f"AWS can't be reached: {text}", CONNECTION)
