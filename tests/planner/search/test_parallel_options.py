from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.planner.search.demand import Groups, groups_at, groups_words, unplanned_copies
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_lint.engines.engine_options import OptionValue
    from tests.planner.conftest import Ask


def model(hub_id: str) -> Architecture:
    found = find_model(hub_id)
    assert found is not None
    return found


EXPERTS, DENSE = model("Qwen/Qwen3-30B-A3B"), model("Qwen/Qwen3-32B")


@pytest.mark.parametrize(
    ("extra", "groups"),
    [
        ({}, Groups()),
        ({"enable_expert_parallel": True}, Groups(experts=8)),
        ({"ENABLE_EXPERT_PARALLEL": "true"}, Groups(experts=8)),
        ({"enable_expert_parallel": False}, Groups()),
        ({"ep_size": 4}, Groups(experts=4)),
        ({"enable_dp_attention": "", "dp": 2, "ep": 8}, Groups(experts=8, attention=2)),
        ({"moe_expert_parallel_size": 2, "enable_attention_dp": True}, Groups(experts=2, attention=8)),
        ({"dp_size": 2}, Groups()),
        ({"ep_size": 3}, Groups(refused="ep_size 3 does not divide degree 8.")),
        ({"ep_size": "many"}, Groups()),
    ],
)
def test_options_of_each_engine_make_groups_of_accelerators(extra: dict[str, OptionValue], groups: Groups) -> None:
    assert groups_at(extra, EXPERTS, 8) == groups


def test_a_model_without_experts_deals_none_out() -> None:
    assert groups_at({"enable_expert_parallel": True}, DENSE, 8) == Groups()


def test_what_is_spread_is_said() -> None:
    assert groups_words(Groups(), 8) == ""
    assert groups_words(Groups(experts=8, attention=2), 8) == (
        " Experts are dealt out to 8 groups of 1. Attention runs in 2 groups of 4, each with its requests."
    )


def test_copies_that_an_engine_starts_beside_the_planned_ones_are_warned_of() -> None:
    (told,) = unplanned_copies({"data_parallel_size": 8})

    assert told.startswith("data_parallel_size 8 starts so many copies of the model on accelerators of their own")
    assert unplanned_copies({"dp": 1}) == unplanned_copies({"dp": 8, "enable_dp_attention": True}) == ()


def test_a_plan_takes_attention_by_groups_into_account_and_says_so(ask: Ask) -> None:
    asked: dict[str, object] = {
        "model": {"hub_id": "Qwen/Qwen3-30B-A3B"},
        "workload": {"input_tokens": 1_000, "output_tokens": 200, "concurrency": 64},
    }
    serving = {"engine": "sglang", "instance_types": ["ml.g6e.12xlarge"]}
    overrides, extra = {"tensor_parallel_degree": 4}, {"enable_dp_attention": True, "dp": 4, "ep_size": 4}

    plain = make_plan(ask(**asked, serving={**serving, "overrides": overrides}))
    grouped = make_plan(ask(**asked, serving={**serving, "overrides": {**overrides, "extra": extra}}))

    assert plain.memory.weights_bytes < grouped.memory.weights_bytes
    assert grouped.tensor_parallel_degree.because == (
        "The spec fixes it. Experts are dealt out to 4 groups of 1. Attention runs in 4 groups of 1, each with its "
        "requests."
    )
    assert "Attention data parallelism was not fitted" in grouped.band.because
