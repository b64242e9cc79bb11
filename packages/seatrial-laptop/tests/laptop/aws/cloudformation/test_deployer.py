"""Who deploys a stack, a role or the caller: asked for every right of every handler; a role is remembered."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
LONGEST_S = 30.0
CLOUDFORMATION = "cloudformation.amazonaws.com"
EXECUTION = "arn:aws:iam::000000000000:role/an-execution-role"
LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
WRITE = ("ssm:PutParameter", "ssm:AddTagsToResource", "ssm:GetParameters")
READ = ("ssm:GetParameters", "ssm:ListTagsForResource")
USER = r"User: arn:aws:sts::000000000000:assumed-role/{role}/AWSCloudFormation"
WHY = r"because no identity-based policy allows the {action} action"
ANSWERED = r"\(Service: Ssm, Status Code: 400, Request ID: [0-9a-f-]{36}\) \(SDK Attempt Count: 1\)"
HANDLED = r"\(RequestToken: [0-9a-f-]{36}, HandlerErrorCode: AccessDenied\)"


def role(laptop: Laptop, *actions: str, trusts: str = CLOUDFORMATION, resource: str = "*") -> str:
    """Create a role and return its ARN."""
    iam, name = boto3.client("iam"), laptop.name("deployer")
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": trusts}}
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
    allow(name, *actions, resource=resource)
    return str(made["Role"]["Arn"])


def allow(name: str, *actions: str, resource: str = "*") -> None:
    """Let a role do some actions, and no others."""
    may = {"Effect": "Allow", "Action": [*actions] or ["sts:GetCallerIdentity"], "Resource": resource}
    document = json.dumps({"Version": "2012-10-17", "Statement": [may]})
    boto3.client("iam").put_role_policy(RoleName=name, PolicyName="may", PolicyDocument=document)


def template(name: str, value: str = "v", **tags: str) -> str:
    properties = {"Name": name, "Type": "String", "Value": value, "Tags": tags}
    return json.dumps({"Resources": {"P": {"Type": "AWS::SSM::Parameter", "Properties": properties}}})


def ended(laptop: Laptop, stack: str, change: Callable[..., object], **given: str) -> str:
    """Do something to a stack, wait, and return its status, with the reason of what failed."""
    change(StackName=stack, **given)
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        (found,) = laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"]
        if not found["StackStatus"].endswith("PROGRESS"):
            return str(found["StackStatus"])
        time.sleep(0.05)
    raise TimeoutError(stack)


def failure(laptop: Laptop, stack: str) -> str:
    """Return why the resource failed last."""
    events = laptop.cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    failed = [
        each for each in events if each["LogicalResourceId"] == "P" and each["ResourceStatus"].endswith("_FAILED")
    ]
    return str(failed[0]["ResourceStatusReason"])


def test_a_right_that_is_missing_fails_the_resource_in_aws_words(laptop: Laptop) -> None:
    stack, arn = laptop.name("deployed"), role(laptop, "ssm:AddTagsToResource", "ssm:GetParameters")
    name = arn.rpartition("/")[2]
    create = laptop.cloudformation.create_stack
    assert ended(laptop, stack, create, TemplateBody=template("/h/a"), RoleARN=arn) == "ROLLBACK_COMPLETE"
    action, parameter = "ssm:PutParameter", "arn:aws:ssm:us-east-1:000000000000:parameter/h/a"
    denied = f"{USER.format(role=name)} is not authorized to perform: {action} on resource: {parameter}"
    told = f'Resource handler returned message: "{denied} {WHY.format(action=action)} {ANSWERED}" {HANDLED}'
    assert re.fullmatch(told, failure(laptop, stack)), failure(laptop, stack)


def test_the_role_is_asked_again_in_updates_and_deletions_that_do_not_name_it(laptop: Laptop) -> None:
    cloudformation, stack = laptop.cloudformation, laptop.name("deployed")
    arn = role(laptop, *WRITE)
    name, body = arn.rpartition("/")[2], template("/h/b", a="b")
    assert ended(laptop, stack, cloudformation.create_stack, TemplateBody=body, RoleARN=arn) == "CREATE_COMPLETE"
    changed, update = template("/h/b", "w", a="b"), cloudformation.update_stack
    assert ended(laptop, stack, update, TemplateBody=changed) == "UPDATE_ROLLBACK_COMPLETE"
    assert "is not authorized to perform: ssm:ListTagsForResource" in failure(laptop, stack)
    allow(name, *WRITE, *READ)
    assert ended(laptop, stack, update, TemplateBody=changed) == "UPDATE_COMPLETE"
    assert ended(laptop, stack, update, TemplateBody=template("/h/b", "w")) == "UPDATE_ROLLBACK_COMPLETE"
    assert "is not authorized to perform: ssm:RemoveTagsFromResource" in failure(laptop, stack)
    assert ended(laptop, stack, cloudformation.delete_stack) == "DELETE_FAILED"
    assert "is not authorized to perform: ssm:DeleteParameter" in failure(laptop, stack)
    allow(name, "ssm:DeleteParameter")
    identity = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
    assert ended(laptop, identity, cloudformation.delete_stack) == "DELETE_COMPLETE"


def test_a_change_set_is_executed_with_its_role(laptop: Laptop) -> None:
    cloudformation, stack, arn = laptop.cloudformation, laptop.name("deployed"), role(laptop, *WRITE)
    for parameter, status in (("/h/c", "CREATE_COMPLETE"), ("/h/d", "UPDATE_ROLLBACK_COMPLETE")):
        allow(arn.rpartition("/")[2], *WRITE, resource="arn:aws:ssm:*:*:parameter/h/c")
        kind = status.partition("_")[0]
        cloudformation.create_change_set(
            StackName=stack, ChangeSetName=kind, ChangeSetType=kind, TemplateBody=template(parameter), RoleARN=arn
        )
        execute = cloudformation.execute_change_set
        assert ended(laptop, stack, execute, ChangeSetName=kind) == status
    assert "ssm:PutParameter on resource: arn:aws:ssm:us-east-1:000000000000:parameter/h/d" in failure(laptop, stack)


@pytest.mark.parametrize("trusts", ["lambda.amazonaws.com", ""])
def test_a_role_that_does_not_trust_cloudformation_deploys_nothing(laptop: Laptop, trusts: str) -> None:
    arn = role(laptop, *WRITE, trusts=trusts) if trusts else "arn:aws:iam::000000000000:role/is-not-there"
    with pytest.raises(ClientError, match=f"Role {arn} is invalid or cannot be assumed"):
        laptop.cloudformation.create_stack(
            StackName=laptop.name("deployed"), TemplateBody=template("/h/e"), RoleARN=arn
        )


def test_a_stack_of_another_region_is_refused_before_any_right_is_missing(laptop: Laptop) -> None:
    """Its policies name that Region, the handlers' ARNs us-east-1: IAM would deny what the template allows."""
    elsewhere, name = boto3.client("cloudformation", region_name="eu-west-1"), laptop.name("elsewhere")
    changes = {"StackName": name, "ChangeSetName": "c", "ChangeSetType": "CREATE", "TemplateBody": template("/h/r")}
    with pytest.raises(ClientError, match="the embedded AWS is in us-east-1 alone, not in eu-west-1"):
        elsewhere.create_change_set(**changes)
    with pytest.raises(ClientError, match="give each environment of the embedded AWS: region: us-east-1"):
        elsewhere.create_stack(StackName=name, TemplateBody=template("/h/r"))
    elsewhere.delete_stack(StackName=name)


def test_a_secret_is_read_with_the_rights_of_the_role(laptop: Laptop) -> None:
    secrets, kms = boto3.client("secretsmanager"), boto3.client("kms")
    key, stack = kms.create_key()["KeyMetadata"]["Arn"], laptop.name("deployed")
    secret = secrets.create_secret(Name=laptop.name("token"), SecretString="t", KmsKeyId=key)
    body = template("/h/f", f"{{{{resolve:secretsmanager:{secret['Name']}}}}}")
    arn = role(laptop, *WRITE)
    for missing in ("secretsmanager:GetSecretValue", "kms:Decrypt"):
        create = laptop.cloudformation.create_stack
        assert ended(laptop, stack, create, TemplateBody=body, RoleARN=arn) == "ROLLBACK_COMPLETE"
        on = secret["ARN"] if missing.startswith("secrets") else key
        assert f"is not authorized to perform: {missing} on resource: {on}" in failure(laptop, stack)
        allow(arn.rpartition("/")[2], *WRITE, "secretsmanager:GetSecretValue")
    allow(arn.rpartition("/")[2], *WRITE, "secretsmanager:GetSecretValue", "kms:Decrypt")
    assert ended(laptop, stack, create, TemplateBody=body, RoleARN=arn) == "CREATE_COMPLETE"


def test_a_condition_that_joins_a_list_is_evaluated(laptop: Laptop) -> None:
    """The CDK's bootstrap gives its role AdministratorAccess where such a condition does not hold."""
    given = {"Fn::Not": [{"Fn::Equals": ["", {"Fn::Join": ["", {"Ref": "Names"}]}]}]}
    document = json.loads(template("/h/g"))
    document["Parameters"] = {"Names": {"Type": "CommaDelimitedList", "Default": ""}}
    document["Conditions"] = {"Given": given}
    document["Resources"]["P"]["Properties"]["Value"] = {"Fn::If": ["Given", "given", "none"]}
    stack = laptop.name("joined")
    body = json.dumps(document)
    assert ended(laptop, stack, laptop.cloudformation.create_stack, TemplateBody=body) == "CREATE_COMPLETE"
    assert boto3.client("ssm").get_parameter(Name="/h/g")["Parameter"]["Value"] == "none"


def test_without_a_role_a_user_deploys_with_rights_of_its_own(laptop: Laptop) -> None:
    iam, name, stack = boto3.client("iam"), laptop.name("user"), laptop.name("own")
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    session = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name="us-east-1")
    create = session.client("cloudformation", endpoint_url=laptop.local.endpoint_url).create_stack
    denied = f"User: arn:aws:iam::000000000000:user/{name} is not authorized to perform: ssm:PutParameter"
    for actions, status in (((), "ROLLBACK_COMPLETE"), (WRITE, "CREATE_COMPLETE")):
        may = {"Effect": "Allow", "Action": ["cloudformation:*", *actions], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [may]})
        iam.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=document)
        assert ended(laptop, stack, create, TemplateBody=template("/h/i")) == status
        assert actions or denied in failure(laptop, stack)


def test_late_tags_let_a_launch_succeed_and_its_rollback_be_repeated(
    laptop: Laptop, control: Callable[..., object]
) -> None:
    """The rights are those that the launch role has on models: to create with its tag, to delete by its tag."""
    arn, client, key = role(laptop), laptop.cloudformation, "seatrial:environment"
    statements = [
        {"Effect": "Allow", "Action": [*actions], "Resource": "*", "Condition": condition}
        for actions, condition in (
            (["iam:PassRole"], {}),
            (["sagemaker:CreateModel", "sagemaker:AddTags"], {"StringEquals": {f"aws:RequestTag/{key}": "dev"}}),
            (["sagemaker:DescribeModel", "sagemaker:DeleteModel"], {"StringEquals": {f"aws:ResourceTag/{key}": "dev"}}),
        )
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    boto3.client("iam").put_role_policy(RoleName=arn.rpartition("/")[2], PolicyName="m", PolicyDocument=document)
    container = {"Image": LMI, "Environment": {"HF_MODEL_ID": "org/model"}}
    properties = {"ExecutionRoleArn": EXECUTION, "PrimaryContainer": container, "Tags": [{"Key": key, "Value": "dev"}]}
    model = {"Model": {"Type": "AWS::SageMaker::Model", "Properties": properties}}
    # What comes after the model is not allowed: the model is deleted while its tags are not visible.
    parameter = {**json.loads(template("/h/late"))["Resources"]["P"], "DependsOn": "Model"}
    control(tags_late_s=600.0)
    stacks = []
    for resources, status in ((model, "CREATE_COMPLETE"), ({**model, "P": parameter}, "ROLLBACK_FAILED")):
        stack, body = laptop.name("launched"), json.dumps({"Resources": resources})
        assert ended(laptop, stack, client.create_stack, TemplateBody=body, RoleARN=arn) == status
        stacks.append(str(client.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]))
    control(tags_late_s=0.0)
    assert [ended(laptop, stack, client.delete_stack) for stack in stacks] == ["DELETE_COMPLETE"] * 2


def test_a_stack_names_the_change_set_that_it_was_made_with(laptop: Laptop) -> None:
    stack, client = laptop.name("named"), laptop.cloudformation
    body = template(f"/named/{stack}")
    made = client.create_change_set(StackName=stack, ChangeSetName="run-7", ChangeSetType="CREATE", TemplateBody=body)
    client.get_waiter("change_set_create_complete").wait(ChangeSetName=made["Id"], WaiterConfig={"Delay": 0.05})
    assert "ChangeSetId" not in client.describe_stacks(StackName=stack)["Stacks"][0]
    assert ended(laptop, stack, client.execute_change_set, ChangeSetName=made["Id"]) == "CREATE_COMPLETE"
    assert client.describe_stacks(StackName=stack)["Stacks"][0]["ChangeSetId"] == made["Id"]
