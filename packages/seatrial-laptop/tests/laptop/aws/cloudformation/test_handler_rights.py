"""What each handler asks of the role that deploys: which actions, on which ARN, in which context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.resource_types import RESOURCE_SCHEMAS
from seatrial_laptop.aws.cloudformation.handler_rights import ARNS, ResourceOperation, needed_rights

if TYPE_CHECKING:
    from seatrial_base.catalog.resource_types import Handler
    from seatrial_laptop.aws.rights import Right

ARN = "arn:aws:sagemaker:us-east-1:000000000000"
EXECUTION = "arn:aws:iam::000000000000:role/seatrial/dev/model"
TAGS = [{"Key": "seatrial:environment", "Value": "dev"}]
ASKED = {"aws:requesttag/seatrial:environment": "dev", "aws:tagkeys": ["seatrial:environment"]}
KEPT = {"aws:resourcetag/seatrial:environment": "dev"}


def rights(
    resource_type: str,
    handler: Handler = "create",
    *,
    old: dict[str, object] | None = None,
    new: dict[str, object] | None = None,
    physical_id: str = "",
) -> dict[str, list[Right]]:
    operation = ResourceOperation(resource_type, handler, "stack", "Thing", physical_id, old or {}, new or {})
    found: dict[str, list[Right]] = {}
    for right in needed_rights(operation):
        found.setdefault(right.action, []).append(right)
    return found


def test_a_model_is_created_with_tags_and_a_role() -> None:
    found = rights("AWS::SageMaker::Model", new={"ModelName": "M", "ExecutionRoleArn": EXECUTION, "Tags": TAGS})
    assert {action: [(each.resource, each.context) for each in asked] for action, asked in found.items()} == {
        "iam:PassRole": [(EXECUTION, {"iam:passedtoservice": "sagemaker.amazonaws.com"})],
        "sagemaker:AddTags": [(f"{ARN}:model/m", ASKED)],
        "sagemaker:CreateModel": [(f"{ARN}:model/m", ASKED)],
    }


def test_an_endpoint_is_made_of_a_configuration() -> None:
    properties: dict[str, object] = {"EndpointName": "dev-chat", "EndpointConfigName": "c", "Tags": TAGS}
    found = rights("AWS::SageMaker::Endpoint", new=properties)
    assert [each.resource for each in found["sagemaker:CreateEndpoint"]] == [
        f"{ARN}:endpoint/dev-chat",
        f"{ARN}:endpoint-config/c",
    ]
    assert found["sagemaker:DescribeEndpoint"][0].context == KEPT


def test_a_name_that_cloudformation_chooses_is_the_one_that_it_will_have() -> None:
    (created,) = rights("AWS::SageMaker::Model", new={})["sagemaker:CreateModel"]
    assert created.resource.startswith(f"{ARN}:model/stack-thing-")


def test_an_update_reads_and_writes_what_changes() -> None:
    old: dict[str, object] = {"EndpointName": "dev-chat", "EndpointConfigName": "a", "Tags": TAGS}
    found = rights("AWS::SageMaker::Endpoint", "update", old=old, new={**old, "EndpointConfigName": "b"})
    assert set(found) == {"sagemaker:UpdateEndpoint", "sagemaker:DescribeEndpoint", "sagemaker:ListTags"}
    own, config = found["sagemaker:UpdateEndpoint"]
    assert (own.context, config.context) == (KEPT, {}), "a new configuration's tags may not be visible yet"
    untagged = rights("AWS::SageMaker::Endpoint", "update", old=old, new={**old, "Tags": []})
    assert untagged["sagemaker:DeleteTags"][0].context == {"aws:tagkeys": ["seatrial:environment"], **KEPT}


def test_a_deletion_is_of_what_has_its_tags() -> None:
    (deleted,) = rights(
        "AWS::SageMaker::Model", "delete", old={"Tags": TAGS}, physical_id=f"{ARN}:model/made-by-cloudformation"
    )["sagemaker:DeleteModel"]
    assert (deleted.resource, deleted.context) == (f"{ARN}:model/made-by-cloudformation", KEPT)


def test_a_bounded_role_tells_its_boundary() -> None:
    boundary = "arn:aws:iam::000000000000:policy/bound"
    properties: dict[str, object] = {"Path": "/seatrial/dev/", "PermissionsBoundary": boundary, "Policies": [{}]}
    found = rights("AWS::IAM::Role", new=properties)
    for action in ("iam:CreateRole", "iam:PutRolePolicy"):
        (asked,) = found[action]
        assert asked.resource.startswith("arn:aws:iam::000000000000:role/seatrial/dev/stack-Thing-")
        assert asked.context == {"iam:permissionsboundary": boundary}


def test_a_target_tells_what_it_scales() -> None:
    properties: dict[str, object] = {
        "ResourceId": "inference-component/a",
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "Tags": TAGS,
    }
    found = rights("AWS::ApplicationAutoScaling::ScalableTarget", new=properties)
    (registered,) = found["application-autoscaling:RegisterScalableTarget"]
    assert registered.context == ASKED | {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    assert found["application-autoscaling:DescribeScalableTargets"][0].resource == "*"
    assert found["cloudwatch:PutMetricAlarm"][0].resource.startswith(
        "arn:aws:cloudwatch:us-east-1:000000000000:alarm:TargetTracking-inference-component/a-"
    )
    assert not any(action.startswith("lambda:") for action in found)


def test_a_policy_tells_it_by_its_target() -> None:
    target = "inference-component/a|sagemaker:inference-component:DesiredCopyCount|sagemaker"
    (put,) = rights("AWS::ApplicationAutoScaling::ScalingPolicy", new={"ScalingTargetId": target})[
        "application-autoscaling:PutScalingPolicy"
    ]
    assert put.context["application-autoscaling:service-namespace"] == "sagemaker"


def test_a_key_is_used_through_the_service() -> None:
    key = "arn:aws:kms:us-east-1:000000000000:key/k"
    found = rights("AWS::SageMaker::EndpointConfig", new={"KmsKeyId": key, "ProductionVariants": []})
    assert found["kms:DescribeKey"][0].resource == key
    assert found["kms:CreateGrant"][0].context == {
        "kms:grantisforawsresource": "true",
        "kms:viaservice": "sagemaker.us-east-1.amazonaws.com",
    }
    assert not any(action.startswith("kms:") for action in rights("AWS::SageMaker::EndpointConfig", new={"Tags": TAGS}))


def test_a_function_is_read_from_its_object() -> None:
    code = {"S3Bucket": "assets", "S3Key": "a.zip"}
    found = rights("AWS::Lambda::Function", new={"Code": code, "Role": EXECUTION})
    assert [each.resource for each in found["s3:GetObject"]] == ["arn:aws:s3:::assets/a.zip"]
    assert "s3:GetObjectVersion" not in found
    assert not any(action.startswith(("ec2:", "kms:")) for action in found)


def test_a_custom_resource_calls_its_function() -> None:
    token = "arn:aws:lambda:us-east-1:000000000000:function:seatrial-dev-trials"
    found = rights("Custom::SmokeBenchmark", new={"ServiceToken": token})
    assert {action: each.resource for action, (each,) in found.items()} == {"lambda:InvokeFunction": token}


def test_a_type_that_has_an_arn_is_one_that_has_a_schema() -> None:
    assert set(ARNS) <= {schema.resource_type for schema in RESOURCE_SCHEMAS.rows}
