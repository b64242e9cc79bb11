"""An embedded AWS with one inference component per container, and a runtime client as a user makes it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import boto3
import pytest

from seatrial.client import Schema, Target, client_config
from seatrial.deployment.alias import AliasValue, alias_name
from seatrial_laptop import lifecycle
from seatrial_load.client.connection import openai_path
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
TGI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
ENDPOINT = "chat"
COMPONENTS = {
    "chat-copy": (LMI, {"OPTION_MAX_MODEL_LEN": "2048", "OPTION_MAX_ROLLING_BATCH_SIZE": "8"}),
    "rolling": (LMI, {"OPTION_ROLLING_BATCH": "vllm", "OPTION_MAX_MODEL_LEN": "2048"}),
    "tgi": (TGI, {"MAX_INPUT_TOKENS": "1024", "MAX_TOTAL_TOKENS": "2048", "MAX_CONCURRENT_REQUESTS": "2"}),
}
COMPONENT_OF = {
    Schema.LMI_ASYNC: "chat-copy",
    Schema.LMI_ROLLING: "rolling",
    Schema.TGI: "tgi",
    Schema.OPENAI_CHAT: "chat-copy",
    Schema.OPENAI_COMPLETIONS: "chat-copy",
}
LONGEST_WAIT_S = 60.0


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lifecycle.LocalAws]:
    """Start an embedded AWS that serves `ENDPOINT`."""
    state_dir = tmp_path_factory.mktemp("aws")
    try:
        with environment({"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}):
            local = lifecycle.start_embedded_aws(state_dir=state_dir)
        with environment(lifecycle.environment(local)):
            _serve(boto3.client("sagemaker"))
            path = openai_path(ENDPOINT, "chat-copy")
            value = AliasValue(
                endpoint_name=ENDPOINT,
                inference_component_name="chat-copy",
                openai_base_url=f"https://runtime.sagemaker.us-east-1.amazonaws.com/{path}",
            ).to_json()
            boto3.client("ssm").put_parameter(Name=alias_name("dev", "chat"), Type="String", Value=value)
        yield local
    finally:
        lifecycle.stop_embedded_aws(state_dir)


@pytest.fixture(scope="module")
def runtime(local: lifecycle.LocalAws) -> Iterator[SageMakerRuntimeClient]:
    """Return a client of the embedded AWS, to which the environment leads while this file's tests run."""
    with environment(lifecycle.environment(local)):
        yield boto3.client("sagemaker-runtime", config=client_config(concurrency=4))


@pytest.fixture(params=list(Schema), ids=str)
def target(request: pytest.FixtureRequest, runtime: SageMakerRuntimeClient) -> Target:
    """Return the target of each schema."""
    schema: Schema = request.param
    return Target(ENDPOINT, schema, inference_component=COMPONENT_OF[schema])


def _serve(sagemaker: SageMakerClient) -> None:
    variant = {"VariantName": "main", "InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName="c", ExecutionRoleArn=ROLE, ProductionVariants=[variant])  # type: ignore[list-item]  # the stub wants its own dictionary
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="c")
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=ENDPOINT, WaiterConfig={"Delay": 1, "MaxAttempts": int(LONGEST_WAIT_S)}
    )
    for name, (image, variables) in COMPONENTS.items():
        container = {"Image": image, "Environment": {"HF_MODEL_ID": "org/model", **variables}}
        sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)  # type: ignore[arg-type]  # likewise
        sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=ENDPOINT,
            VariantName="main",
            Specification={
                "ModelName": name,
                "ComputeResourceRequirements": {
                    "NumberOfAcceleratorDevicesRequired": 1,
                    "MinMemoryRequiredInMb": 1024,
                },
            },
            RuntimeConfig={"CopyCount": 1},
        )
    for name in COMPONENTS:
        _await(sagemaker, name)


def _await(sagemaker: SageMakerClient, component: str) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while (found := sagemaker.describe_inference_component(InferenceComponentName=component)).get(
        "InferenceComponentStatus"
    ) != "InService":
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
