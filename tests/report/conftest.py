"""Sample trials, made up: of a real endpoint, of the local engine, one that failed, one with everything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.documents.plan import Decision, Plan
from seatrial.documents.prediction import Band
from seatrial.report.document.page import render_html
from seatrial_load.documents.stop import Stop, StopReason
from tests.report.rich import rich_trial
from tests.report.samples import (
    LEVELS,
    LOCAL_ENGINE,
    SCALED,
    concluded,
    failed_level,
    predicted_point,
    sample_level,
    sample_request,
)
from tests.sample_plan import COST, LMI_IMAGE, MEMORY, image_of, sample_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.result import LevelResult, TrialResult


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
    found = trial(engine_note=LOCAL_ENGINE)
    return replace(found, request=replace(found.request, scaled=SCALED))


@pytest.fixture(scope="session")
def empty(trial: Trial) -> TrialResult:
    return replace(trial([]), stopped=Stop(reason=StopReason.BUDGET, because="the budget of 600 s was used up"))


@pytest.fixture(scope="session")
def hopeless(trial: Trial) -> TrialResult:
    return trial([failed_level(16, 'HTTP 424: <script>alert("x")</script> | `@admin` [click](http://evil.example)')])


@pytest.fixture(scope="session")
def rich(plan: Plan) -> TrialResult:
    return rich_trial(plan)


@pytest.fixture(scope="session")
def real_page(real: TrialResult, plan: Plan) -> str:
    return render_html(real, plan)


@pytest.fixture(scope="session")
def rich_page(rich: TrialResult, plan: Plan) -> str:
    return render_html(rich, plan)


@pytest.fixture(scope="session")
def local_page(local: TrialResult, plan: Plan) -> str:
    return render_html(local, plan)


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
        trial_update=Decision(value="candidate", because="One copy beside the others."),
        max_model_len=Decision(value=512, because="The workload's 256 + 256 tokens."),
        max_num_seqs=Decision(value=28, because="The KV cache holds 28 sequences of 512 tokens."),
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
