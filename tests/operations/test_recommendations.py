"""A recommendation job beside a plan: what each deploys, what it costs, and jobs that recommend nothing."""

from __future__ import annotations

import pytest

from seatrial.operations.recommendations import recommendation_table
from seatrial_base.errors import SpecError
from tests.sample_plan import sample_plan

JOB: dict[str, object] = {
    "AIRecommendationJobStatus": "Completed",
    "Recommendations": [
        {
            "OptimizationDetails": [{"OptimizationType": "SpeculativeDecoding"}],
            "DeploymentConfiguration": {
                "InstanceType": "ml.g6.24xlarge",
                "InstanceCount": 2,
                "CopyCountPerInstance": 2,
                "EnvironmentVariables": {"SM_VLLM_TENSOR_PARALLEL_SIZE": "2", "SM_VLLM_MAX_NUM_SEQS": "88"},
            },
            "ExpectedPerformance": [{"Metric": "ttft", "Stat": "p90", "Value": "394.8", "Unit": "ms"}],
        },
        {},
    ],
}


def test_each_recommendation_stands_below_the_plan() -> None:
    table = recommendation_table(
        sample_plan(), JOB, "job", price=lambda name: 10.0 if name == "ml.g6.24xlarge" else None
    )
    assert [column.label for column in table.columns] == ["", "plan", "recommendation 1"]
    _, plan, first = zip(*([cell.text for cell in row] for row in table.rows), strict=True)
    assert plan[:4] == ("ml.g5.2xlarge", "1", "1", "1")
    assert first == ("ml.g6.24xlarge", "2", "2", "2", "$20.00", "ttft p90 394.8 ms", "SpeculativeDecoding")


@pytest.mark.parametrize("job", [{}, {"AIRecommendationJobStatus": "InProgress"}, {**JOB, "Recommendations": [{}]}])
def test_a_job_that_recommends_nothing_is_refused_with_a_remedy(job: dict[str, object]) -> None:
    with pytest.raises(SpecError) as caught:
        recommendation_table(sample_plan(), job, "job", lambda _: None)
    (problem,) = caught.value.problems
    assert (problem.rule, bool(problem.hint)) == ("SEA633", True)
