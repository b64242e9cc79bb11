"""AWS credentials of the process: from its environment, else from boto3's chain (profiles, SSO, instance roles)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Credentials:
    """What signs a request; the secrets don't show in its `repr`."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def ambient_credentials(environ: Mapping[str, str] = os.environ) -> Credentials:
    """Return the credentials that this process runs with; a Lambda function finds its role's in its environment.

    Raises:
        BenchError: SEA503, there are none.
    """
    access_key_id, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if access_key_id and secret:
        return Credentials(access_key_id, secret, environ.get("AWS_SESSION_TOKEN") or None)
    return _credentials_of_boto3()


def _credentials_of_boto3() -> Credentials:
    import boto3  # noqa: PLC0415 (costs more than a second; only needed where the environment has no credentials)

    found = boto3.Session().get_credentials()
    frozen = found.get_frozen_credentials() if found is not None else None
    if frozen is None or not frozen.access_key or not frozen.secret_key:
        raise BenchError.of(
            "SEA503",
            "no AWS credentials to sign the trial's requests with",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or choose a profile with AWS_PROFILE",
        )
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token)
