"""Parts of sample trials, made up: a copy that saturates at about 1,900 tok/s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import CurvePoint
from seatrial_load.documents.distribution import Distribution
from seatrial_load.documents.request import Expected, Load, Objective, ScaledValue, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import SCHEMA_VERSION, LevelResult, LiveProof, TrialResult
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee import cost_at, kneedle_knee, scaling_target, slo_knee
from seatrial_load.slo.verdict import judged, verdict_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.documents.plan import Plan

LEVELS = (1, 2, 4, 8, 16, 32, 64)
LOCAL_ENGINE = "local-cpu-random-llama (not the model named)"
SCALED = (
    ScaledValue(field="workload.input_tokens", asked="2,000", used="64"),
    ScaledValue(field="scaling.min_copies", asked="3", used="1"),
)
OBJECTIVES = (
    Objective(metric="ttft_ms", statistic="p95", bound=2000.0, sense="at_most"),
    Objective(metric="tpot_ms", statistic="p95", bound=60.0, sense="at_most"),
    Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most"),
)


def spread(mean: float) -> Distribution:
    """Return a right-skewed distribution around a mean."""
    return Distribution(
        count=96, mean=mean, p50=mean * 0.9173, p90=mean * 1.3172, p95=mean * 1.5219, p99=mean * 2.0451, max=mean * 2.4
    )


def sample_level(concurrency: int, *, copies: int = 2) -> LevelResult:
    """Return one level; past 32 per copy the queue is full and requests are refused."""
    running = min(concurrency, 28)
    tpot_ms = 21.37 + 0.62 * running
    queue_ms = max(0, concurrency - 28) * 118.0
    ttft_ms = 61.4 + 9.1 * running + queue_ms
    refused = max(0, concurrency - 40)
    requests = 3 * concurrency * copies
    tok_s = copies * running * 1000 / (tpot_ms + ttft_ms / 256)
    return LevelResult(
        concurrency=concurrency,
        requests=requests,
        succeeded=requests - refused,
        errors={"throttled": refused} if refused else {},
        first_errors=("throttled: HTTP 429 ThrottlingException: Rate exceeded",) if refused else (),
        window_s=requests * 256 / tok_s,
        output_tok_s=tok_s,
        requests_per_s=tok_s / 256,
        goodput_requests_per_s=tok_s / 256 * (0.97 if concurrency < 32 else 0.41),
        ttft_ms=spread(ttft_ms),
        tpot_ms=spread(tpot_ms),
        itl_ms=spread(tpot_ms * 1.013),
        ms_per_token=spread(tpot_ms + ttft_ms / 256),
        e2e_latency_ms=spread(ttft_ms + 255 * tpot_ms),
        input_tokens_mean=256.0,
        output_tokens_mean=256.0,
        meets_slo=False,
        misses=(),
    )


def failed_level(concurrency: int, detail: str) -> LevelResult:
    """Return a level at which nothing succeeded."""
    return LevelResult(
        concurrency=concurrency,
        requests=3,
        succeeded=0,
        errors={"model_error": 3},
        first_errors=(f"model_error: {detail}",),
        window_s=1.5,
        output_tok_s=None,
        requests_per_s=0.0,
        goodput_requests_per_s=0.0,
        ttft_ms=None,
        tpot_ms=None,
        itl_ms=None,
        ms_per_token=None,
        e2e_latency_ms=None,
        input_tokens_mean=None,
        output_tokens_mean=None,
        meets_slo=False,
        misses=(),
    )


def sample_request(plan: Plan) -> TrialRequest:
    return TrialRequest(
        endpoint="sample-chat",
        environment="dev",
        plan_digest=plan.digest,
        target=TrialTarget(
            endpoint_name="sample-chat-dev", inference_component="sample-chat-dev-model", region="us-east-1"
        ),
        expected=Expected(endpoint_config_name="sample-chat-dev-config-4f2a", model_name="sample-chat-dev-model-91bc"),
        workload=Workload(input_tokens=256, output_tokens=256, schema="lmi"),
        load=Load(
            concurrency_levels=LEVELS,
            requests_per_concurrency=3,
            warmup_requests=8,
            budget_s=600.0,
            request_timeout_s=60.0,
        ),
        objectives=OBJECTIVES,
        gate_concurrency=16,
        copy_count=2,
        mode="rollback",
        usd_per_hour_per_copy=1.212,
        fallback_target_concurrency=12.0,
        target_utilization=0.7,
    )


def concluded(request: TrialRequest, levels: Sequence[LevelResult], engine_note: str) -> TrialResult:
    """Return the result that these levels lead to."""
    held = tuple(judged(level, request.objectives) for level in levels)
    knees = slo_knee(held), kneedle_knee(held)
    target = scaling_target(request, held, knees)
    return TrialResult(
        schema_version=SCHEMA_VERSION,
        request=request,
        started_at="2026-11-02T14:05:00Z",
        duration_s=252.4,
        engine_note=engine_note,
        live=LiveProof(
            proven=True,
            endpoint_config_name="sample-chat-dev-config-4f2a",
            model_name="sample-chat-dev-model-91bc",
            copy_count=2,
            because="the live endpoint config and model are this deployment's, before and after the measurement",
        ),
        levels=held,
        knees=knees,
        verdict=verdict_at(request.gate_concurrency, held, request.objectives),
        target_concurrency_per_copy=target.concurrency_per_copy,
        target_detector=target.detector,
        target_because=target.because,
        usd_per_million_output_tokens=cost_at(request, target.at),
        stopped=Stop(reason=StopReason.ALL_MEASURED, because="every level was measured"),
    )


def predicted_point(concurrency: int) -> CurvePoint:
    running = min(concurrency, 28)
    tpot_ms, ttft_ms = 20.0 + 0.6 * running, 70.0 + 9.0 * running + max(0, concurrency - 28) * 110.0
    e2e_ms = ttft_ms + 255 * tpot_ms
    return CurvePoint(
        concurrency=concurrency,
        output_tok_s=running * 256_000 / (running * 9.0 + 70 + 255 * tpot_ms),
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        e2e_latency_ms=e2e_ms,
        ms_per_token=e2e_ms / 256,
        ttft_p95_ms=ttft_ms * 1.4,
        tpot_p95_ms=tpot_ms * 1.05,
        e2e_latency_p95_ms=e2e_ms * 1.1,
        ms_per_token_p90=e2e_ms / 256 * 1.08,
        late=0.0,
        limit="kv" if concurrency > 28 else "memory",
    )
