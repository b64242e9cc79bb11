from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.locks.changes import DecisionChange, changes, decision_changes, dropped_provenance
from seatrial.planner.planner import make_plan
from tests.sample_plan import decided, sample_plan

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from tests.planner.conftest import Ask


@pytest.fixture
def plan(ask: Ask) -> Plan:
    return make_plan(ask())


def test_an_equal_plan_is_unchanged(plan: Plan) -> None:
    assert changes(plan.model_dump(mode="json"), plan) == ("unchanged",)


def test_each_decision_and_the_cost_have_a_line(plan: Plan, ask: Ask) -> None:
    new = make_plan(ask(serving={"instance_types": ["ml.g5.12xlarge"]}, scaling={"max_copies": 2}))

    lines = changes(plan.model_dump(mode="json"), new)

    assert "instance_type: ml.g5.2xlarge -> ml.g5.12xlarge" in lines
    assert "max_copies: 1 -> 2" in lines
    assert "usd_per_hour: 1.515 -> 7.09" in lines
    assert not any(line.startswith(("spec_digest", "curve", "warnings", "image")) for line in lines)


def test_another_image_is_named_by_its_address(plan: Plan, ask: Ask) -> None:
    new = make_plan(ask(serving={"instance_types": ["ml.g5.2xlarge"], "engine_version": "lmi28"}))

    (line,) = (line for line in changes(plan.model_dump(mode="json"), new) if line.startswith("image: "))

    assert line == f"image: {plan.image.value.uri} -> {new.image.value.uri}"


def test_other_words_are_no_decision(plan: Plan) -> None:
    new = plan.model_copy(update={"warnings": ("other",)})

    assert changes(plan.model_dump(mode="json"), new) == ("no decision changed, only texts or predictions",)


def test_a_decision_that_an_older_release_did_not_make_was_none(plan: Plan) -> None:
    old = plan.model_dump(mode="json")
    del old["dtype"]

    assert changes(old, plan) == ("dtype: none -> fp16",)


def test_what_is_compiled_anew_is_said(ask: Ask) -> None:
    inferentia = {"instance_types": ["ml.inf2.8xlarge"]}
    short = make_plan(ask(model={"hub_id": "meta-llama/Llama-3.1-8B-Instruct"}, serving=inferentia))
    long = short.model_copy(update={"max_model_len": short.max_model_len.model_copy(update={"value": 8192})})

    lines = changes(short.model_dump(mode="json"), long)

    assert lines[-1] == (
        f"The sequence length changes from {short.max_model_len.value:,} to 8,192: compiled artifacts are made again."
    )


@pytest.mark.parametrize(
    "field",
    [
        *("schema_version", "spec_digest", "memory", "curve", "uncertainty", "band", "knee", "regime", "pareto"),
        *("rejected", "warnings", "adopted", "promoted", "unpriced", "probe", "proposals", "rates", "chance", "safer"),
    ],
)
def test_what_is_predicted_or_told_is_no_decision(field: str) -> None:
    plan = sample_plan()
    old = {**plan.model_dump(mode="json"), field: "another"}

    assert changes(old, plan) == ("no decision changed, only texts or predictions",)


def test_what_a_plan_does_not_write_is_no_change_and_what_it_writes_is() -> None:
    plan = sample_plan()
    old = plan.model_dump(mode="json")
    assert "generation" not in old

    same = {**old, "generation": 1, "hosting_kind": "inference_component"}
    assert changes(same, plan) == ("no decision changed, only texts or predictions",)
    assert changes(old, plan.model_copy(update={"generation": 2})) == ("generation: 1 -> 2",)
    single = plan.model_copy(update={"hosting_kind": decided("single_model")})
    assert changes(old, single) == ("hosting_kind: inference_component -> single_model",)


def test_a_change_tells_why_it_is_the_new_value() -> None:
    old, new = sample_plan().model_dump(mode="json"), sample_plan(dtype=decided("bf16")).model_dump(mode="json")

    assert decision_changes(old, new) == (DecisionChange("dtype", "fp16", "bf16", "written by hand"),)
    assert decision_changes(old, old) == ()
    every = {one.field: (one.old, one.new) for one in decision_changes({}, new)}
    assert every["dtype"] == ("none", "bf16")
    assert every["usd_per_hour"] == ("none", "1.515")
    assert {one.field: one.new for one in decision_changes(new, {})}.keys() == every.keys()
    assert {one.new for one in decision_changes(new, {})} == {"none"}


def test_levels_are_listed() -> None:
    old = sample_plan().model_dump(mode="json")
    new = sample_plan(concurrency_levels=decided((1, 8)), max_copies=9)

    assert changes(old, new) == ("concurrency_levels: 1, 4, 16 -> 1, 8", "max_copies: 2 -> 9")


def test_a_plan_that_is_not_the_promoted_one_any_more_says_so() -> None:
    assert dropped_provenance(None) == ()
    (line,) = dropped_provenance({"source": "staging"})
    assert line.startswith("promoted: dropped")
