"""The apps of `examples/` as their READMEs deploy them: by `cdk deploy`, on one embedded AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest

from seatrial.client import Options, Schema, Target, generate
from seatrial.local.lifecycle import child_variables
from tests.e2e.conftest import ROOT
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples"
BUCKET, WEIGHTS = "amzn-s3-demo-bucket", "qwen2.5-7b/config.json"


@pytest.fixture(scope="module")
def deployed(cloud: EmbeddedAws, cdk: RunCdk) -> Iterator[EmbeddedAws]:
    """Deploy every example, and destroy them all in the end, which nothing may refuse."""
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key=WEIGHTS, Body=b"{}")
    names = ("by_props", "one_endpoint", "shared_endpoint")
    try:
        for name in names:
            ended = cdk("deploy", "--all", *_options(), "--require-approval", "never", folder=EXAMPLES / name)
            assert ended.exit_code == 0, ended.output
        yield cloud
    finally:
        ended_all = [cdk("destroy", "--all", "--force", *_options(), folder=EXAMPLES / name) for name in names]
    assert [ended.output for ended in ended_all if ended.exit_code] == []
    assert cloud.client("sagemaker").list_endpoints()["Endpoints"] == []


def _options() -> tuple[str, ...]:
    return "-c", "environment=local", "--output", "cdk.out"


def test_each_component_of_each_example_answers(deployed: EmbeddedAws) -> None:
    runtime = deployed.client("sagemaker-runtime")
    targets = (
        Target("local-chat", Schema.LMI_ASYNC, "local-chat-model"),
        Target("shared", Schema.LMI_ASYNC, "shared-model"),
        Target("shared", Schema.LMI_ASYNC, "shared-summaries"),
    )
    assert all(generate(runtime, target, "hello", Options(max_tokens=4)).text for target in targets)


def test_names_are_in_parameters_and_alarms_know_the_topic(deployed: EmbeddedAws) -> None:
    with environment(child_variables(deployed.local)):
        ssm, cloudwatch = boto3.client("ssm"), boto3.client("cloudwatch")
    assert ssm.get_parameter(Name="/support/llm/EndpointName")["Parameter"]["Value"] == "support"
    alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    older = [alarm for alarm in alarms if {"Name": "EndpointName", "Value": "support-2025"} in alarm["Dimensions"]]
    assert len(older) == 3
    assert all(alarm["AlarmActions"] for alarm in older)
