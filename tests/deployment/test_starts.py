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
from tests.planner.predict.test_calibration import ENTRY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

ROOT = Path(__file__).parents[2]
LOADER = "serving.overrides.extra: {load_format: runai_streamer}"
IN_S3 = {"model": {"hub_id": None, "s3_uri": "s3://weights/llama/", "architecture": "meta-llama/Llama-2-7b-hf"}}


def shipped(
    decided: Mapping[str, object] | None = None, spec: Mapping[str, Mapping[str, object]] | None = None, **memory: int
) -> tuple[Plan, LoadedSpec]:
    """Return a locked plan of 13.48 GB from the hub and its spec, with other decisions, fields and memory."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan, endpoint = read_locked_plan(loaded), loaded.endpoint
    values = {name: getattr(plan, name).model_copy(update={"value": value}) for name, value in (decided or {}).items()}
    plan = plan.model_copy(update={**values, "memory": plan.memory.model_copy(update=memory)})
    for part, fields in (spec or {}).items():
        new = getattr(endpoint, part).model_copy(update=fields) if part != "optimization" else fields["recipe"]
        endpoint = endpoint.model_copy(update={part: new})
    return plan, replace(loaded, endpoint=endpoint)


def overrides(**fields: object) -> dict[str, Mapping[str, object]]:
    serving = shipped()[1].endpoint.serving
    return {"serving": {"overrides": serving.overrides.model_copy(update=fields)}}


def compiled(target: str, when: str) -> dict[str, Mapping[str, object]]:
    entry = OptimizationSpec.model_validate({"compile": {"target": target, "when": when}})
    return {"optimization": {"recipe": (entry,)}}


@pytest.mark.parametrize(
    ("plan_and_spec", "copy_s", "saved"),
    [
        (shipped(), 461.8, {"weights in S3 (seatrial stage)": 67.4}),
        (shipped(spec=IN_S3), 461.8 - 67.4, {"hosting.data_cache: true": 67.4}),
        (shipped(spec={**IN_S3, "hosting": {"data_cache": True}}), 461.8 - 67.4, {}),
        # The engine makes 8 bits of the 16 that are downloaded and read.
        (
            shipped(spec={**IN_S3, **overrides(quantization="fp8")}, weights_bytes=6_738_415_616),
            461.8 - 67.4,
            {"hosting.data_cache: true": 67.4, "a checkpoint in None": 0.5 * (67.4 + 27)},
        ),
        (shipped({"engine": "vllm", "engine_version": "0.24.0"}, IN_S3), None, {LOADER: 27 * 0.701}),
        (shipped({"engine": "sglang", "engine_version": "0.5.13"}, IN_S3), None, {LOADER: 27 * 0.701}),
        (shipped({"engine": "vllm", "engine_version": "0.23.0"}, IN_S3), None, {LOADER: 0}),
        (shipped({"engine": "vllm", "engine_version": "own"}, IN_S3), None, {LOADER: 0}),
        (
            shipped({"engine": "vllm", "engine_version": "0.24.0"}, overrides(extra={"load_format": "dummy"})),
            None,
            {LOADER: 0},
        ),
        (shipped(spec=compiled("trtllm", "startup")), 461.8 + 134.8, {"compile, when: ahead_of_time": 134.8}),
        (shipped(spec=compiled("trtllm", "ahead_of_time")), 461.8, {"compile, when: ahead_of_time": 0}),
        (shipped({"instance_type": "ml.inf2.8xlarge"}), 600, {"compile, when: ahead_of_time": 600 - 461.8}),
    ],
)
def test_what_a_start_takes_and_what_would_shorten_it(
    plan_and_spec: tuple[Plan, LoadedSpec], copy_s: float | None, saved: dict[str, float]
) -> None:
    start = copy_start(*plan_and_spec)
    assert copy_s is None or sum(part.seconds for part in start.parts if part.further) == pytest.approx(copy_s, abs=0.2)
    named = {part.part: part.seconds for part in start.shortcuts}
    assert named.pop("each GB less of the image (serving.image)") == 30
    assert {name: named.get(name, 0) for name in saved} == pytest.approx(saved, abs=0.2)
    assert copy_s is None or set(named) <= {*saved, "weights in S3 (seatrial stage)"}


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
    instance_type: str, region: str, weights: float, likely: list[float | None]
) -> None:
    plan, loaded = shipped({"instance_type": instance_type}, IN_S3, weights_bytes=int(weights))
    start = copy_start(plan, replace(loaded, environment=loaded.environment.model_copy(update={"region": region})))
    assert [part.likely_s for part in start.parts] == likely
    zero, further, in_service = start.totals
    known = sum(part.seconds if part.likely_s is None else part.likely_s for part in start.parts)
    known += plan.curve[0].ttft_ms / 1000
    assert (zero.likely_s, further.likely_s) == pytest.approx((60 + known, 30 + known), abs=0.1)
    assert further.seconds - in_service.seconds == pytest.approx(600 + 300)
    assert ("unknown" in zero.likely_source) == (None in likely)


@pytest.mark.parametrize(
    ("start", "parts"),
    [
        ({"seconds": 999, "instances_added": 0}, [600, 300, 999]),  # the image took so long, which no timeout counts
        ({"seconds": 700, "instances_added": 1}, [700 - 461.8, 461.8]),
        ({"seconds": 200, "instances_added": 1}, [0, 200]),
        ({"seconds": 240, "instances_added": 0, "simulated": True}, None),
        ({"seconds": 240, "instances_added": 0, "degree": 2}, None),  # of another deployment
    ],
)
def test_a_trial_of_this_deployment_tells_its_start_and_a_given_one_wins(
    start: dict[str, object], parts: list[float] | None
) -> None:
    plan, loaded = shipped()
    start = start | {"created_at": "2026-11-20T", "because": ""}
    degree = start.pop("degree", 1)
    source = {"file": "report.json", "digest": "0123", "start": start}
    of = {"engine": plan.engine.value, "instance_type": plan.instance_type.value, "model": plan.model_name}
    entry = {**ENTRY, **of, "tensor_parallel_degree": degree, "source": source}
    measured = replace(loaded, calibration_json=json.dumps(entry))
    usual = [part.seconds for part in start_parts(plan, loaded)]
    assert [part.seconds for part in start_parts(plan, measured)] == pytest.approx(parts or usual, abs=0.2)
    assert (start_parts(plan, measured)[-1].source == "measured by trial 0123 of 2026-11-20") == bool(parts)
    assert copy_start(plan, measured).warnings == ()
    given = start_parts(plan, measured, instance_s=1, copy_s=2)
    assert [(part.seconds, part.source) for part in given] == [(1, "--instance-start-s"), (2, "--copy-start-s")]
    with pytest.raises(SpecError, match="SEA406"):
        start_parts(plan, replace(loaded, calibration_json=json.dumps(entry | {"source": {"start": 1}})))


def test_a_start_that_sagemaker_does_not_wait_for_is_a_warning() -> None:
    plan, loaded = shipped()
    assert start_warnings(plan, loaded, start_parts(plan, loaded, copy_s=600)) == ()
    (warning,) = start_warnings(plan, loaded, start_parts(plan, loaded, copy_s=601))
    assert warning.startswith(
        "SEA571: A copy starts in 601 s (--copy-start-s), and SageMaker waits 0 s for weights and "
    )
    assert start_warnings(*shipped(spec=IN_S3), start_parts(plan, loaded, copy_s=1200)) == ()
