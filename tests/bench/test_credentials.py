from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.bench.credentials import Credentials, ambient_credentials
from seatrial.errors import BenchError

if TYPE_CHECKING:
    from pathlib import Path

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture
def no_ambient_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_a_lambda_finds_its_roles_in_the_environment() -> None:
    assert ambient_credentials({**KEYS, "AWS_SESSION_TOKEN": "token"}) == Credentials("AKIDEXAMPLE", "secret", "token")


def test_an_empty_session_token_is_none() -> None:
    assert ambient_credentials({**KEYS, "AWS_SESSION_TOKEN": ""}).session_token is None


@pytest.mark.usefixtures("no_ambient_credentials")
def test_otherwise_the_chain_of_boto3(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = filed\n")
    assert ambient_credentials({}) == Credentials("AKIDFILE", "filed", None)


@pytest.mark.usefixtures("no_ambient_credentials")
def test_no_credentials() -> None:
    with pytest.raises(BenchError) as caught:
        ambient_credentials({})
    assert str(caught.value) == (
        "SEA503: no AWS credentials to sign the trial's requests with\n"
        "  hint: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or choose a profile with AWS_PROFILE"
    )


def test_secrets_do_not_show() -> None:
    assert repr(Credentials("AKIDEXAMPLE", "secret", "token")) == "Credentials(access_key_id='AKIDEXAMPLE')"
