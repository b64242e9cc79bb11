from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.distribution import Distribution, Interval
from seatrial_load.documents.request import Gate
from seatrial_load.documents.result import Comparison, LevelResult, LiveProof, TrialResult, Verdict
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.slo.verdict import compare_with_baseline, with_regression
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest

    MakeLevel = Callable[..., LevelResult]
    MakeTrial = Callable[..., TrialResult]

PASS = Verdict(status="pass", because="objective met", checks=())


def around(p95: float, *, margin: float = 5.0) -> Distribution:
    bounds = {"p95": Interval(low=p95 - margin, high=p95 + margin)}
    return Distribution(count=100, mean=p95, p50=p95, p90=p95, p95=p95, p99=p95, max=p95, intervals=bounds)


def at(level: MakeLevel, concurrency: int = 4, *, tok_s: float = 80.0, **changes: object) -> LevelResult:
    sure: dict[str, object] = {
        "output_tok_s": tok_s,
        "output_tok_s_interval": Interval(low=tok_s - 2, high=tok_s + 2),
        "error_rate_interval": Interval(low=0.0, high=0.05),
        "tpot_ms": around(20.0, margin=0.5),
        "e2e_latency_ms": around(500.0),
        **changes,
    }
    return replace(level(concurrency, **sure), ttft_ms=around(100.0))


@pytest.fixture
def trial(trial_request: Callable[..., TrialRequest]) -> MakeTrial:
    def make(*levels: LevelResult, **changes: object) -> TrialResult:
        return TrialResult(
            schema_version="3",
            request=trial_request(**changes),
            started_at="2026-11-21T01:02:03+00:00",
            duration_s=12.5,
            engine_note="",
            live=LiveProof(
                proven=False, endpoint_config_name=None, model_name=None, copy_count=None, because="not asked"
            ),
            levels=levels,
            knees=(),
            verdict=PASS,
            target_concurrency_per_copy=2.0,
            target_detector=None,
            target_because="fallback",
            usd_per_million_output_tokens=None,
            stopped=Stop(reason=StopReason.ALL_MEASURED, because="every level was measured"),
        )

    return make


def test_nothing_changed(level: MakeLevel, trial: MakeTrial) -> None:
    found = compare_with_baseline(
        trial(at(level)), trial(at(level), plan_digest="before"), baseline_uri="s3://bucket/released"
    )
    assert (found.status, found.because) == ("same", "6 numbers unchanged, within tolerance or noise")
    assert (found.baseline_uri, found.baseline_plan_digest) == ("s3://bucket/released", "before")
    assert found.baseline_started_at == "2026-11-21T01:02:03+00:00"
    assert [change.metric for change in found.changes] == [
        "output_tok_s",
        "ttft_ms p95",
        "tpot_ms p95",
        "e2e_latency_ms p95",
        "error_rate",
        "usd_per_million_output_tokens",
    ]
    assert found.changes[0].sentence == (
        "output_tok_s at concurrency 4 per copy stayed at 80.0 tok/s: within the tolerance of 10 %"
    )


@pytest.mark.parametrize("local", [(True, True), (True, False), (False, True)])
def test_no_cost_is_compared_where_a_local_engine_was_measured(
    level: MakeLevel, trial: MakeTrial, local: tuple[bool, bool]
) -> None:
    """Its price is a GPU's and its speed a CPU's: "cost fell from $0.38 to $0.25" said nothing."""
    now, before = (
        replace(trial(at(level)), engine_note="local-cpu-random-llama (not the model named)" if cpu else "")
        for cpu in local
    )
    assert [change.metric for change in compare_with_baseline(now, before).changes] == [
        "output_tok_s",
        "ttft_ms p95",
        "tpot_ms p95",
        "e2e_latency_ms p95",
        "error_rate",
    ]


@pytest.mark.parametrize(
    ("changes", "metric", "sentence", "worse"),
    [
        (
            {"tok_s": 60.0},
            "output_tok_s",
            "output_tok_s at concurrency 4 per copy fell from 80.0 tok/s to 60.0 tok/s (-25.0 %): "
            "worse beyond the tolerance of 10 % and noise",
            True,
        ),
        (
            {"tok_s": 60.0},
            "usd_per_million_output_tokens",  # $3.60 an hour: 3.6 / (3600 x 80) x 10^6 = $12.50, and $16.67
            "usd_per_million_output_tokens at concurrency 4 per copy rose from $12.50 to $16.67 (+33.3 %): "
            "worse beyond the tolerance of 10 % and noise",
            True,
        ),
        (
            {"tok_s": 100.0},
            "output_tok_s",
            "output_tok_s at concurrency 4 per copy rose from 80.0 tok/s to 100.0 tok/s (+25.0 %): "
            "better beyond the tolerance of 10 % and noise",
            False,
        ),
        (
            {"tok_s": 76.0},
            "output_tok_s",
            "output_tok_s at concurrency 4 per copy fell from 80.0 tok/s to 76.0 tok/s (-5.0 %): "
            "within the tolerance of 10 %",
            False,
        ),
        (
            {"e2e_latency_ms": around(600.0, margin=200.0)},
            "e2e_latency_ms p95",
            "e2e_latency_ms p95 at concurrency 4 per copy rose from 500.0 ms to 600.0 ms (+20.0 %): "
            "beyond the tolerance of 10 %, within noise",
            False,
        ),
        (
            {"tpot_ms": replace(around(23.0), intervals={})},
            "tpot_ms p95",
            "tpot_ms p95 at concurrency 4 per copy rose from 20.0 ms to 23.0 ms (+15.0 %): "
            "within the tolerance of 20 % (doubled: no interval)",
            False,
        ),
        (
            {"tpot_ms": replace(around(25.0), intervals={"p95": Interval(low=None, high=30.0)})},
            "tpot_ms p95",
            "tpot_ms p95 at concurrency 4 per copy rose from 20.0 ms to 25.0 ms (+25.0 %): "
            "worse beyond the tolerance of 20 % (doubled: no interval)",
            True,
        ),
        (
            {"succeeded": 4, "error_rate_interval": Interval(low=0.2, high=0.8)},
            "error_rate",
            "error_rate at concurrency 4 per copy rose from 0.00 % to 50.00 %: "
            "worse beyond the tolerance of 10 % and noise",
            True,
        ),
        (
            {"succeeded": 7, "error_rate_interval": Interval(low=0.02, high=0.4)},
            "error_rate",
            "error_rate at concurrency 4 per copy rose from 0.00 % to 12.50 %: "
            "beyond the tolerance of 10 %, within noise",
            False,
        ),
    ],
)
def test_changes_in_words(
    level: MakeLevel, trial: MakeTrial, changes: dict[str, object], metric: str, sentence: str, worse: object
) -> None:
    found = compare_with_baseline(trial(at(level, **changes)), trial(at(level)))  # type: ignore[arg-type]  # columns of any type
    (change,) = (change for change in found.changes if change.metric == metric)
    assert change.sentence == sentence
    assert (change.worse, found.status == "worse") == (worse, worse)


def test_worse_goes_before_better(level: MakeLevel, trial: MakeTrial) -> None:
    found = compare_with_baseline(trial(at(level, tok_s=100.0, e2e_latency_ms=around(900.0))), trial(at(level)))
    assert found.status == "worse"
    assert found.because == (
        "e2e_latency_ms p95 at concurrency 4 per copy rose from 500.0 ms to 900.0 ms (+80.0 %): "
        "worse beyond the tolerance of 10 % and noise"
    )


def test_better(level: MakeLevel, trial: MakeTrial) -> None:
    found = compare_with_baseline(trial(at(level, e2e_latency_ms=around(300.0))), trial(at(level)))
    assert found.status == "better"
    assert found.changes[3].share == pytest.approx(-0.4)  # (300 - 500) / 500


def test_the_gate_first_then_what_the_last_release_could_carry(level: MakeLevel, trial: MakeTrial) -> None:
    before = trial(at(level, 1), at(level, 4), at(level, 8), at(level, 16, meets_slo=False), at(level, 32))
    now = trial(
        at(level, 1),
        at(level, 4, void=lagging("slow")),
        at(level, 8),
        at(level, 16),
        at(level, 64),
    )
    found = compare_with_baseline(now, before, baseline_uri="")
    assert [change.concurrency for change in found.changes if change.metric == "output_tok_s"] == [1, 8]
    found = compare_with_baseline(trial(at(level, 1), at(level, 4)), before)
    assert [change.concurrency for change in found.changes if change.metric == "output_tok_s"] == [4, 1]


@pytest.mark.parametrize(
    ("high", "p95", "status"), [(505.0, 700.0, "worse"), (None, 700.0, "same"), (505.0, 300.0, "same")]
)
def test_a_cut_level_is_compared_and_changes_only_where_the_intervals_are_apart(
    level: MakeLevel, trial: MakeTrial, high: float | None, p95: float, status: str
) -> None:
    """What is above an open end is unknown: faster answers than the last release's are not known to be faster."""
    before, now = around(500.0), around(p95)
    before = replace(before, intervals={"p95": Interval(low=495.0, high=high)})
    now = now if p95 > 500 else replace(now, intervals={"p95": Interval(low=p95 - 5, high=None)})
    found = compare_with_baseline(
        trial(at(level, cut="the budget ended", e2e_latency_ms=now)), trial(at(level, e2e_latency_ms=before))
    )
    assert found.status == status
    assert "e2e_latency_ms p95 at concurrency 4 per copy (cut) " in found.changes[3].sentence


def test_open_loops_are_compared_at_the_same_rate(level: MakeLevel, trial: MakeTrial) -> None:
    before = at(level, 3, arrival="poisson", offered_requests_per_s=2.0)
    now = at(level, 5, arrival="poisson", offered_requests_per_s=2.0)
    assert [change.concurrency for change in compare_with_baseline(trial(now), trial(before)).changes] == [5] * 5


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"endpoint": "other"}, "endpoint"),
        ({"copy_count": 2, "environment": "prod"}, "environment, number of copies"),
    ],
)
def test_what_is_not_comparable(level: MakeLevel, trial: MakeTrial, changes: dict[str, object], because: str) -> None:
    found = compare_with_baseline(trial(at(level)), trial(at(level), **changes))
    assert (found.status, found.because, found.changes) == (
        "incomparable", f"the last release was measured with a different {because}", ()
    )  # fmt: skip


def test_another_workload_is_not_comparable(level: MakeLevel, trial: MakeTrial) -> None:
    before = trial(at(level))
    longer = replace(before.request, workload=replace(before.request.workload, output_tokens=9))
    found = compare_with_baseline(before, replace(before, request=longer))
    assert found.because == "the last release was measured with a different workload"


def test_another_start_of_the_levels_is_not_comparable(level: MakeLevel, trial: MakeTrial) -> None:
    before = trial(at(level))
    spread = replace(before.request, load=replace(before.request.load, start="spread"))
    found = compare_with_baseline(replace(before, request=spread), before)
    assert found.because == "the last release was measured with a different start of the levels"


def test_nothing_to_compare_with(level: MakeLevel, trial: MakeTrial) -> None:
    assert compare_with_baseline(trial(at(level)), None).because == "no result of an earlier release"
    found = compare_with_baseline(trial(at(level, 1)), trial(at(level, 2)))
    assert found.because == "no level is valid in both results"


@pytest.mark.parametrize(
    ("status", "on_regression", "expected"),
    [
        ("worse", "fail", ("fail", "objective met; regression: slower")),
        ("worse", "warn", ("pass", "objective met")),
        ("worse", "ignore", ("pass", "objective met")),
        ("better", "fail", ("pass", "objective met")),
        ("incomparable", "fail", ("pass", "objective met")),
    ],
)
def test_a_regression_fails_where_the_gate_says_so(status: str, on_regression: str, expected: tuple[str, str]) -> None:
    comparison = Comparison(status=status, because="slower")  # type: ignore[arg-type]  # a column
    verdict = with_regression(PASS, comparison, Gate(on_regression=on_regression))  # type: ignore[arg-type]  # likewise
    assert (verdict.status, verdict.because) == expected
