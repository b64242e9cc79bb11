from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from botocore import exceptions
from botocore.credentials import ReadOnlyCredentials, RefreshableCredentials

from seatrial_base.errors import BenchError
from seatrial_load.aws.credentials import Credentials, RenewedCredentials, credential_source

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
    assert credential_source({**KEYS, "AWS_SESSION_TOKEN": "token"})() == Credentials("AKIDEXAMPLE", "secret", "token")


def test_an_empty_session_token_is_none() -> None:
    assert credential_source({**KEYS, "AWS_SESSION_TOKEN": ""})().session_token is None


@pytest.mark.usefixtures("no_ambient_credentials")
def test_otherwise_the_chain_of_boto3(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = filed\n")
    assert credential_source({})() == Credentials("AKIDFILE", "filed", None)


@pytest.mark.usefixtures("no_ambient_credentials")
def test_the_chain_of_boto3_is_asked_once(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = filed\n")
    assert credential_source({}) is credential_source({})


@pytest.mark.usefixtures("no_ambient_credentials")
def test_no_credentials() -> None:
    with pytest.raises(BenchError) as caught:
        credential_source({})
    assert str(caught.value) == (
        "SEA503: there are no AWS credentials\n"
        "  hint: log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )


def test_credentials_of_the_environment_are_a_source_that_never_changes() -> None:
    source = credential_source(KEYS)
    assert source() is source()


@dataclass
class Clock:
    """Seconds that pass when a test says so, for this module and for botocore alike."""

    now_s: float = 0.0
    start: datetime = field(default_factory=lambda: datetime(2026, 11, 21, tzinfo=UTC))

    def __call__(self) -> float:
        return self.now_s

    def date(self, after_s: float = 0.0) -> datetime:
        return self.start + timedelta(seconds=self.now_s + after_s)


class Issuer:
    """Issues sessions of one hour, each with the next number; refuses to when it is told so."""

    def __init__(self, clock: Clock) -> None:
        self.issued = 0
        self.refusal: Exception | None = None
        self._clock = clock

    def __call__(self) -> dict[str, str]:
        if self.refusal is not None:
            raise self.refusal
        self.issued += 1
        return {
            "access_key": f"AKID{self.issued}",
            "secret_key": "secret",
            "token": f"token {self.issued}",
            "expiry_time": self._clock.date(3600).isoformat(),
        }


def botocores(issuer: Issuer, clock: Clock) -> RefreshableCredentials:
    first = issuer()
    return RefreshableCredentials(
        first["access_key"], first["secret_key"], first["token"], clock.date(3600), issuer, "test", clock.date
    )


def test_credentials_are_renewed_before_they_expire() -> None:
    clock = Clock()
    source = RenewedCredentials(botocores(Issuer(clock), clock), clock=clock)
    assert source() == Credentials("AKID1", "secret", "token 1")
    clock.now_s = 3600 - 901
    assert source().session_token == "token 1"
    clock.now_s = 3600 - 899
    assert source().session_token == "token 2"


class Asked:
    """Counts how often it is asked for credentials, and numbers them so."""

    def __init__(self) -> None:
        self.times = 0

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        self.times += 1
        return ReadOnlyCredentials(f"AKID{self.times}", "secret", None)


def test_boto3_is_asked_at_most_once_a_second() -> None:
    clock, asked = Clock(), Asked()
    source = RenewedCredentials(asked, clock=clock)
    for clock.now_s in (0.0, 0.5, 0.99):
        assert source().access_key_id == "AKID1"
    clock.now_s = 1.0
    assert source().access_key_id == "AKID2"
    assert asked.times == 2


@pytest.mark.parametrize(
    "refusal",
    [
        exceptions.CredentialRetrievalError(provider="test", error_msg="the role is gone"),
        exceptions.ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "AssumeRole"),
        RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired."),
    ],
)
def test_credentials_that_cannot_be_renewed_go_on_signing(refusal: Exception) -> None:
    """The service then refuses each request in its own words: data of class auth, no broken trial."""
    clock = Clock()
    issuer = Issuer(clock)
    source = RenewedCredentials(botocores(issuer, clock), clock=clock)
    issuer.refusal, clock.now_s = refusal, 3601.0
    assert source() == Credentials("AKID1", "secret", "token 1")
    issuer.refusal, clock.now_s = None, 3603.0
    assert source().session_token == "token 2"


def test_secrets_do_not_show() -> None:
    assert repr(Credentials("AKIDEXAMPLE", "secret", "token")) == "Credentials(access_key_id='AKIDEXAMPLE')"
