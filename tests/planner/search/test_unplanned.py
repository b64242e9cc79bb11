"""Ways of serving that the planner refuses, or predicts as something else and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def test_a_backend_of_neuron_and_a_pipeline_are_refused_at_once(ask: Ask) -> None:
    serving = {"backend": "neuronx", "overrides": {"pipeline_parallel_degree": 2}}
    with pytest.raises(PlanError) as caught:
        make_plan(ask(serving=serving))

    assert [(problem.rule, problem.field, problem.message) for problem in caught.value.problems] == [
        ("SEA352", "serving.backend", "the backend neuronx needs instance types with AWS Neuron"),
        (
            "SEA352",
            "serving.overrides.pipeline_parallel_degree",
            "pipeline parallelism is not supported",
        ),
    ]


def test_dynamic_batching_is_predicted_as_continuous_and_said(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge"], "backend": "python"}

    assert any(
        warning.startswith("Predictions assume continuous batching; dynamic batching")
        for warning in make_plan(ask(serving=serving)).warnings
    )
