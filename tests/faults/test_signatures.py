"""Clocks that differ and credentials that expire: learned or renewed where that is possible, told where it is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from botocore.credentials import RefreshableCredentials

from seatrial_load.aws.credentials import RenewedCredentials
from tests.faults.order import Order
from tests.faults.trials import miss_of, verdict_of

if TYPE_CHECKING:
    from tests.faults.trials import Trials

TWENTY_MINUTES_S = 1200.0
LIFE = timedelta(minutes=50)
EXPIRED = "auth: HTTP 403 ExpiredTokenException: The security token included in the request is expired"


@pytest.mark.parametrize("ahead_s", [TWENTY_MINUTES_S, -TWENTY_MINUTES_S], ids=["behind", "ahead"])
def test_a_wrong_clock_is_put_right_by_the_services(trials: Trials, ahead_s: float) -> None:
    trials.proxy.obey(Order(fault="refuse_signature", ahead_s=ahead_s))
    result = trials.run_as_it_is()
    tally = trials.proxy.obey()
    assert [(level.requests, level.succeeded) for level in result.levels] == [(10, 10), (40, 40)]
    assert verdict_of(result).status == "pass"
    assert result.clock_offset_s == pytest.approx(ahead_s, abs=2.0)
    assert tally.hit == 1


def test_a_wrong_clock_that_the_service_does_not_help_with_fails_in_its_words(trials: Trials) -> None:
    trials.proxy.obey(Order(fault="refuse_signature", ahead_s=TWENTY_MINUTES_S, tells_date=False))
    result = trials.run_as_it_is()
    (level,) = result.levels
    assert (level.requests, level.succeeded, dict(level.errors)) == (10, 0, {"auth": 10})
    assert level.first_errors[0].startswith("auth: HTTP 403 InvalidSignatureException: Signature expired: 20")
    assert " is now earlier than 20" in level.first_errors[0]
    assert (verdict_of(result).status, result.clock_offset_s) == ("fail", None)
    assert result.usd_per_million_output_tokens is None


def test_credentials_that_expire_meanwhile_and_cannot_be_renewed(trials: Trials) -> None:
    result = trials.run(Order(fault="refuse_expired_token", token="token-1", skip=20))
    level = result.levels[-1]
    assert (trials.hit, level.requests, level.succeeded, dict(level.errors)) == (20, 40, 20, {"auth": 20})
    assert level.first_errors == (EXPIRED,)
    assert miss_of(result) == "error_rate 50.00 % exceeds 1.00 % at concurrency 4 per copy"


def test_credentials_that_can_be_renewed_are(trials: Trials) -> None:
    clock, order = Clock(), Order(fault="refuse_expired_token", token="token-1")
    source = RenewedCredentials(clock.credentials(), clock=clock.seconds)
    result = trials.run(order, credentials=source, then=clock.let_an_hour_pass)
    assert (trials.hit, result.levels[-1].succeeded, dict(result.levels[-1].errors)) == (0, 40, {})
    assert source().session_token == "token-2"
    assert verdict_of(result).status == "pass"


class Clock:
    """A time of day that jumps, and botocore's own refreshable credentials, which live for 50 minutes of it."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 21, 12, tzinfo=UTC)
        self._made = 0

    def let_an_hour_pass(self) -> None:
        self._now += timedelta(hours=1)

    def seconds(self) -> float:
        return self._now.timestamp()

    def credentials(self) -> RefreshableCredentials:
        made = self._make()
        return RefreshableCredentials(
            made["access_key"],
            made["secret_key"],
            made["token"],
            expiry_time=self._now + LIFE,
            refresh_using=self._make,
            method="a test",
            time_fetcher=lambda: self._now,
        )

    def _make(self) -> dict[str, str]:
        self._made += 1
        expiry_time = (self._now + LIFE).isoformat()
        token = f"token-{self._made}"
        return {"access_key": "AKIDEXAMPLE", "secret_key": "secret", "token": token, "expiry_time": expiry_time}
