"""Lambda's check of a role whose function joins a VPC: asked before there is an interface to name."""

from __future__ import annotations

import json
import time
from typing import Any

import boto3
import pytest

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
LONGEST_S = 30.0
INTERFACES = "arn:aws:ec2:us-east-1:000000000000:network-interface/*"
REFUSED = "The provided execution role does not have permissions to call {action} on EC2"


def statement(resource: str, *actions: str) -> dict[str, object]:
    return {"Effect": "Allow", "Action": [f"ec2:{action}" for action in actions], "Resource": resource}


CREATE = statement(INTERFACES, "CreateNetworkInterface")
DESCRIBE = statement("*", "DescribeNetworkInterfaces")


@pytest.mark.parametrize(
    ("statements", "refused"),
    [
        ([CREATE, DESCRIBE, statement(INTERFACES, "DeleteNetworkInterface")], "DeleteNetworkInterface"),
        ([CREATE, statement("*", "DeleteNetworkInterface")], "DescribeNetworkInterfaces"),
        ([DESCRIBE, statement("*", "DeleteNetworkInterface")], "CreateNetworkInterface"),
        ([CREATE, DESCRIBE, statement("arn:aws:ec2:us-east-1:000000000000:*/*", "DeleteNetworkInterface")], None),
        ([CREATE, DESCRIBE, statement("*", "DeleteNetworkInterface")], None),
    ],
)
def test_a_function_in_a_vpc_needs_a_role_for_every_interface(
    laptop: Laptop, statements: list[dict[str, object]], refused: str | None
) -> None:
    iam, name, stack = boto3.client("iam"), laptop.name("joining"), laptop.name("network")
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="may", PolicyDocument=json.dumps({"Statement": statements}))
    properties = {
        "Role": role,
        "Handler": "index.handler",
        "Runtime": "python3.11",
        "Code": {"ZipFile": "def handler(event, context): return None"},
        "VpcConfig": {"SubnetIds": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]},
    }
    body = json.dumps({"Resources": {"F": {"Type": "AWS::Lambda::Function", "Properties": properties}}})
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=body)
    deadline = time.monotonic() + LONGEST_S
    while (status := laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]).endswith(
        "PROGRESS"
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    events = laptop.cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    reasons = [each.get("ResourceStatusReason", "") for each in events if each["LogicalResourceId"] == "F"]
    assert status == ("ROLLBACK_COMPLETE" if refused else "CREATE_COMPLETE")
    assert any(REFUSED.format(action=refused) in reason for reason in reasons) is (refused is not None)
