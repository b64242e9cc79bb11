"""A job by props: what SageMaker refuses is told at once, and no token gets into its digest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Stack

from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.jobs.optimization_job import OptimizationJob
from seatrial_cdk.jobs.optimization_service import OptimizationService
from tests.stacks.conftest import optimization_request

GOOD = optimization_request("dev")


@pytest.fixture(scope="module")
def service() -> OptimizationService:
    stack = Stack(App(analytics_reporting=False), "Jobs")
    return OptimizationService(stack, "Service", environment="dev")


def refused(service: OptimizationService, **arguments: Any) -> list[str]:  # noqa: ANN401 (wrong types)
    scope = Stack()
    with pytest.raises(SpecError) as caught:
        OptimizationJob(scope, "Job", service=service, **{"request": GOOD, **arguments})
    assert {each.rule for each in caught.value.problems} == {"SEA439"}
    return [each.field for each in caught.value.problems]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"source_s3_uri": None}, ["request.source_s3_uri"]),
        ({"source_model_name": "model"}, ["request.source_s3_uri"]),
        ({"configs": ()}, ["request.configs"]),
        ({"configs": ({"Other": {}}, *GOOD.configs)}, ["request.configs[0]"]),
        ({"instance_type": "ml.m5.large", "max_hours": float("nan")}, ["request.instance_type", "request.max_hours"]),
        ({"source_s3_uri": "https://bucket/model/", "max_hours": 121}, ["request.source_s3_uri", "request.max_hours"]),
    ],
)
def test_what_sagemaker_refuses_is_told_at_once(
    service: OptimizationService, changes: dict[str, Any], fields: list[str]
) -> None:
    assert refused(service, request=replace(GOOD, **changes)) == fields


def test_a_token_would_change_the_digest_of_a_job_by_itself(service: OptimizationService) -> None:
    bucket = CfnParameter(Stack(), "Bucket").value_as_string
    assert refused(service, request=replace(GOOD, source_s3_uri=f"s3://{bucket}/model/")) == ["request"]


def test_a_job_of_another_environment_half_a_network_and_wrong_tags_are_told(service: OptimizationService) -> None:
    assert refused(service, request=optimization_request("prod")) == ["request.environment"]
    assert refused(service, network=ContainerNetwork(subnet_ids=("subnet-1",))) == ["network"]
    assert refused(service, tags={"a": None, "aws:b": "c"}) == ["tags.a", "tags.aws:b"]
    assert refused(service, tags={"Seatrial:environment": "prod"}) == ["tags.Seatrial:environment"]
    assert refused(service, tags={f"k{n}": "v" * 200 for n in range(60)}) == ["tags", "tags"]


@pytest.mark.parametrize("name", ["", "a b", "e" * 33, None])
def test_names_of_jobs_begin_with_the_name_of_an_environment(name: Any) -> None:  # noqa: ANN401 (a wrong type)
    with pytest.raises(SpecError, match="SEA439"):
        OptimizationService(Stack(), "Service", environment=name)
