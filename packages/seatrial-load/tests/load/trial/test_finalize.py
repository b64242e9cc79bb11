"""What the end of a trial makes of what was measured: verdict, target and doubts, without a server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.aws.cloudwatch import LATE_S, Measured
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.request import Gate, Load, Objective
from seatrial_load.documents.result import LiveProof, ServiceOverhead
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.metrics.aggregate import tally_of
from seatrial_load.search import NextLevel
from seatrial_load.trial import finalize
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.finalize import conclude_trial, distinct_levels
from seatrial_load.trial.steps import add_level
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import Manner, TrialRequest
    from seatrial_load.documents.result import LevelResult, TrialResult

    MakeLevel = Callable[..., LevelResult]
    MakeRequest = Callable[..., TrialRequest]

PROVEN = LiveProof(
    proven=True, endpoint_config_name="config-2", model_name="model-2", copy_count=1, because="it is live"
)
ENDED = Stop(reason=StopReason.ALL_MEASURED, because="every level was measured")
TOOLS = Tools(calibrates=False, asks_cloudwatch=False)


@dataclass
class After:
    """What the control plane says after the trial, and whether CloudWatch was asked."""

    proof: LiveProof | BenchError = PROVEN
    asked: list[tuple[Measured, float]] = field(default_factory=list)

    def prove(self, *_: object, **__: object) -> LiveProof:
        if isinstance(self.proof, BenchError):
            raise self.proof
        return self.proof

    def overhead(self, _target: object, measured: Measured, *, patience_s: float, **_: object) -> ServiceOverhead:
        self.asked.append((measured, patience_s))
        return ServiceOverhead(
            client_mean_ms=None,
            model_latency_mean_ms=None,
            overhead_latency_mean_ms=None,
            overhead_ms=None,
            because="asked",
        )


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> After:
    told = After()
    monkeypatch.setattr(finalize, "prove_still_live", told.prove)
    monkeypatch.setattr(finalize, "service_overhead", told.overhead)
    return told


def progress_of(levels: tuple[LevelResult, ...], **changes: object) -> TrialProgress:
    usual = TrialProgress(
        started_at="2026-11-21T01:00:00+00:00", elapsed_s=61.0, sent=50, live=PROVEN, levels=levels, stopped=ENDED
    )
    return replace(usual, **changes)  # type: ignore[arg-type]  # the fields of the dataclass


def ended(request: TrialRequest, levels: tuple[LevelResult, ...], **changes: object) -> TrialResult:
    return conclude_trial(request, progress_of(levels, **changes), TOOLS)


def test_a_trial_that_goes_on_is_not_concluded(trial_request: MakeRequest) -> None:
    with pytest.raises(ValueError, match="not over"):
        conclude_trial(trial_request(), progress_of((), stopped=None), TOOLS)


def test_each_load_counts_once_the_last_valid_time(level: MakeLevel) -> None:
    first, again, void = level(4), level(4, ttft_ms=9.0), level(4, void=lagging("late"))
    assert distinct_levels([level(8), first, again]) == (again, level(8))
    assert distinct_levels([first, void]) == (first,)
    assert distinct_levels([void, first]) == (first,)
    assert distinct_levels([void, replace(void, requests=9)]) == (replace(void, requests=9),)
    rates = [level(4, offered_requests_per_s=rate, arrival="poisson") for rate in (2.0, 1.0)]
    assert distinct_levels(rates) == (rates[1], rates[0])


@pytest.mark.parametrize(
    ("proof", "stop", "status", "because", "target"),
    [
        (PROVEN, ENDED, "pass", "", None),
        (
            replace(PROVEN, copy_count=2),
            ENDED,
            "inconclusive",
            "copies changed from 1 to 2 during the trial",
            "fallback",
        ),
        (
            replace(PROVEN, proven=False, because="another model"),
            ENDED,
            "fail",
            "the deployment changed during the trial: another model",
            "fallback",
        ),
        (
            PROVEN,
            Stop(reason=StopReason.COMPONENT_FAILED, because="it is Failed"),
            "fail",
            "the deployment changed during the trial: it is Failed",
            "fallback",
        ),
        (
            PROVEN,
            Stop(reason=StopReason.AT_ZERO, because="no copy came"),
            "inconclusive",
            "no copy came",
            "fallback",
        ),
        (
            PROVEN,
            Stop(reason=StopReason.UNKNOWN_STATE, because="nobody could tell"),
            "inconclusive",
            "nobody could tell",
            "fallback",
        ),
    ],
)
def test_levels_of_a_deployment_that_was_not_there_throughout_prove_nothing(
    trial_request: MakeRequest,
    level: MakeLevel,
    after: After,
    proof: LiveProof,
    stop: Stop,
    status: str,
    because: str,
    target: str | None,
) -> None:
    after.proof = proof
    result = ended(trial_request(gate_concurrency=4, copy_count=1), (level(1), level(4)), stopped=stop)
    assert (result.verdict.status, result.verdict.because.startswith(because)) == (status, True)
    assert result.target_because.startswith("fallback") is (target is not None)
    assert target is None or because in result.target_because


def test_copies_that_come_during_single_requests_change_nothing(trial_request: MakeRequest, after: After) -> None:
    after.proof = replace(PROVEN, copy_count=2)
    request = trial_request(gate_concurrency=4, copy_count=1, manner="verify")
    result = ended(request, (), stopped=Stop(reason=StopReason.VERIFIED, because="no load"))
    assert result.verdict.because == "no request was sent: no load"
    assert result.live.because == "it is live; 1 and 2 copies ran before and after"


@pytest.mark.parametrize(
    ("rules", "is_kept"),
    [
        (("SEA503",), True),
        (("SEA504",), True),
        (("SEA511",), True),
        (("SEA512", "SEA503"), True),
        (("SEA502",), False),
        (("SEA503", "SEA502"), False),
    ],
)
def test_where_aws_cannot_be_asked_afterwards_what_was_measured_is_kept_and_proves_nothing(
    trial_request: MakeRequest, level: MakeLevel, after: After, rules: tuple[str, ...], *, is_kept: bool
) -> None:
    after.proof = BenchError([Finding(rule, Place(), f"{rule} in words") for rule in rules])
    request = trial_request(gate_concurrency=4, copy_count=1)
    if not is_kept:
        with pytest.raises(BenchError):
            ended(request, (level(4),))
        return
    result = ended(request, (level(4),))
    told = "; ".join(f"{rule} in words" for rule in rules)
    assert [each.concurrency for each in result.levels] == [4]
    assert (result.verdict.status, result.live.proven) == ("inconclusive", False)
    assert result.live.because == f"the deployment could not be checked after the trial: {told}"


@pytest.mark.parametrize("before", [replace(PROVEN, proven=False, because="nothing was asked"), PROVEN])
def test_what_was_not_proven_or_expected_before_is_not_asked_for_again(
    trial_request: MakeRequest, level: MakeLevel, after: After, before: LiveProof
) -> None:
    after.proof = BenchError([Finding("SEA502", Place(), "another model")])
    expected = None if before.proven else trial_request().expected
    request = trial_request(gate_concurrency=4, copy_count=1, expected=expected)
    assert ended(request, (level(4),), live=before).live == before


def test_that_nothing_was_answered_stays_a_failure_though_copies_came(
    trial_request: MakeRequest, level: MakeLevel, after: After
) -> None:
    after.proof = replace(PROVEN, copy_count=2)
    dead = level(4, succeeded=0, errors={"timeout": 8}, ttft_ms=None)
    result = ended(trial_request(gate_concurrency=4, copy_count=1), (dead,))
    assert result.verdict.status == "fail"
    assert result.verdict.because.startswith("copies changed from 1 to 2 during the trial; 0 of 8 requests succeeded")


@pytest.mark.parametrize(("most", "status"), [(None, "pass"), (0.2, "fail"), (0.25, "pass")])
def test_requests_that_failed_at_the_gate_count_against_its_bound(
    trial_request: MakeRequest, level: MakeLevel, after: After, most: float | None, status: str
) -> None:
    request = trial_request(gate_concurrency=4, copy_count=1, gate=Gate(max_error_rate=most), objectives=())
    result = ended(request, (level(4, succeeded=6, errors={"timeout": 2}),))
    assert (result.verdict.status, after.asked) == (status, [])


RATES = Load(
    concurrency_levels=(1,),
    requests_per_concurrency=3,
    warmup_requests=2,
    budget_s=60.0,
    request_timeout_s=6.0,
    arrival="poisson",
    rates_per_s=(1.0, 2.0),
    rates_for_copies=1,
)


@pytest.mark.parametrize(
    ("manner", "target", "knees"), [("load", None, True), ("in_place", "no knee was sought", False)]
)
def test_a_knee_is_sought_under_load_alone(
    trial_request: MakeRequest, level: MakeLevel, after: After, manner: Manner, target: str | None, *, knees: bool
) -> None:
    request = trial_request(gate_concurrency=4, copy_count=1, manner=manner)
    result = ended(request, (level(1), level(4)))
    assert (result.knees != (), after.proof) == (knees, PROVEN)
    assert (target in result.target_because) if target else not result.target_because.startswith("fallback")


@pytest.mark.parametrize(
    ("gate_rate", "measured", "because"),
    [
        (None, (1.0, 2.0), "no knee was sought: the rates end at the planned one"),
        (2.0, (1.0, 2.0), "no knee was found: the planned rate was the highest that was measured (every level was"),
        (2.0, (), "no knee was found: a rate was the highest that was measured"),
        (1.0, (1.0, 2.0), None),
    ],
)
def test_an_open_loop_seeks_a_knee_beyond_the_planned_rate_alone(
    trial_request: MakeRequest,
    level: MakeLevel,
    after: After,
    gate_rate: float | None,
    measured: tuple[float, ...],
    because: str | None,
) -> None:
    load = replace(RATES, gate_rate_per_s=gate_rate)
    levels = tuple(level(4, offered_requests_per_s=rate, arrival="poisson") for rate in measured)
    result = ended(trial_request(gate_concurrency=4, copy_count=1, load=load), levels)
    assert after.proof == PROVEN
    if because is None:
        assert "no knee was sought" not in result.target_because
        assert "was the highest that was measured" not in result.target_because
    else:
        assert because in result.target_because


def test_a_simulated_engine_has_no_price(trial_request: MakeRequest, level: MakeLevel, after: After) -> None:
    request = trial_request(gate_concurrency=4, copy_count=1, usd_per_hour_per_copy=1.5)
    assert ended(request, (level(4),)).usd_per_million_output_tokens is not None
    noted = ended(request, (level(4),), engine_note="local-cpu")
    assert (noted.usd_per_million_output_tokens, noted.blended_usd_per_million_tokens) == (None, None)
    assert after.asked == []


class TestTheServicesOverhead:
    """It is asked of CloudWatch for the time of the levels, and of nobody where there is no CloudWatch behind."""

    def asked(
        self,
        request: TrialRequest,
        levels: tuple[LevelResult, ...],
        after: After,
        *,
        asks: bool = True,
        engine_note: str = "",
    ) -> list[tuple[Measured, float]]:
        tools, progress = replace(TOOLS, asks_cloudwatch=asks), progress_of(levels, engine_note=engine_note)
        result = conclude_trial(request, progress, tools, patience_s=7.0)
        assert (result.overhead is not None) is bool(after.asked)
        return after.asked

    def test_is_that_of_all_answers_weighed_by_their_number(
        self, trial_request: MakeRequest, level: MakeLevel, after: After
    ) -> None:
        few, many = level(1, from_s=100.0, to_s=110.0), level(4, from_s=120.0, to_s=150.0)
        assert few.e2e_latency_ms is not None
        assert many.e2e_latency_ms is not None
        few = replace(few, e2e_latency_ms=replace(few.e2e_latency_ms, count=1, mean=100.0))
        many = replace(many, e2e_latency_ms=replace(many.e2e_latency_ms, count=3, mean=300.0))
        dead = level(2, from_s=111.0, to_s=112.0, e2e_latency_ms=None)
        request = trial_request(gate_concurrency=4, copy_count=1)
        ((measured, patience_s),) = self.asked(request, (few, many, dead), after)
        assert measured == Measured(
            start=datetime.fromtimestamp(100.0, UTC),
            end=datetime.fromtimestamp(150.0, UTC),
            requests=4,
            mean_ms=250.0,
            streamed=request.workload.stream,
        )
        assert (patience_s, patience_s < LATE_S) == (7.0, True)

    @pytest.mark.parametrize("why", ["a simulated engine", "no clock", "no answers", "not asked", "no level"])
    def test_is_not_asked_for(self, trial_request: MakeRequest, level: MakeLevel, after: After, why: str) -> None:
        seen = level(4, from_s=None if why == "no clock" else 1.0, to_s=2.0)
        seen = replace(seen, e2e_latency_ms=None) if why == "no answers" else seen
        levels = () if why == "no level" else (seen,)
        request, note = trial_request(gate_concurrency=4, copy_count=1), "local-cpu" if "engine" in why else ""
        assert self.asked(request, levels, after, asks=why != "not asked", engine_note=note) == []


class TestComparedWithTheLastRelease:
    def result(
        self, request: TrialRequest, level: MakeLevel, before: TrialResult | None, *, slower: bool = False
    ) -> TrialResult:
        levels = (level(4, ttft_ms=400.0 if slower else 100.0, output_tok_s=80.0),)
        return conclude_trial(request, progress_of(levels), TOOLS, baseline=before, baseline_uri="s3://before")

    def request(self, make: MakeRequest, manner: Manner = "load", on_regression: str = "fail") -> TrialRequest:
        gate = Gate(on_regression=on_regression)  # type: ignore[arg-type]  # a column
        return make(gate_concurrency=4, copy_count=1, manner=manner, gate=gate)

    def test_a_first_release_is_compared_with_nothing(
        self, trial_request: MakeRequest, level: MakeLevel, after: After
    ) -> None:
        assert self.result(self.request(trial_request), level, None).comparison is None
        assert after.asked == []

    @pytest.mark.parametrize(("on_regression", "status"), [("fail", "fail"), ("report", "pass")])
    def test_what_is_slower_fails_where_the_gate_says_so(
        self, trial_request: MakeRequest, level: MakeLevel, after: After, on_regression: str, status: str
    ) -> None:
        request = self.request(trial_request, on_regression=on_regression)
        before = self.result(request, level, None)
        now = self.result(request, level, before, slower=True)
        assert now.comparison is not None
        assert (now.comparison.status, now.comparison.baseline_uri) == ("worse", "s3://before")
        assert (now.verdict.status, after.asked) == (status, [])

    @pytest.mark.parametrize(
        ("manner", "because"),
        [
            ("verify", "the trial added no load"),
            ("in_place", "the load was alongside users' requests"),
            ("load", "copies changed from 1 to 2 during the trial"),
        ],
    )
    def test_what_was_not_loaded_alone_or_not_throughout_is_not_compared(
        self, trial_request: MakeRequest, level: MakeLevel, after: After, manner: Manner, because: str
    ) -> None:
        before = self.result(self.request(trial_request), level, None)
        if manner == "load":
            after.proof = replace(PROVEN, copy_count=2)
        now = self.result(self.request(trial_request, manner), level, before, slower=True)
        assert now.comparison is not None
        assert (now.comparison.status, now.comparison.because, now.comparison.changes) == ("incomparable", because, ())
        assert "regression" not in now.verdict.because


@pytest.mark.parametrize("up_to", [None, 1])
def test_a_level_beyond_the_error_bound_misses_and_no_knee_is_there(
    trial_request: MakeRequest, record: Callable[..., RequestRecord], after: After, up_to: int | None
) -> None:
    slow = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
    gate = Gate(max_error_rate=0.01, max_error_rate_up_to=up_to)
    request = trial_request(gate_concurrency=1, copy_count=1, gate=gate, objectives=(slow,))
    progress = progress_of((), stopped=None)
    for concurrency, failures in ((1, 0), (8, 11)):
        failed = record(error="throttled", last_token_s=None, output_tokens=None, output_tokens_from=None)
        tally = tally_of(
            [record()] * (40 - failures) + [failed] * failures, concurrency=concurrency, objectives=(slow,)
        )
        progress = add_level(request, progress, NextLevel(concurrency=concurrency, because=""), tally)
    result = ended(request, progress.levels)
    missed = "error_rate 27.50 % exceeds 1.00 % at concurrency 8 per copy"
    assert [level.misses for level in result.levels] == [(), (missed,)]
    assert (result.knees[0].concurrency or 8) < 8
    assert result.target_concurrency_per_copy < 8
    assert (result.target_detector, result.verdict.status) == ("slo", "pass" if up_to else "fail")
    # Though no level meets it, the fallback is not above the load that surely misses it.
    alone = ended(replace(request, fallback_target_concurrency=99.0), progress.levels[1:])
    assert alone.target_concurrency_per_copy == 8.0
