"""What SageMaker may do with a role that the embedded IAM has."""

from __future__ import annotations

import json
import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

Laptop = Any  # the fixtures' classes live in conftest.py, which nobody can import
Roles = Any
LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
REPOSITORY = "arn:aws:ecr:us-east-1:763104351884:repository/djl-inference"
SAGEMAKER = ("sagemaker.amazonaws.com",)
PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
TOKEN = {"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"}
LONGEST_WAIT_S = 40.0
GROUPS = "/aws/sagemaker/InferenceComponents"


def pull(*actions: str, resource: str = REPOSITORY) -> dict[str, object]:
    return {"Effect": "Allow", "Action": [*actions], "Resource": resource}


def component(laptop: Laptop, host: str, role: str, **container: object) -> str:
    """Create a component whose model has a role, and wait until it doesn't change any more."""
    model, name = laptop.name("model"), laptop.name("component")
    laptop.sagemaker.create_model(
        ModelName=model,
        ExecutionRoleArn=role,
        PrimaryContainer={"Image": LMI, "Environment": {"HF_MODEL_ID": "org/model"}, **container},
    )
    resources = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    laptop.sagemaker.create_inference_component(
        InferenceComponentName=name,
        EndpointName=host,
        VariantName="main",
        Specification={"ModelName": model, "ComputeResourceRequirements": resources},
        RuntimeConfig={"CopyCount": 1},
    )
    laptop.component_settled(name)
    return f"{name}"


def removed(laptop: Laptop, name: str) -> tuple[str, str]:
    """Delete a component, and return the status and the failure reason that it had."""
    settled: tuple[str, str] = laptop.component_settled(name)
    laptop.sagemaker.delete_inference_component(InferenceComponentName=name)
    with pytest.raises(ClientError, match="Could not find"):
        laptop.component_settled(name)
    return settled


def outcome(laptop: Laptop, host: str, role: str, **container: object) -> tuple[str, str]:
    """Return the status and the failure reason of a component whose model has a role."""
    return removed(laptop, component(laptop, host, role, **container))


@pytest.mark.parametrize(
    ("statements", "lacking"),
    [
        ([pull(*PULL)], "GetAuthorizationToken"),
        ([TOKEN, pull(*PULL[:1], PULL[2])], "BatchGetImage"),
        ([TOKEN, pull(*PULL, resource=f"{REPOSITORY}-other")], "BatchCheckLayerAvailability"),
    ],
)
def test_an_image_is_pulled_with_the_role_of_the_model(
    laptop: Laptop, host: str, roles: Roles, statements: list[object], lacking: str
) -> None:
    role = roles.role(*statements, services=SAGEMAKER)
    said = f"The role '{role}' does not have {lacking} permission for the image: '{LMI}'."
    assert outcome(laptop, host, role) == ("Failed", said)


def test_a_role_that_sagemaker_may_not_assume_serves_nothing(laptop: Laptop, host: str, roles: Roles) -> None:
    status, reason = outcome(laptop, host, roles.role(TOKEN, pull(*PULL), services=("ec2.amazonaws.com",)))
    assert (status, reason.startswith("Could not assume role ")) == ("Failed", True)


def test_conditions_of_a_download_are_evaluated(laptop: Laptop, host: str, roles: Roles) -> None:
    """The statement allows another account's bucket alone, which the old check took for a right."""
    elsewhere = {"StringEquals": {"s3:ResourceAccount": "111111111111"}}
    read = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::weights/*", "Condition": elsewhere}
    role = roles.role(TOKEN, pull(*PULL), read, services=SAGEMAKER)
    status, reason = outcome(laptop, host, role, ModelDataUrl="s3://weights/model.tar.gz")
    assert (status, "is not authorized to perform: s3:GetObject" in reason) == ("Failed", True)


def test_a_boundary_bounds_the_download(laptop: Laptop, host: str, roles: Roles) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": [TOKEN, pull(*PULL)]})
    bound = boto3.client("iam").create_policy(PolicyName=f"pull-{time.time_ns()}", PolicyDocument=policy)["Policy"][
        "Arn"
    ]
    role = roles.role(TOKEN, pull(*PULL), pull("s3:*", resource="*"), boundary=bound, services=SAGEMAKER)
    reason = outcome(laptop, host, role, ModelDataUrl="s3://weights/model.tar.gz")[1]
    assert "because no permissions boundary allows the s3:GetObject action" in reason


def test_a_role_of_another_account_is_not_judged(laptop: Laptop, host: str) -> None:
    assert outcome(laptop, host, "arn:aws:iam::111111111111:role/real") == ("InService", "")


def test_containers_of_a_role_without_the_right_have_no_logs(laptop: Laptop, host: str, roles: Roles) -> None:
    logs = {"Effect": "Allow", "Action": "logs:*", "Resource": "*"}
    silent = component(laptop, host, roles.role(TOKEN, pull(*PULL), services=SAGEMAKER))
    speaking = component(laptop, host, roles.role(TOKEN, pull(*PULL), logs, services=SAGEMAKER))
    deadline = time.monotonic() + LONGEST_WAIT_S
    groups: list[str] = []
    while f"{GROUPS}/{speaking}" not in groups and time.monotonic() < deadline:
        time.sleep(0.2)
        found = boto3.client("logs").describe_log_groups(logGroupNamePrefix=GROUPS)["logGroups"]
        groups = [each["logGroupName"] for each in found]
    for name in (silent, speaking):
        removed(laptop, name)
    assert (f"{GROUPS}/{speaking}" in groups, f"{GROUPS}/{silent}" in groups) == (True, False)
