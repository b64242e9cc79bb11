"""A made-up trial with everything a result can hold: intervals, repetitions, evidence, a void level, a comparison."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from seatrial_load.documents.distribution import Distribution, Interval
from seatrial_load.documents.result import (
    Change,
    ClientCalibration,
    ClientEvidence,
    Comparison,
    Knee,
    LevelResult,
    SearchStep,
    ServiceOverhead,
    Timeline,
    TrialResult,
)
from seatrial_load.documents.stop import Void, VoidReason
from seatrial_load.metrics.histogram import Histogram
from tests.report.samples import concluded, sample_level, sample_request

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_load.documents.request import TrialRequest

ORDER = (16, 64, 32, 1, 2, 4, 8, 24)
VOID_BECAUSE = "the client kept 101.3 of 128 requests in flight, less than 95 %"
LAG_P99_MS = {16: 0.9, 64: 71.4}


def rich_trial(plan: Plan) -> TrialResult:
    """Return an adaptive trial of a real endpoint whose highest level the client limited."""
    request = rich_request(plan)
    levels = tuple(rich_level(concurrency) for concurrency in sorted(ORDER))
    result = concluded(request, levels, "")
    return replace(
        result,
        knees=(
            *result.knees,
            Knee(detector="half_latency", concurrency=16, because="throughput at half the latency bound: 16 per copy"),
            Knee(detector="two_segment", concurrency=24, because="two straight lines meet at 24 per copy"),
            Knee(detector="theory", concurrency=28, because="the KV cache holds 28 sequences"),
        ),
        search=tuple(SearchStep(concurrency=at, because=_step(at)) for at in ORDER),
        client=ClientCalibration(
            streams=128,
            parts_per_s=61_204.0,
            offered_parts_per_s=64_000.0,
            cpu_s_per_1k_parts=0.0151,
            receive_lag_p99_ms=3.2,
            because="128 streams of a server that costs nothing took 61,204 of 64,000 token events per second",
        ),
        overhead=ServiceOverhead(
            client_mean_ms=9_312.0,
            model_latency_mean_ms=9_287.5,
            overhead_latency_mean_ms=11.2,
            overhead_ms=24.5,
            because="means over 3 minutes of CloudWatch's datapoints",
        ),
        comparison=rich_comparison(result),
        blended_usd_per_million_tokens=(result.usd_per_million_output_tokens or 0) / 4,
        clock_offset_s=-3.2,
        words_per_token=0.98,
        seatrial_version="0.1.0",
    )


def rich_request(plan: Plan) -> TrialRequest:
    """Return its request: an adaptive search with repetitions."""
    request = sample_request(plan)
    load = replace(
        request.load,
        search="adaptive",
        concurrency_levels=(1, 64),
        max_retries=2,
        ramp_per_concurrency=1,
        budget_usd=2.0,
    )
    return replace(request, load=load)


def rich_level(concurrency: int) -> LevelResult:
    """Return a level with intervals and evidence; the one at 64 is void."""
    level = sample_level(concurrency)
    tok_s = level.output_tok_s or 0.0
    void = concurrency == 64
    return replace(
        level,
        window="steady",
        ramp_requests=2 * concurrency,
        retried={"throttled": 3, "not_ready": 1} if concurrency >= 32 else {},
        total_tok_s=2 * tok_s,
        output_tok_s_interval=Interval(low=tok_s * 0.97, high=tok_s * 1.03),
        error_rate_interval=Interval(low=level.error_rate * 0.7, high=min(1.0, level.error_rate * 1.4 + 0.02)),
        parts_per_token=1.0,
        queue_share=None if concurrency == 1 else max(0.0, 1 - 70.5 / (level.ttft_ms.mean if level.ttft_ms else 1)),
        duration_s=level.window_s + 4,
        enough_because="the median end-to-end latency is known within 5 %",
        client=ClientEvidence(
            workers=1,
            streams=2 * concurrency,
            receive_lag_p99_ms=LAG_P99_MS.get(concurrency, 0.4),
            delivered_concurrency=101.3 if void else 1.98 * concurrency,
            cpu_share=0.99 if void else 0.01 * concurrency,
            run_delay_share=0.02,
        ),
        void=Void(reasons=(VoidReason.READ_LATE,), because=VOID_BECAUSE) if void else None,
        timeline=rich_timeline(level),
        ttft_ms=bracketed(level.ttft_ms),
        tpot_ms=bracketed(level.tpot_ms),
        ms_per_token=bracketed(level.ms_per_token),
        e2e_latency_ms=bracketed(level.e2e_latency_ms),
    )


def bracketed(values: Distribution | None) -> Distribution:
    """Return a distribution with intervals; the upper end of p99 is one that so few measurements can't give."""
    assert values is not None
    intervals = {
        name: Interval(low=value * 0.94, high=value * 1.07)
        for name, value in (("mean", values.mean), ("p50", values.p50), ("p90", values.p90), ("p95", values.p95))
    }
    return replace(
        values, intervals={**intervals, "p99": Interval(low=values.p95, high=None)}, histogram=histogram_of(values)
    )


def histogram_of(values: Distribution) -> str:
    """Return a lognormal histogram with the distribution's median and 95th percentile, in 200 equal shares."""
    normal, histogram = NormalDist(), Histogram()
    spread = math.log(values.p95 / values.p50) / normal.inv_cdf(0.95)
    for share in range(200):
        histogram.add(1000 * values.p50 * math.exp(spread * normal.inv_cdf((share + 0.5) / 200)))
    return histogram.encode()


def rich_timeline(level: LevelResult) -> Timeline:
    """Return a timeline of 24 bins: a ramp, a wave around the level's throughput, an end that runs dry."""
    bins = 24
    shape = [min(1.0, (at + 1) / 4, (bins - at) / 3) * (1 + 0.04 * math.sin(1.7 * at)) for at in range(bins)]
    ttft = level.ttft_ms.mean if level.ttft_ms else 0.0
    return Timeline(
        bin_s=1.0,
        output_tokens=tuple(round((level.output_tok_s or 0) * part, 3) for part in shape),
        in_flight=tuple(round(2 * level.concurrency * min(1.0, part), 3) for part in shape),
        first_tokens=tuple(0 if at > bins - 3 else 4 for at in range(bins)),
        ttft_ms=tuple(None if at > bins - 3 else round(ttft * (1 + 0.3 * math.cos(at)), 3) for at in range(bins)),
    )


def rich_comparison(result: TrialResult) -> Comparison:
    """Return a comparison with an earlier trial that was a little faster."""
    after = next(level for level in result.levels if level.concurrency == 16)
    assert after.output_tok_s
    assert after.ttft_ms
    return Comparison(
        status="worse",
        because="output_tok_s at concurrency 16 per copy fell by 12.0 %, more than 10.0 % and noise",
        baseline_uri="s3://results/passed/sample-chat/1f0c/config/model.json",
        baseline_plan_digest="1f0c77aa",
        baseline_started_at="2026-10-20T09:00:00Z",
        changes=(
            Change(
                metric="output_tok_s",
                concurrency=16,
                before=after.output_tok_s / 0.88,
                after=after.output_tok_s,
                share=-0.12,
                worse=True,
                sentence="output_tok_s 1,133 to 997 tok/s: fell by 12.0 %, more than 10.0 % and noise",
            ),
            Change(
                metric="ttft_ms p95",
                concurrency=16,
                before=after.ttft_ms.p95 / 1.03,
                after=after.ttft_ms.p95,
                share=0.03,
                worse=False,
                sentence="ttft_ms p95 306 to 315 ms: rose by 3.0 %, within 10.0 %",
            ),
        ),
    )


def _step(concurrency: int) -> str:
    return {
        16: "the gate is always measured",
        64: "the last level asked for",
        24: "bisection between 16, which meets the SLO, and 32",
    }.get(concurrency, "doubling from the level below")
