"""An open loop beyond the planned rate: how far it goes, what it is judged by, what scaling takes from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.progress import NextLevel, TrialProgress
from seatrial_load.documents.request import Objective
from seatrial_load.documents.result import Unmeasured
from seatrial_load.documents.stop import Stop, StopReason, Void, VoidReason
from seatrial_load.metrics.sent import random_arrivals_lines
from seatrial_load.search import ALL_MEASURED
from seatrial_load.slo.verdict import judged
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.finalize import conclude_trial
from seatrial_load.trial.steps import next_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult, TrialResult

    MakeLevel = Callable[..., LevelResult]
    MakeRequest = Callable[..., TrialRequest]

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
RATES = (2.0, 3.0, 4.0, 5.0, 6.4, 8.0)
TOK_S = 20.0
"""Of a request: an answer of 20 tokens."""


def offered(level: MakeLevel, rate: float, *, ttft_ms: float = 100.0, answered: float | None = None) -> LevelResult:
    """Return a level of a rate, by Little's law with one second for each request."""
    made = level(
        round(rate),
        ttft_ms=ttft_ms,
        arrival="poisson",
        offered_requests_per_s=rate,
        in_flight_per_copy=rate,
        output_tok_s=TOK_S * (answered or rate),
    )
    return judged(made, [TTFT])


@pytest.fixture
def asked(trial_request: MakeRequest) -> TrialRequest:
    plain = trial_request(objectives=(TTFT,), copy_count=1, gate_concurrency=1, target_utilization=0.75, expected=None)
    load = replace(plain.load, arrival="poisson", rates_per_s=RATES, rates_for_copies=1, gate_rate_per_s=4.0,
                   level_s=30.0, budget_s=600.0)  # fmt: skip
    return replace(plain, load=load)


def reached(*levels: LevelResult, elapsed_s: float = 100.0, stopped: Stop | None = None) -> TrialProgress:
    return TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=elapsed_s, sent=0, live=not_proven(),
                         levels=levels, stopped=stopped)  # fmt: skip


def concluded(request: TrialRequest, *levels: LevelResult, stopped: Stop) -> TrialResult:
    tools = Tools(asks_cloudwatch=False)
    return conclude_trial(request, reached(*levels, stopped=stopped), tools, patience_s=0.0)


def test_rates_go_on_beyond_the_gate_while_the_slo_holds(asked: TrialRequest, level: MakeLevel) -> None:
    levels = [offered(level, rate) for rate in RATES[:3]]
    step = next_step(asked, reached(*levels))
    assert isinstance(step, NextLevel)
    assert "5 requests/s" in step.because


def test_the_gate_is_measured_though_a_lower_rate_misses(asked: TrialRequest, level: MakeLevel) -> None:
    assert isinstance(next_step(asked, reached(offered(level, 2.0, ttft_ms=900.0))), NextLevel)


@pytest.mark.parametrize(
    ("last", "reason", "because"),
    [
        ({"ttft_ms": 900.0}, StopReason.GOAL_KNOWN, "SLO missed at 4 requests/s"),
        ({"answered": 2.9}, StopReason.GOAL_KNOWN, "throughput did not grow from 3 requests/s to 4 requests/s"),
    ],
)
def test_they_end_where_more_teaches_nothing(
    asked: TrialRequest, level: MakeLevel, last: dict[str, float], reason: StopReason, because: str
) -> None:
    levels = [offered(level, 2.0), offered(level, 3.0), offered(level, 4.0, **last)]
    assert next_step(asked, reached(*levels)) == Stop(reason=reason, because=because)


def test_they_end_where_no_time_is_left_for_a_level(asked: TrialRequest, level: MakeLevel) -> None:
    levels = [offered(level, rate) for rate in RATES[:3]]
    stop = next_step(asked, reached(*levels, elapsed_s=580.0))
    assert isinstance(stop, Stop)
    assert (stop.reason, "20 s of the budget are left" in stop.because) == (StopReason.BUDGET, True)


def test_a_rate_beyond_the_gate_that_misses_sets_the_target_and_not_the_verdict(
    asked: TrialRequest, level: MakeLevel
) -> None:
    """The SLO is missed from 5 requests/s at the latest, with as many in flight: three quarters of that."""
    levels = [*(offered(level, rate) for rate in RATES[:3]), offered(level, 5.0, ttft_ms=1_000.0)]
    result = concluded(asked, *levels, stopped=Stop(reason=StopReason.GOAL_KNOWN, because="SLO missed at 5 requests/s"))
    assert (result.verdict.status, result.target_detector) == ("pass", "slo")
    assert "at 4 requests/s" in result.verdict.because
    assert 0.75 * 4 < result.target_concurrency_per_copy <= 0.75 * 5
    assert "requests/s of all copies)" in result.target_because


@pytest.mark.parametrize(
    ("changes", "rate", "apart"),
    [
        ({}, 4.0, 0.0),
        ({"requests_per_s": 3.2}, 3.0, 0.0625),  # the gate was not answered as it was offered
        ({"requests_per_s": 3.5}, None, 0.0),  # no rate within a tenth of it
        ({"arrival": "constant"}, None, 0.0),
        ({"void": Void(reasons=(VoidReason.READ_LATE,), because="late")}, None, 0.0),
    ],
)
def test_first_tokens_at_random_arrivals_are_those_of_the_nearest_rate(
    asked: TrialRequest, level: MakeLevel, changes: dict[str, object], rate: float | None, apart: float
) -> None:
    levels = [replace(offered(level, each), requests_per_s=each) for each in RATES[:3]]
    levels[2] = replace(levels[2], **changes)  # type: ignore[arg-type]  # fields of a level
    result = concluded(asked, *levels, stopped=ALL_MEASURED)
    lines = list(random_arrivals_lines(result))
    if rate is not None:
        numbers = f"mean 100 ms, p95 100 ms at {rate:.2f} requests/s, {apart * 100:.0f} % from what the gate answered"
        assert lines == [f"TTFT at random arrivals of the gate's throughput, measured: {numbers}"]
    else:
        assert result.random_arrivals is None
        assert ["was not measured: `--rate " in line for line in lines] == [True] * levels[2].valid
    assert list(random_arrivals_lines(replace(result, request=replace(asked, objectives=())))) == []


def test_a_gate_that_misses_fails_though_a_higher_rate_was_not_tried(asked: TrialRequest, level: MakeLevel) -> None:
    levels = [offered(level, 2.0), offered(level, 3.0), offered(level, 4.0, ttft_ms=900.0)]
    result = concluded(asked, *levels, stopped=Stop(reason=StopReason.GOAL_KNOWN, because="SLO missed at 4 requests/s"))
    assert result.verdict.status == "fail"


def test_without_a_rate_beyond_the_gate_scaling_keeps_the_plans_target(asked: TrialRequest, level: MakeLevel) -> None:
    levels = [offered(level, rate) for rate in RATES[:3]]
    result = concluded(asked, *levels, stopped=Stop(reason=StopReason.BUDGET, because="a higher rate needs 31 s"))
    assert (result.target_detector, result.verdict.status) == (None, "pass")
    assert "the planned rate was the highest that was measured (a higher rate needs 31 s)" in result.target_because


def test_a_rate_beyond_the_gate_that_was_cut_takes_no_verdict_away(asked: TrialRequest, level: MakeLevel) -> None:
    cut = Unmeasured(
        occasion="level",
        concurrency=9,
        offered_requests_per_s=5.0,
        sent=9,
        succeeded=0,
        errors={"unanswered": 9},
        first_errors=(),
        longest_wait_s=3.0,
        because="the budget ended",
    )
    over = Stop(reason=StopReason.BUDGET, because="the budget ended")
    progress = replace(reached(*(offered(level, rate) for rate in RATES[:3]), stopped=over), unmeasured=(cut,))
    result = conclude_trial(asked, progress, Tools(asks_cloudwatch=False), patience_s=0.0)
    assert result.verdict.status == "pass"
    at_gate = replace(progress, levels=progress.levels[:2], unmeasured=(replace(cut, offered_requests_per_s=4.0),))
    assert conclude_trial(asked, at_gate, Tools(asks_cloudwatch=False), patience_s=0.0).verdict.status == "fail"


def test_a_rate_that_is_refused_at_once_is_beyond_the_knee_though_little_was_in_flight(
    asked: TrialRequest, level: MakeLevel
) -> None:
    refused = replace(
        offered(level, 5.0, ttft_ms=900.0), succeeded=4, errors={"throttled": 4}, in_flight_per_copy=0.5, concurrency=1
    )
    levels = [*(offered(level, rate) for rate in RATES[:3]), refused]
    result = concluded(asked, *levels, stopped=Stop(reason=StopReason.GOAL_KNOWN, because="SLO missed at 5 requests/s"))
    (found,) = [knee for knee in result.knees if knee.detector == "slo"]
    assert (found.concurrency, found.interval) == (4.0, None)
