"""The embedded AWS behind the proxy, with one endpoint that takes inference components."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop import lifecycle

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_sagemaker import SageMakerClient

LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
ENDPOINT, CONFIG, MODEL, COMPONENT = "chat", "chat-config", "chat-model", "chat-copy"
LONGEST_WAIT_S = 60.0


@dataclass
class Cloud:
    """The embedded AWS that serves one endpoint with one inference component."""

    local: lifecycle.LocalAws
    state_dir: Path
    sagemaker: SageMakerClient

    def serve(self, component: str, *, copies: int) -> None:
        """Create an inference component and wait until it serves."""
        requirements = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
        self.sagemaker.create_inference_component(
            InferenceComponentName=component,
            EndpointName=ENDPOINT,
            VariantName="main",
            Specification={"ModelName": MODEL, "ComputeResourceRequirements": requirements},  # type: ignore[typeddict-item]  # whole numbers
            RuntimeConfig={"CopyCount": copies},
        )
        self.await_status(component, "InService")

    def await_status(self, component: str, status: str) -> str:
        """Wait for a component's status and return its failure reason."""
        deadline = time.monotonic() + LONGEST_WAIT_S
        while True:
            found = self.sagemaker.describe_inference_component(InferenceComponentName=component)
            if found["InferenceComponentStatus"] == status:
                return found.get("FailureReason", "")
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def engines(self, component: str) -> list[int]:
        """Return the process numbers of a component's copies."""
        ports = [
            entry.ports for entry in lifecycle.read_local_status(self.state_dir).components if entry.name == component
        ]
        ps = shutil.which("ps") or "/bin/ps"
        listing = subprocess.run([ps, "-ewwo", "pid=,args="], capture_output=True, text=True, check=True).stdout
        ours = [line.split() for line in listing.splitlines() if "seatrial_laptop.engine" in line]
        return [int(words[0]) for port in ports[0] for words in ours if str(port) in words]


def deploy(cloud: Cloud) -> None:
    """Create the endpoint, and the component that every test may use."""
    container = {"Image": LMI, "Environment": {"HF_MODEL_ID": "org/model", "OPTION_MAX_MODEL_LEN": "512"}}
    cloud.sagemaker.create_model(ModelName=MODEL, ExecutionRoleArn=ROLE, PrimaryContainer=container)  # type: ignore[arg-type]  # the stub wants its own dictionary
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}
    variant: dict[str, object] = {"VariantName": "main", "InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": 1}
    variant["ManagedInstanceScaling"] = scaling
    cloud.sagemaker.create_endpoint_config(
        EndpointConfigName=CONFIG,
        ExecutionRoleArn=ROLE,
        ProductionVariants=[variant],  # type: ignore[list-item]  # likewise
    )
    cloud.sagemaker.create_endpoint(EndpointName=ENDPOINT, EndpointConfigName=CONFIG)
    cloud.sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=ENDPOINT, WaiterConfig={"Delay": 1, "MaxAttempts": int(LONGEST_WAIT_S)}
    )
    cloud.serve(COMPONENT, copies=1)
