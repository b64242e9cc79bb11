"""The start of a copy: its parts by bounds, publications and a trial's own measurement, and what shortens it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.starts import copy_start, start_parts, start_warnings
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.load import load_spec
from seatrial.specs.optimization import OptimizationSpec
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

ROOT = Path(__file__).parents[2]
START = {"created_at": "2026-11-20T10:00:00+00:00", "late_s": 15, "because": "seen"}


@pytest.fixture(scope="module")
def shipped() -> tuple[Plan, LoadedSpec]:
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    return read_locked_plan(loaded), loaded


def decided(plan: Plan, **values: object) -> Plan:
    """Return a plan with other decisions."""
    return plan.model_copy(
        update={name: getattr(plan, name).model_copy(update={"value": value}) for name, value in values.items()}
    )


def changed(loaded: LoadedSpec, part: str, **fields: object) -> LoadedSpec:
    """Return a spec with other fields in one part of it."""
    endpoint = loaded.endpoint
    new = getattr(endpoint, part).model_copy(update=fields)
    return replace(loaded, endpoint=endpoint.model_copy(update={part: new}))


def in_s3(loaded: LoadedSpec) -> LoadedSpec:
    return changed(loaded, "model", hub_id=None, s3_uri="s3://weights/llama/")


def seconds(plan: Plan, loaded: LoadedSpec) -> dict[str, float]:
    return {part.part.partition(",")[0]: part.seconds for part in start_parts(plan, loaded)}


def test_weights_that_the_engine_quantizes_are_downloaded_at_16_bits(shipped: tuple[Plan, LoadedSpec]) -> None:
    plan, loaded = shipped
    overrides = loaded.endpoint.serving.overrides.model_copy(update={"quantization": "fp8"})
    half = plan.model_copy(
        update={
            "memory": plan.memory.model_copy(update={"weights_bytes": plan.memory.weights_bytes // 2}),
            "quantization": "fp8",
        }
    )
    own = changed(loaded, "serving", overrides=overrides)
    assert seconds(half, own) == pytest.approx(seconds(plan, loaded), abs=0.1)
    (shortcut,) = (each for each in copy_start(half, own).shortcuts if "quantized" in each.what)
    assert shortcut.saves_s == pytest.approx(0.5 * (134.8 + 27.0), abs=0.2)


@pytest.mark.parametrize(
    ("instance_type", "region", "weights", "likely"),
    [
        ("ml.g6.2xlarge", "us-east-1", 16.4e9, [134, 0, 77.0, 0, 47]),  # 258 s were published of these
        ("ml.g6.2xlarge", "us-east-1", 61e9, [134, 0, 286.4, None, None]),
        ("ml.g6e.2xlarge", "us-east-1", 16.4e9, [None, 0, None, None, None]),
        ("ml.g6.2xlarge", "us-gov-west-1", 16.4e9, [None] * 5),
    ],
)
def test_likely_times_are_those_of_what_was_published(
    shipped: tuple[Plan, LoadedSpec], instance_type: str, region: str, weights: float, likely: list[float | None]
) -> None:
    plan, loaded = decided(shipped[0], instance_type=instance_type), in_s3(shipped[1])
    plan = plan.model_copy(update={"memory": plan.memory.model_copy(update={"weights_bytes": int(weights)})})
    loaded = replace(loaded, environment=loaded.environment.model_copy(update={"region": region}))
    start = copy_start(plan, loaded)
    assert [part.likely_s for part in start.parts] == likely
    assert all(bool(part.likely_source) == (part.likely_s is not None) for part in start.parts)
    zero, further, in_service = start.totals
    known = sum(part.seconds if part.likely_s is None else part.likely_s for part in start.parts)
    answer_s = plan.curve[0].ttft_ms / 1000
    assert (zero.likely_s, further.likely_s) == pytest.approx((60 + known + answer_s, 30 + known + answer_s), abs=0.1)
    assert further.seconds - in_service.seconds == pytest.approx(600 + 300)
    assert len(zero.unknown) == likely.count(None)


@pytest.mark.parametrize(
    ("start", "parts"),
    [
        ({"seconds": 240, "instances_added": 0, "instance_s": 150}, {"instance": 150, "copy": 240}),
        ({"seconds": 700, "instances_added": 1}, {"instance": 700 - 461.7, "copy": 461.7}),
        ({"seconds": 200, "instances_added": 1}, {"instance": 0, "copy": 200}),
        ({"seconds": 240, "instances_added": 0, "simulated": True}, None),
        ({"seconds": 240, "instances_added": 0, "instance_type": "ml.g5.2xlarge"}, None),
    ],
)
def test_a_trial_of_this_deployment_tells_its_start_and_a_given_one_wins(
    shipped: tuple[Plan, LoadedSpec], start: dict[str, object], parts: dict[str, float] | None
) -> None:
    plan, loaded = shipped
    start = {**START, **start}
    entry: dict[str, object] = {
        "model": plan.model_name,
        "instance_type": start.pop("instance_type", plan.instance_type.value),
        "tensor_parallel_degree": plan.tensor_parallel_degree.value,
        "engine": plan.engine.value,
        "engine_version": plan.engine_version.value,
        "quantization": plan.quantization,
        **dict.fromkeys(("input_tokens", "output_tokens"), 256),
        **dict.fromkeys(("fixed", "marginal"), 1.0),
        "points": [{"concurrency": 1, "output_tok_s": 30}],
        **dict.fromkeys(("throughput_error", "latency_error"), 0.1),
        "source": {"file": "report.json", "digest": "0123456789abcdef", "start": start},
    }
    measured = replace(loaded, calibration_json=json.dumps(entry))
    assert seconds(plan, measured) == pytest.approx(parts or seconds(plan, loaded), abs=0.1)
    (source,) = {part.source for part in start_parts(plan, measured)}
    assert source == ("measured by trial 0123456789abcdef of 2026-11-20" if parts else "assumed, slow on purpose")
    given = start_parts(plan, measured, instance_s=1, copy_s=2)
    assert [(part.seconds, part.source) for part in given] == [(1, "--instance-start-s"), (2, "--copy-start-s")]
    with pytest.raises(SpecError, match="SEA406"):
        start_parts(plan, replace(loaded, calibration_json=json.dumps({**entry, "source": {"start": 1}})))


def test_what_a_shortcut_saves_is_what_the_start_gets_shorter(shipped: tuple[Plan, LoadedSpec]) -> None:
    plan, loaded = shipped
    saved = {each.how: each.saves_s for each in copy_start(plan, loaded).shortcuts}
    staged = in_s3(loaded)
    less = sum(seconds(plan, loaded).values()) - sum(seconds(plan, staged).values())
    assert saved["seatrial stage"] == pytest.approx(less, abs=0.1)
    kept = {each.how: each.saves_s for each in copy_start(plan, staged).shortcuts}
    assert kept["hosting.data_cache: true"] == pytest.approx(seconds(plan, staged)["weights from S3"])
    cached = copy_start(plan, changed(staged, "hosting", data_cache=True))
    assert not {"seatrial stage", "hosting.data_cache: true"} & {each.how for each in cached.shortcuts}


@pytest.mark.parametrize(
    ("engine", "version", "has"),
    [
        ("vllm", "0.24.0", True),
        ("vllm", "0.23.0", False),
        ("sglang", "0.5.13", True),
        ("lmi", "0.36.0-lmi27.0.0", False),
        ("vllm", "own", False),
    ],
)
def test_a_fast_loader_is_named_where_the_planned_release_has_it(
    shipped: tuple[Plan, LoadedSpec], engine: str, version: str, *, has: bool
) -> None:
    plan, loaded = decided(shipped[0], engine=engine, engine_version=version), shipped[1]
    how = "serving.overrides.extra: {load_format: runai_streamer}"
    saved = {each.how: each.saves_s for each in copy_start(plan, loaded).shortcuts}
    assert (how in saved) == has
    assert saved.get(how, 27.0 * (1 - 0.299)) == pytest.approx(27.0 * (1 - 0.299), abs=0.1)
    overrides = loaded.endpoint.serving.overrides.model_copy(update={"extra": {"load_format": "dummy"}})
    own = changed(loaded, "serving", overrides=overrides)
    assert how not in {each.how for each in copy_start(plan, own).shortcuts}


@pytest.mark.parametrize(
    ("instance_type", "recipe", "part", "compiled_s"),
    [
        ("ml.g5.2xlarge", {"target": "trtllm", "when": "startup"}, "build of TensorRT-LLM", 2 * 6_738_415_616 / 1e8),
        ("ml.g5.2xlarge", {"target": "trtllm", "when": "ahead_of_time"}, "", 0.0),
        ("ml.inf2.8xlarge", None, "compilation for AWS Neuron", 600 - 461.7),
        ("ml.inf2.8xlarge", {"target": "neuron", "when": "ahead_of_time"}, "", 0.0),
    ],
)
def test_what_is_compiled_at_the_start_is_a_part_that_can_be_had_before(
    shipped: tuple[Plan, LoadedSpec], instance_type: str, recipe: dict[str, str] | None, part: str, compiled_s: float
) -> None:
    plan, loaded = decided(shipped[0], instance_type=instance_type), shipped[1]
    entries = () if recipe is None else (OptimizationSpec.model_validate({"compile": recipe}),)
    loaded = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"optimization": entries}))
    compiled = set(seconds(plan, loaded)) - set(seconds(*shipped))
    assert compiled == ({part} if part else set())
    saved = {each.what: each.saves_s for each in copy_start(plan, loaded).shortcuts}
    assert saved.get(f"no {part} at the start", 0.0) == pytest.approx(compiled_s, abs=0.1)
    assert seconds(plan, loaded).get(part, 0.0) == pytest.approx(compiled_s, abs=0.1)


def test_a_start_that_sagemaker_does_not_wait_for_is_a_warning(shipped: tuple[Plan, LoadedSpec]) -> None:
    plan, loaded = shipped
    assert start_warnings(plan, loaded, start_parts(plan, loaded, copy_s=600)) == ()
    (warning,) = start_warnings(plan, loaded, start_parts(plan, loaded, copy_s=601))
    assert warning.startswith(
        "SEA571: A copy starts in 601 s (--copy-start-s), and SageMaker waits 0 s for weights and 6"
    )
    assert start_warnings(plan, in_s3(loaded), start_parts(plan, loaded, copy_s=1200)) == ()
