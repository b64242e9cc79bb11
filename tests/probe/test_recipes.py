"""Recipes of one endpoint, pinned under the gate and the levels of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.probe.pinned import ProbedHardware
from seatrial.probe.recipes import asking_limit_s, compare_folder, local_weight_bytes, pin_recipes, recipe_result
from seatrial.probe.run import ProbeRun
from seatrial.quality.recipe_comparison import compare_recipes
from seatrial.specs.recipe import parse_recipe
from seatrial_base.errors import BenchError, SpecError
from seatrial_load.documents.request import TrialTarget
from seatrial_load.quality.scores import evaluation_set
from tests.probe.conftest import CHEAP, DEAR, locked_as, result_of
from tests.probe.test_deploy import FakeCdk

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_load.documents.result import TrialResult
    from tests.probe.conftest import Locked

NONE, FP8 = parse_recipe("none"), parse_recipe("fp8")
ASKED = evaluation_set(b'{"prompt": "a"}', "e", chat=False)


class _Stacks:
    def __init__(self, result: TrialResult) -> None:
        self._result = result

    def exists(self, _name: str) -> bool:
        return False

    def result(self, _name: str) -> TrialResult:
        return self._result


@pytest.fixture
def endpoint(tmp_path: Path) -> Locked:
    return locked_as(tmp_path, serving={"instance_types": ["ml.g6e.2xlarge"]}, slo={"output_tok_s": 1})


def test_both_recipes_have_one_copy_and_the_same_load(endpoint: Locked) -> None:
    a, b = pin_recipes(endpoint.loaded, (NONE, FP8), endpoint.plan, endpoint.environments)
    assert (a.name, b.name) == ("none", "fp8")
    assert a.pinned.deployment.stack_name != b.pinned.deployment.stack_name
    for each in (a, b):
        plan = each.pinned.plan
        assert plan.copy_count.value == 1
        assert plan.gate_concurrency_per_copy.value == endpoint.plan.gate_concurrency_per_copy.value
        assert plan.concurrency_levels.value == endpoint.plan.concurrency_levels.value
        assert each.pinned.loaded.endpoint.trial.mode == "report"
        assert each.pinned.loaded.endpoint.slo.output_tok_s is None
    results = [recipe_result(each, result_of(each.pinned), None, (), 16) for each in (a, b)]
    assert results[0].deployment.weight_bytes > 1.8 * results[1].deployment.weight_bytes  # type: ignore[operator]
    assert compare_recipes(*results).quality is None


def test_a_digest_tells_recipes_sets_and_lengths_apart_but_not_the_order(endpoint: Locked) -> None:
    a, b = pin_recipes(endpoint.loaded, (NONE, FP8), endpoint.plan, endpoint.environments)
    digests = {a.digest(None, 16), b.digest(None, 16), a.digest(ASKED, 16), a.digest(None, 32)}
    assert len(digests) == 4
    again, _ = pin_recipes(endpoint.loaded, (FP8, NONE), endpoint.plan, endpoint.environments)
    assert again.digest(None, 16) == b.digest(None, 16)


def test_both_can_be_put_on_one_hardware(tmp_path: Path) -> None:
    locked = locked_as(tmp_path)
    hardware = ProbedHardware(DEAR, 4)
    assert locked.plan.instance_type.value == CHEAP
    pinned = pin_recipes(
        locked.loaded, (NONE, parse_recipe("kv_fp8")), locked.plan, locked.environments, hardware=hardware
    )
    assert {each.pinned.probed.hardware for each in pinned} == {hardware}


def test_a_recipe_that_contradicts_the_spec_leaves_nothing(tmp_path: Path) -> None:
    locked = locked_as(tmp_path, serving={"instance_types": [CHEAP], "overrides": {"quantization": "fp8"}})
    with pytest.raises(SpecError):
        pin_recipes(locked.loaded, (NONE, parse_recipe("awq=a/b-awq")), locked.plan, locked.environments)
    assert not compare_folder(locked.loaded).exists()


def test_the_stack_goes_although_nothing_was_answered(endpoint: Locked) -> None:
    (_, fp8) = pin_recipes(endpoint.loaded, (NONE, FP8), endpoint.plan, endpoint.environments)
    cdk = FakeCdk()

    def ask() -> None:
        raise BenchError.of("SEA534", "none of 3 prompts was answered")

    stacks = _Stacks(result_of(fp8.pinned))
    run = ProbeRun(
        pinned=fp8.pinned,
        environments=fp8.pinned.environments,
        cdk=cdk,
        stacks=stacks,
        clock=lambda: 0.0,
        afterwards=ask,
    )
    with pytest.raises(BenchError, match="SEA534"):
        run.measure()
    assert [name.split()[0] for name in cdk.names] == ["deploy", "destroy"]


def test_asking_has_a_limit() -> None:
    many = evaluation_set(b"\n".join(b'{"prompt": "a"}' for _ in range(9999)), "e", chat=False)
    assert (asking_limit_s(None), asking_limit_s(ASKED), asking_limit_s(many)) == (0.0, 120.0, 3600.0)


class _Logs:
    def filter_log_events(self, *, logGroupName: str) -> dict[str, list[dict[str, str]]]:  # noqa: N803 (boto3's name)
        lines = ["engine: local", "weights: GGUF Q8_0 of random weights, in place of fp8; 2048 bytes (0.0 MiB)"]
        return {"events": [{"message": line} for line in lines] if logGroupName.endswith("Components/c") else []}


def test_a_local_engine_tells_the_size_of_its_weights() -> None:
    target = TrialTarget(endpoint_name="e", inference_component="c", region="us-east-1")
    assert local_weight_bytes(_Logs(), target) == 2048  # type: ignore[arg-type]  # an answer is a plain dict
