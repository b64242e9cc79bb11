"""The local engine behind the embedded AWS: one endpoint, one inference component, a few slots."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from seatrial_laptop import lifecycle
from seatrial_load.aws.credentials import Credentials
from seatrial_load.trial.dependencies import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_laptop.lifecycle import LocalAws

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
ENDPOINT, COMPONENT = "search", "search-copy"
LONGEST_WAIT_S = 60.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """A served endpoint of the embedded AWS."""

    aws: LocalAws
    sagemaker: SageMakerClient

    @property
    def tools(self) -> Tools:
        """What a trial of it needs: the embedded AWS refuses other credentials than its own."""
        credentials = Credentials(self.aws.access_key_id, self.aws.secret_access_key)
        return Tools(credentials=credentials, sagemaker=self.sagemaker, calibrates=False, asks_cloudwatch=False)


@contextmanager
def local_endpoint(slots: int) -> Iterator[LocalEndpoint]:
    """Serve one copy that batches so many sequences, until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        aws = lifecycle.start_embedded_aws(state_dir=Path(folder))
        try:
            sagemaker = boto3.client(
                "sagemaker",
                endpoint_url=aws.endpoint_url,
                region_name=aws.region,
                aws_access_key_id=aws.access_key_id,
                aws_secret_access_key=aws.secret_access_key,
            )
            _deploy(sagemaker, slots)
            yield LocalEndpoint(aws, sagemaker)
        finally:
            lifecycle.stop_embedded_aws(Path(folder))


def _deploy(sagemaker: SageMakerClient, slots: int) -> None:
    environment = {
        "HF_MODEL_ID": "org/model",
        "OPTION_MAX_MODEL_LEN": "512",
        "OPTION_MAX_ROLLING_BATCH_SIZE": str(slots),
    }
    sagemaker.create_model(
        ModelName="model", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": IMAGE, "Environment": environment}
    )
    sagemaker.create_endpoint_config(
        EndpointConfigName="config",
        ExecutionRoleArn=ROLE,
        ProductionVariants=[{"VariantName": "main", "InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": 1}],
    )
    sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName="config")
    waiter = sagemaker.get_waiter("endpoint_in_service")
    waiter.wait(EndpointName=ENDPOINT, WaiterConfig={"Delay": 1, "MaxAttempts": int(LONGEST_WAIT_S)})
    sagemaker.create_inference_component(
        InferenceComponentName=COMPONENT,
        EndpointName=ENDPOINT,
        VariantName="main",
        Specification={
            "ModelName": "model",
            "ComputeResourceRequirements": {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024},
        },
        RuntimeConfig={"CopyCount": 1},
    )
    _await_service(sagemaker)


def _await_service(sagemaker: SageMakerClient) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while True:
        found = sagemaker.describe_inference_component(InferenceComponentName=COMPONENT)
        if found["InferenceComponentStatus"] == "InService":
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{COMPONENT} is {found['InferenceComponentStatus']} after {LONGEST_WAIT_S:g} s")
        time.sleep(POLL_S)
