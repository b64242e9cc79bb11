"""A stack with an endpoint, its trial's results and a managed benchmark; and events of CloudFormation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template
from botocore.stub import Stubber

from seatrial.spec.environment import Network
from seatrial_cdk.llm_endpoint import LlmEndpoint
from seatrial_cdk.managed_benchmark.managed_benchmark import ManagedBenchmark
from seatrial_cdk.managed_benchmark.workload_spec import ManagedWorkload
from seatrial_cdk.trial_service.results import TrialResults
from tests.sample_plan import sample_plan
from tests.stacks.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_cdk.managed_benchmark.runtime.job import JobEvent

ROOT = Path(__file__).parents[3]
JOB = "dev-chat-0123456789ab"


@pytest.fixture
def workload() -> ManagedWorkload:
    return ManagedWorkload(
        input_tokens=256,
        output_tokens=256,
        concurrency_levels=(1, 8, 16),
        requests_per_level=48,
        tokenizer="meta-llama/Llama-2-7b-chat-hf",
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("managed"))


@pytest.fixture(scope="session")
def template(folder: Path) -> Template:
    return Template.from_string((folder / "managed.template.json").read_text())


def synthesize(folder: Path) -> Path:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(folder), analytics_reporting=False, context=context)
    stack = Stack(app, "managed")
    endpoint = LlmEndpoint(
        stack, "Endpoint", endpoint_name="dev-chat", plan=sample_plan(), serving=serving(), network=Network()
    )
    ManagedBenchmark(
        stack,
        "Managed",
        endpoint=endpoint,
        results=TrialResults(stack, "Results", kms_key_arn=None, removal="destroy"),
        workload=ManagedWorkload(
            input_tokens=256,
            output_tokens=256,
            concurrency_levels=(1, 8, 16),
            requests_per_level=48,
            tokenizer="meta-llama/Llama-2-7b-chat-hf",
        ),
        plan_digest="b",
    )
    app.synth()
    return folder


@pytest.fixture
def properties() -> dict[str, str]:
    return {
        "ServiceToken": "arn:aws:lambda:us-east-1:123456789012:function:provider",
        "JobName": JOB,
        "EndpointName": "dev-chat",
        "InferenceComponentName": "dev-chat-model",
        "WorkloadConfigName": "dev-chat-ba9876543210",
        "RoleArn": "arn:aws:iam::123456789012:role/seatrial-dev-chat-JobRole",
        "OutputUri": f"s3://results/trials/dev-chat/b/managed/{JOB}",
        "WaitSeconds": "2700",
    }


@pytest.fixture
def create(properties: dict[str, str]) -> JobEvent:
    return {"RequestType": "Create", "ResourceProperties": properties}


@pytest.fixture
def started(create: JobEvent) -> JobEvent:
    """Return what `is_complete` sees: the event with what `on_event` answered."""
    return {**create, "PhysicalResourceId": JOB, "StartedAt": 1000.0}


@pytest.fixture
def delete(started: JobEvent) -> JobEvent:
    return {**started, "RequestType": "Delete"}


@pytest.fixture
def sagemaker() -> SageMakerClient:
    return boto3.client("sagemaker", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def service(sagemaker: SageMakerClient) -> Iterator[Stubber]:
    """Answer the client's calls in order: botocore checks requests and answers against the service's own model."""
    with Stubber(sagemaker) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()
