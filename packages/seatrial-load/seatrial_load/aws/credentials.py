"""AWS credentials of the process, from its environment, else from boto3's chain, and the authorities that TLS trusts.

A trial may outlive its credentials. So a source of credentials signs, called for every request:

    those of the environment      stay as they are: a Lambda function's outlive the function's run
    those of boto3's chain        are renewed by boto3 before they expire (15 minutes before, at the latest 10)

Credentials that can't be renewed go on signing; the service then refuses the requests, which is data (`auth`).
"""

from __future__ import annotations

import os
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.aws.errors import LOG_IN, aws_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


RENEWAL_CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials that sign a request, with no secret in their `repr`; a source of credentials that never change."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    def __call__(self) -> Credentials:
        """Return themselves."""
        return self


CredentialSource: TypeAlias = "Callable[[], Credentials]"


class _Frozen(Protocol):
    """What botocore's `get_frozen_credentials` returns."""

    @property
    def access_key(self) -> str | None:
        """The key's ID."""

    @property
    def secret_key(self) -> str | None:
        """The key."""

    @property
    def token(self) -> str | None:
        """The session's token."""


class Refreshable(Protocol):
    """Botocore's credentials: renew themselves when they are read shortly before they expire."""

    def get_frozen_credentials(self) -> _Frozen:
        """Return what is valid now."""


class RenewedCredentials:
    """Credentials of boto3's chain; at most once a second boto3 checks whether they need to be renewed.

    Each process of a load renews its own, since botocore renews in the process that reads them. The one request that is
    written meanwhile waits for it.
    """

    __slots__ = ("_clock", "_current", "_next_check_s", "_refreshable")

    def __init__(self, refreshable: Refreshable, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._refreshable = refreshable
        self._clock = clock
        with _explained():
            self._current = _credentials_of(refreshable.get_frozen_credentials())
        self._next_check_s = clock() + RENEWAL_CHECK_S

    def __call__(self) -> Credentials:
        """Return the credentials that sign now; the last ones where they can't be renewed."""
        now_s = self._clock()
        if now_s >= self._next_check_s:
            self._next_check_s = now_s + RENEWAL_CHECK_S
            self._current = self._renewed()
        return self._current

    def _renewed(self) -> Credentials:
        from botocore import exceptions  # noqa: PLC0415 (loaded already: these credentials are botocore's)

        try:
            return _credentials_of(self._refreshable.get_frozen_credentials())
        except (exceptions.BotoCoreError, exceptions.ClientError, BenchError, OSError, RuntimeError, ValueError):
            return self._current  # the service's refusal of them is more exact than a guess


def credential_source(environ: Mapping[str, str] = os.environ) -> CredentialSource:
    """Return the source of the credentials that this process runs with, renewed where boto3 can renew them.

    Raises:
        BenchError: SEA503, there are none.
    """
    access_key_id, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if access_key_id and secret:
        return Credentials(access_key_id, secret, environ.get("AWS_SESSION_TOKEN") or None)
    return _of_boto3(tuple(sorted(os.environ.items())))


@lru_cache(maxsize=1)
def _of_boto3(_environment: tuple[tuple[str, str], ...]) -> RenewedCredentials:
    # Once for an environment: a profile that takes on a role does so again each time it is read.
    import boto3  # noqa: PLC0415 (costs more than a second; only needed where the environment has no credentials)

    with _explained():
        credentials = boto3.Session().get_credentials()
    if credentials is None:
        raise _none()
    return RenewedCredentials(credentials)


@contextmanager
def _explained() -> Iterator[None]:
    """Raise why boto3's chain has no credentials, or can't be read."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (boto3 has loaded it)

    try:
        yield
    except (BotoCoreError, ClientError, OSError, ValueError) as failed:
        problem = aws_problem(failed, where="")
        if problem is None:
            problem = Finding("SEA503", Place(), f"there are no AWS credentials: {failed}", LOG_IN)
        raise BenchError([problem]) from failed


def _credentials_of(frozen: _Frozen) -> Credentials:
    if not frozen.access_key or not frozen.secret_key:
        raise _none()
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token)


def _none() -> BenchError:
    return BenchError.of("SEA503", "there are no AWS credentials", hint=LOG_IN)


def trusted_authorities(environ: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """Return a context that checks a server's certificate, alike on every Python.

    Since 3.13 the default refuses an authority that lacks what RFC 5280 requires, as those of company proxies do, and
    trusts one in the middle of a chain; boto3's context does neither.

    Raises:
        OSError: The file that `AWS_CA_BUNDLE` names can't be read, or holds no certificate.
    """
    tls = ssl.create_default_context(cafile=environ.get("AWS_CA_BUNDLE") or None)
    tls.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return tls
