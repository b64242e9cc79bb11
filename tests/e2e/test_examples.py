"""The apps of `examples/` as their READMEs deploy them: by `cdk deploy`, on one embedded AWS."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import boto3
import pytest

from seatrial.client import Options, Schema, Target, generate
from seatrial_laptop.lifecycle import child_variables
from tests.environment import environment
from tests.tools import BIN, ROOT, run_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples"
BUCKET, WEIGHTS = "amzn-s3-demo-bucket", "qwen2.5-7b/config.json"


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Synthesize every example for the embedded AWS, all at once; the CDK CLI would do it for each command anew."""
    out = tmp_path_factory.mktemp("examples")
    names = sorted(folder.parent.name for folder in EXAMPLES.glob("*/app.py"))
    with ThreadPoolExecutor(len(names)) as pool:
        return tuple(pool.map(lambda name: _synthesized(name, out / name), names))


def _synthesized(name: str, out: Path) -> Path:
    context = json.loads((EXAMPLES / name / "cdk.json").read_text())["context"] | {"environment": "local"}
    env = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "CDK_OUTDIR": f"{out}",
        "CDK_CONTEXT_JSON": json.dumps(context),
    }
    ended = run_to_end(BIN / "python", ROOT / "tests/examples/with_cdk_nag.py", folder=EXAMPLES / name, env=env)
    assert ended.exit_code == 0, ended.output
    return out


@pytest.fixture(scope="module")
def deployed(cloud: EmbeddedAws, cdk: RunCdk, assemblies: tuple[Path, ...]) -> Iterator[EmbeddedAws]:
    """Deploy every example, and destroy them all in the end, which nothing may refuse."""
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key=WEIGHTS, Body=b"{}")
    try:
        for assembly in assemblies:
            ended = cdk("deploy", "--all", "--app", assembly, "--require-approval", "never")
            assert ended.exit_code == 0, ended.output
        yield cloud
    finally:
        destroyed = [cdk("destroy", "--all", "--force", "--app", assembly) for assembly in assemblies]
    assert [ended.output for ended in destroyed if ended.exit_code] == []
    assert cloud.client("sagemaker").list_endpoints()["Endpoints"] == []


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
