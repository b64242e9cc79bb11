"""Requests that are refused: throttled, not ready, by a stranger on the way, or sent elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.faults.order import Order, ten_percent
from tests.faults.trials import LOAD, miss_of, verdict_of

if TYPE_CHECKING:
    from tests.faults.trials import Trials

pytestmark = pytest.mark.timing


def test_ten_percent_are_throttled(trials: Trials) -> None:
    result = trials.run(ten_percent("throttle"))
    level = result.levels[-1]
    assert (trials.hit, level.requests, level.succeeded) == (4, 40, 36)
    assert (dict(level.errors), dict(level.retried)) == ({"throttled": 4}, {})
    assert level.first_errors == ("throttled: HTTP 429 ThrottlingException: Rate exceeded",)
    assert miss_of(result) == "error_rate 10.00 % exceeds 1.00 % at concurrency 4 per copy"


@pytest.mark.parametrize(
    ("fault", "error"), [("throttle", "throttled"), ("busy", "throttled"), ("not_ready", "not_ready")]
)
def test_what_is_repeated_succeeds_and_is_counted(trials: Trials, fault: str, error: str) -> None:
    request = trials.request(load=replace(LOAD, max_retries=3))
    result = trials.run(ten_percent(fault), request=request)
    level = result.levels[-1]
    assert (trials.hit, trials.tallies[1].seen) == (4, 44)
    assert (level.requests, level.succeeded, dict(level.errors)) == (40, 40, {})
    assert dict(level.retried) == {error: 4}
    assert verdict_of(result).status == "pass"


def test_the_time_of_a_repeated_request_starts_with_its_first_attempt(trials: Trials) -> None:
    """The first back-off is 0.125 to 0.25 s; the slowest of the measured requests has waited so long at least."""
    request = trials.request(load=replace(LOAD, max_retries=3))
    level = trials.run(ten_percent("throttle"), request=request).levels[-1]
    assert level.ttft_ms is not None
    assert level.ttft_ms.max >= 125.0


def test_repetitions_have_an_end(trials: Trials) -> None:
    request = trials.request(load=replace(LOAD, max_retries=2, requests_per_concurrency=1))
    level = trials.run(Order(fault="throttle"), request=request).levels[-1]
    assert (trials.tallies[1].seen, level.requests, level.succeeded) == (12, 4, 0)
    assert (dict(level.errors), dict(level.retried)) == ({"throttled": 4}, {"throttled": 8})


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        ("busy", "throttled", "HTTP 424 ModelError: no free slot"),
        ("not_ready", "not_ready", "HTTP 429 ModelNotReadyException: Model is not ready to serve"),
        ("unavailable", "server", "HTTP 503 ServiceUnavailable: The service is currently unavailable."),
        (
            "html",
            "server",
            "HTTP 502: <html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>",
        ),
    ],
)
def test_every_refusal_has_its_class_and_its_words(trials: Trials, fault: str, error: str, said: str) -> None:
    level = trials.run(ten_percent(fault)).levels[-1]
    assert (level.succeeded, dict(level.errors), level.first_errors) == (36, {error: 4}, (f"{error}: {said}",))


def test_a_redirect_is_refused_and_its_secrets_are_not_told(trials: Trials) -> None:
    level = trials.run(ten_percent("redirect")).levels[-1]
    assert (level.succeeded, dict(level.errors)) == (36, {"protocol": 4})
    (said,) = level.first_errors
    assert said.startswith("protocol: ")
    assert "elsewhere.invalid" in said
    assert "X-Amz-Signature" not in said
