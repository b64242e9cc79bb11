from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as TheirCredentials

from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import Signer

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)
BODY = b'{"inputs":"\xc3\xbc"}'


def their_authorization(url: str, headers: Mapping[str, str], credentials: Credentials, region: str) -> str:
    request = AWSRequest("POST", url, data=BODY, headers=dict(headers))
    theirs = TheirCredentials(credentials.access_key_id, credentials.secret_access_key, credentials.session_token)
    with patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None)):
        SigV4Auth(theirs, "sagemaker", region).add_auth(request)
    return str(request.headers["Authorization"])


@pytest.mark.parametrize("token", [None, "T" * 400])
@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1"])
@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/endpoints/chat/invocations-response-stream", {}),
        ("/endpoints/chat/invocations", {"X-Amzn-SageMaker-Inference-Component": "chat-copy  one"}),
        ("/prefix/endpoints/a%20b~c%2Fd/invocations", {}),
    ],
)
def test_signature_is_botocores(token: str | None, region: str, path: str, headers: dict[str, str]) -> None:
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token)
    given = {"Host": "localhost:8443", "Content-Type": "application/json", **headers}
    signed = Signer(credentials, region).signed_headers(path, given, hashlib.sha256(BODY).hexdigest(), NOW)
    assert signed["Authorization"] == their_authorization(f"https://localhost:8443{path}", given, credentials, region)
    assert signed["X-Amz-Date"] == "20261121T010203Z"
    assert signed.get("X-Amz-Security-Token") == token


def test_a_new_day_has_a_new_key() -> None:
    signer = Signer(Credentials("AKIDEXAMPLE", "secret"), "us-east-1")
    first = signer.signed_headers("/", {"Host": "h"}, "0", NOW)["Authorization"]
    later = signer.signed_headers("/", {"Host": "h"}, "0", NOW.replace(day=22))["Authorization"]
    assert "20261121/us-east-1" in first
    assert "20261122/us-east-1" in later
    assert first[-64:] != later[-64:]


def test_each_request_is_signed_with_the_credentials_of_its_moment() -> None:
    sessions = iter((Credentials("AKIDONE", "secret", "token 1"), Credentials("AKIDTWO", "secret", "token 2")))
    signer = Signer(lambda: next(sessions), "us-east-1")
    first, second = (signer.signed_headers("/", {"Host": "h"}, "0", NOW) for _ in range(2))
    assert first["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDONE/")
    assert first["X-Amz-Security-Token"] == "token 1"
    assert second["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDTWO/")
    assert second["X-Amz-Security-Token"] == "token 2"
