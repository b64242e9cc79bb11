"""Two models and an adapter on the instances of one endpoint: deployed, invoked by name and by weight, scaled alone."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

import boto3
import pytest

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.client import Alias, Options, Schema, Target, generate
from seatrial.packaging import tar_gz_bytes
from seatrial_laptop.lifecycle import child_variables
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

STACK = "seatrial-local-host"
LIMITS: dict[str, object] = {"tensor_parallel_degree": 1, "max_model_len": 512, "max_num_seqs": 8}
ADAPTERS = [{"name": "sql", "s3_uri": "s3://adapters/sql/v1.tar.gz"}]
MOST_LOOKS, PAUSE_S = 60, 0.5
SHARES = [{"spec": "host", "weight": 1}, {"spec": "guest", "weight": 1}]


def serving(**more: object) -> dict[str, object]:
    return {"instance_types": ["ml.g5.12xlarge"], "overrides": LIMITS, **more}


def copies_of(cloud: EmbeddedAws, component: str, *, wanted: int) -> int:
    """Return the copies that run, after they had time to become as many as are wanted."""
    found = 0
    for _ in range(MOST_LOOKS):
        told = cloud.client("sagemaker").describe_inference_component(InferenceComponentName=component)
        found = told["RuntimeConfig"]["CurrentCopyCount"]
        if found == wanted:
            break
        time.sleep(PAUSE_S)
    return found


def test_two_models_and_an_adapter_share_an_endpoint(
    cloud: EmbeddedAws, cdk: RunCdk, new_workspace: Callable[[], Workspace], remove_stacks: Callable[[], None]
) -> None:
    workspace = new_workspace()
    workspace.write("guest", serving=serving())
    with_lora = serving(overrides={**LIMITS, "lora": {"max_rank": 16, "max_adapters": 2}}, adapters=ADAPTERS)
    workspace.write("host", serving=with_lora, hosting={"more_models": ["guest"], "traffic": SHARES})
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="adapters")
    s3.upload_fileobj(io.BytesIO(tar_gz_bytes({"adapter_config.json": b"{}"})), "adapters", "sql/v1.tar.gz")
    assembly = synthesize(workspace.folder / "cdk.out", workspace.context())
    try:
        ended = cdk("deploy", STACK, "--app", assembly, "--require-approval", "never", "--progress", "events")
        assert ended.exit_code == 0, ended.output
        sagemaker = cloud.client("sagemaker")
        found = sagemaker.list_inference_components()["InferenceComponents"]
        assert {each["InferenceComponentName"]: each["InferenceComponentStatus"] for each in found} == dict.fromkeys(
            ("local-host-model", "local-host-guest", "local-host-adapter-sql"), "InService"
        )
        assert {each["EndpointName"] for each in found} == {"local-host"}
        runtime, few = cloud.client("sagemaker-runtime"), Options(max_tokens=4)
        for component in ("local-host-guest", "local-host-adapter-sql"):
            target = Target("local-host", Schema.LMI_ASYNC, inference_component=component)
            assert generate(runtime, target, "hello", few).text
        with environment(child_variables(cloud.local)):
            alias = Alias(boto3.client("ssm"), "local", "host", Schema.LMI_ASYNC)
        sessions = [alias.of_session(f"user-{number}").target().inference_component for number in range(64)]
        assert set(sessions) == {"local-host-model", "local-host-guest"}
        sagemaker.update_inference_component_runtime_config(
            InferenceComponentName="local-host-guest", DesiredRuntimeConfig={"CopyCount": 2}
        )
        assert copies_of(cloud, "local-host-guest", wanted=2) == 2
        assert copies_of(cloud, "local-host-model", wanted=1) == 1
    finally:
        remove_stacks()
