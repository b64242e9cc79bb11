"""Sample trials, made up: a copy that saturates at about 1,900 tok/s, on a real endpoint or on the local engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.bench.conclusion import cost_at, scaling_target
from seatrial.bench.distribution import Distribution
from seatrial.bench.knee import kneedle_knee, slo_knee
from seatrial.bench.load import Load
from seatrial.bench.request import Expected, Objective, Target, TrialRequest, Workload
from seatrial.bench.result import SCHEMA_VERSION, LevelResult, LiveProof, TrialResult
from seatrial.bench.slo import judged, verdict_at
from seatrial.plan.document import Band, CurvePoint, Decision, Plan
from seatrial.report.page import render_html
from tests.sample_plan import COST, LMI_IMAGE, MEMORY, image_of, sample_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS = (1, 2, 4, 8, 16, 32, 64)
LOCAL_ENGINE = "local-cpu-random-llama (not the model named)"
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
        target=Target(endpoint_name="sample-chat-dev", inference_component="sample-chat-dev-model", region="us-east-1"),
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
    target = scaling_target(request, held, *knees)
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
        usd_per_million_output_tokens=cost_at(request, target.level),
        stopped_because="every level was measured",
    )


class Trial(Protocol):
    def __call__(
        self, levels: Sequence[LevelResult] | None = ..., *, engine_note: str = ..., gate_concurrency: int = ...
    ) -> TrialResult: ...


@pytest.fixture(scope="session")
def trial(plan: Plan) -> Trial:
    def make(
        levels: Sequence[LevelResult] | None = None, *, engine_note: str = "", gate_concurrency: int = 16
    ) -> TrialResult:
        request = replace(sample_request(plan), gate_concurrency=gate_concurrency)
        measured = [sample_level(concurrency) for concurrency in LEVELS] if levels is None else levels
        return concluded(request, measured, engine_note)

    return make


@pytest.fixture(scope="session")
def real(trial: Trial) -> TrialResult:
    return trial()


@pytest.fixture(scope="session")
def local(trial: Trial) -> TrialResult:
    return trial(engine_note=LOCAL_ENGINE)


@pytest.fixture(scope="session")
def empty(trial: Trial) -> TrialResult:
    return replace(trial([]), stopped_because="the budget of 600 s was used up")


@pytest.fixture(scope="session")
def hopeless(trial: Trial) -> TrialResult:
    return trial([failed_level(16, 'HTTP 424: <script>alert("x")</script> | `@admin` [click](http://evil.example)')])


@pytest.fixture(scope="session")
def real_page(real: TrialResult, plan: Plan) -> str:
    return render_html(real, plan)


@pytest.fixture(scope="session")
def local_page(local: TrialResult, plan: Plan) -> str:
    return render_html(local, plan)


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


@pytest.fixture(scope="session")
def plan() -> Plan:
    because = "The constants of lmi 20 stand in: ±20% is an assumption until a trial has run."
    return sample_plan(
        endpoint="sample-chat",
        model_name="sample/sample-7b-chat",
        architecture="llama-2-7b",
        engine=Decision(value="lmi", because="The spec asks for it."),
        engine_version=Decision(value="27", because="The newest version of the catalog."),
        image=Decision(value=image_of(LMI_IMAGE), because="The image of lmi 27 in us-east-1."),
        inference_ami_version=Decision(value=None, because="The service's default drives this image."),
        instance_type=Decision(
            value="ml.g5.2xlarge", because="The cheapest of 4 that meets the SLO at 16 per copy, $2.42 per hour."
        ),
        instance_count=Decision(value=2, because="One copy fits on an instance."),
        tensor_parallel_degree=Decision(value=1, because="The weights fit on one accelerator."),
        copies_per_instance=Decision(value=1, because="One accelerator, one copy."),
        copy_count=Decision(value=2, because="16 per copy serve 32 requests in flight."),
        surge_instances=Decision(value=2, because="An update doubles the copies."),
        max_model_len=Decision(value=512, because="The workload's 256 + 256 tokens."),
        max_num_seqs=Decision(value=28, because="The KV room holds 28 sequences of 512 tokens."),
        max_num_batched_tokens=Decision(value=2048, because="The engine's default."),
        max_queued_requests=Decision(value=12, because="What can be answered within the timeout."),
        dtype=Decision(value="fp16", because="The accelerator has no faster type that needs no calibration."),
        cpu_cores_per_copy=8,
        memory_min_mb=Decision(value=24576, because="Weights pass through host memory once."),
        startup_timeout_s=Decision(value=1200, because="13.5 GB at 100 MB/s, doubled, and 15 minutes of warm-up."),
        download_timeout_s=Decision(value=900, because="13.5 GB at 30 MB/s, doubled."),
        target_concurrency_per_copy=Decision(value=12.0, because="Half of the predicted knee until a trial has run."),
        gate_concurrency_per_copy=Decision(value=16, because="32 requests in flight over 2 copies."),
        concurrency_levels=Decision(value=LEVELS, because="Powers of two up to four times the gate."),
        memory=MEMORY.model_copy(
            update={"accelerator_memory_bytes": 24 * 2**30, "kv_room_bytes": 7_500_000_000, "kv_limited_batch": 28}
        ),
        curve=tuple(map(predicted_point, LEVELS)),
        band=Band(throughput=0.2, latency=0.2, measured=False, because=because),
        cost=COST.model_copy(
            update={
                "usd_per_hour": 2.424,
                "usd_per_hour_per_copy": 1.212,
                "usd_per_million_output_tokens": 0.5931,
                "blended_usd_per_million_tokens": 0.1482,
                "price_source": "AWS price list",
                "price_date": "2026-10-01",
            }
        ),
        warnings=(because,),
    )
