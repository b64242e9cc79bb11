"""Tokens for OpenAI clients, byte for byte those that botocore presigns as sagemaker-core does."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import UTC, datetime

import botocore.auth
import botocore.credentials
import pytest
from botocore.awsrequest import AWSRequest

from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import LONGEST_S, PREFIX, RenewedToken, bearer_token

NOW = datetime(2026, 11, 25, 3, 4, 5, tzinfo=UTC)
USER = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SESSION = Credentials("ASIAEXAMPLE", "a/secret+with=signs", "IQoJ/session+token==")


def of_sagemaker_core(credentials: Credentials, region: str, expires_s: int) -> str:
    """Return what `sagemaker.core.token_generator` of sagemaker-core 2.27.0 makes."""
    asked = AWSRequest(
        "POST",
        "https://sagemaker.amazonaws.com/",
        headers={"host": "sagemaker.amazonaws.com"},
        params={"Action": "CallWithBearerToken"},
    )
    key = botocore.credentials.Credentials(
        credentials.access_key_id, credentials.secret_access_key, credentials.session_token
    )
    botocore.auth.SigV4QueryAuth(key, "sagemaker", region, expires=expires_s).add_auth(asked)
    presigned = str(asked.url).removeprefix("https://") + "&Version=1"
    return PREFIX + b64encode(presigned.encode()).decode()


@pytest.mark.parametrize("credentials", [USER, SESSION])
@pytest.mark.parametrize("region", ["us-east-1", "eu-central-2"])
def test_a_token_has_the_signature_of_botocore(
    credentials: Credentials, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: NOW)
    ours = bearer_token(credentials, region, NOW, expires_s=900)
    theirs = of_sagemaker_core(credentials, region, 900)
    assert fields(ours) == fields(theirs)


def fields(token: str) -> list[str]:
    """Return the parts of a token's query; their order means nothing, but that the version stands behind all."""
    decoded = b64decode(token.removeprefix(PREFIX)).decode()
    assert decoded.endswith("&Version=1")
    host, _, query = decoded.partition("?")
    return [host, *sorted(query.split("&"))]


@pytest.mark.parametrize("expires_s", [0, -1, LONGEST_S + 1])
def test_a_token_holds_a_second_to_twelve_hours(expires_s: int) -> None:
    with pytest.raises(ValueError, match="1 to 43,200 s"):
        bearer_token(USER, "us-east-1", NOW, expires_s=expires_s)


def test_no_secret_is_in_a_token() -> None:
    decoded = b64decode(bearer_token(USER, "us-east-1", NOW, expires_s=60).removeprefix(PREFIX)).decode()
    assert USER.secret_access_key not in decoded
    assert USER.access_key_id in decoded


def test_a_token_is_renewed_after_half_of_its_life_and_with_its_credentials() -> None:
    at_s, signer = [0.0], [USER]
    times = iter(datetime(2026, 11, 25, 3, minute, tzinfo=UTC) for minute in range(60))
    source = RenewedToken(lambda: signer[0], "us-east-1", lambda: next(times), 900, clock=lambda: at_s[0])
    first = source()
    at_s[0] = 449.0
    assert source() == first
    at_s[0] = 450.0
    second = source()
    assert second != first
    signer[0] = SESSION
    assert source() not in {first, second}


def test_a_source_of_tokens_shows_none() -> None:
    source = RenewedToken(USER, "us-east-1", lambda: NOW, 900)
    assert source() not in repr(source)
