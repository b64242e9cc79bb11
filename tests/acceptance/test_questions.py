"""The questions that only an account can answer, asked before anything else; the answers are in the transcript.

No case fails for an answer: what AWS does is no fault of ours.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.account.removal import PATH
from tests.acceptance.endpoint import awake, refusal
from tests.acceptance.questions import QUESTIONS, record
from tests.acceptance.room import emptied, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.acceptance.endpoint import Endpoint
    from tests.acceptance.questions import Question
    from tests.acceptance.target import Client, Target

pytestmark = pytest.mark.acceptance


@contextmanager
def session_of_role(
    target: Target, policies: Mapping[str, str], managed: list[str]
) -> Iterator[Callable[[str], Client]]:
    """Return the maker of clients of a new role with these policies, which the caller's account may assume."""
    iam, sts, name = target.client("iam"), target.client("sts"), f"seatrial-acceptance-{target.environment}"
    account = sts.get_caller_identity()["Account"]
    statement = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    role = iam.create_role(RoleName=name, Path=PATH, AssumeRolePolicyDocument=trust, Tags=target.tags)["Role"]
    try:
        for policy, text in policies.items():
            iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=text)
        for policy in managed:
            iam.attach_role_policy(RoleName=name, PolicyArn=policy)
        keys: list[Any] = []

        def assume() -> None:
            keys.append(sts.assume_role(RoleArn=role["Arn"], RoleSessionName="seatrial-acceptance")["Credentials"])

        assert awake(assume, target.look_s, target.patience_s), "a new role can't be assumed"
        clients = target.session_of(keys[-1])
        if not target.is_embedded:
            time.sleep(20)  # IAM user guide: changes that I make are not always immediately visible
        yield clients
    finally:
        for policy in managed:
            iam.detach_role_policy(RoleName=name, PolicyArn=policy)
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
            iam.delete_role_policy(RoleName=name, PolicyName=policy)
        iam.delete_role(RoleName=name)


def policies_of(target: Target, role: str) -> tuple[dict[str, str], list[str]]:
    """Return the inline policies of a role, and the ARNs of those attached to it."""
    iam = target.client("iam")
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    inline = {name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}
    attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    texts = {name: document if isinstance(document, str) else json.dumps(document) for name, document in inline.items()}
    return texts, [each["PolicyArn"] for each in attached]


def test_which_error_an_absent_component_gives_the_trials_role(chat: Endpoint, target: Target) -> None:
    name = f"seatrial-{target.environment}-trials"
    role = target.client("lambda").get_function_configuration(FunctionName=name)["Role"].rpartition("/")[2]
    with session_of_role(target, *policies_of(target, role)) as clients:
        sagemaker = clients("sagemaker")
        absent = f"{target.environment}-absent-model"
        told = refusal(lambda: sagemaker.describe_inference_component(InferenceComponentName=absent))
    record(target, "absent-component", told)


def test_which_resources_a_condition_on_request_tags_holds_for(chat: Endpoint, target: Target) -> None:
    condition = {"StringEquals": {"aws:RequestTag/seatrial:environment": target.environment}}
    create = {"Effect": "Allow", "Action": ["sagemaker:CreateInferenceComponent", "sagemaker:AddTags"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{**create, "Condition": condition}]})
    request = {
        "InferenceComponentName": f"{target.environment}-tagged",
        "EndpointName": f"{target.environment}-absent",
        "VariantName": "AllTraffic",
        "Specification": {"ModelName": chat.model(), "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 128}},
        "RuntimeConfig": {"CopyCount": 1},
    }
    tags = [{"Key": "seatrial:environment", "Value": target.environment}]
    with session_of_role(target, {"create": policy}, []) as clients:
        sagemaker = clients("sagemaker")
        told = refusal(lambda: sagemaker.create_inference_component(**request, Tags=tags))
    record(target, "request-tags", told)  # the endpoint is missing: that is said to who was allowed to ask


def test_which_metrics_a_component_has_alone(chat: Endpoint, target: Target) -> None:
    cloudwatch = target.client("cloudwatch")
    dimension = [{"Name": "InferenceComponentName", "Value": chat.component}]

    def found() -> list[str]:
        pages = cloudwatch.get_paginator("list_metrics").paginate(Namespace="AWS/SageMaker", Dimensions=dimension)
        metrics = [each for page in pages for each in page["Metrics"]]
        return sorted({each["MetricName"] for each in metrics if len(each["Dimensions"]) == 1})

    chat.ask()
    target.may_come(lambda: {"Invocations", "ModelLatency"} <= set(found()))
    record(target, "metric-dimensions", [*found()])


def test_which_metrics_of_the_first_chunk_exist_after_a_stream(chat: Endpoint, target: Target) -> None:
    assert chat.stream(), "the stream has chunks"
    target.may_come(lambda: first_chunk_series(chat))
    record(target, "first-chunk-series", [*first_chunk_series(chat)])


def first_chunk_series(chat: Endpoint) -> list[str]:
    """Return the metrics of the first chunk that CloudWatch lists for the endpoint or its component."""
    pages = chat.target.client("cloudwatch").get_paginator("list_metrics").paginate(Namespace="AWS/SageMaker")
    series = [each for page in pages for each in page["Metrics"] if each["MetricName"].startswith("FirstChunk")]
    return sorted(
        f"{each['MetricName']} by {', '.join(sorted(part['Name'] for part in each['Dimensions']))}"
        for each in series
        if {chat.endpoint_name, chat.component} & {part["Value"] for part in each["Dimensions"]}
    )


def test_whether_a_first_copy_starts_within_its_timeouts(chat: Endpoint, target: Target) -> None:
    specification = chat.described()["Specification"]["StartupParameters"]
    allowed_s = sum(specification.values())
    events = [
        each for each in target.events(chat.stack) if each["ResourceType"] == "AWS::SageMaker::InferenceComponent"
    ]
    times = [each["Timestamp"] for each in events if each["ResourceStatus"].startswith("CREATE_")]
    took_s = (max(times) - min(times)).total_seconds()
    record(target, "start-times", {"within the timeouts": took_s <= allowed_s})


def test_how_a_change_is_refused_while_another_one_is_under_way(chat: Endpoint, target: Target) -> None:
    sagemaker = target.client("sagemaker")

    def set_copies(count: int) -> None:
        wanted = {"CopyCount": count}
        sagemaker.update_inference_component_runtime_config(
            InferenceComponentName=chat.component, DesiredRuntimeConfig=wanted
        )

    set_copies(3)
    told = refusal(lambda: set_copies(2))
    chat.set_copies_when_settled(2)
    record(target, "update-window", told)


def test_what_an_update_to_the_same_configuration_does(chat: Endpoint, target: Target) -> None:
    sagemaker, before = target.client("sagemaker"), chat.described()["LastModifiedTime"]
    config = sagemaker.describe_endpoint(EndpointName=chat.endpoint_name)["EndpointConfigName"]
    told = refusal(lambda: sagemaker.update_endpoint(EndpointName=chat.endpoint_name, EndpointConfigName=config))

    def settled() -> bool:
        status = sagemaker.describe_endpoint(EndpointName=chat.endpoint_name)["EndpointStatus"]
        return (status, chat.described()["InferenceComponentStatus"]) == ("InService", "InService")

    target.until(settled, "the endpoint after an update")
    moved = chat.described()["LastModifiedTime"] != before
    record(target, "same-configuration", {**told, "copies moved": moved})
    assert chat.ask(), "its users are served whatever it does"


def test_what_becomes_of_a_component_without_room(chat: Endpoint, target: Target) -> None:
    sagemaker, name = target.client("sagemaker"), f"{chat.endpoint_name}-no-room"
    filler = filled(chat)
    try:
        sagemaker.create_inference_component(**room_for_one(chat, name))
        with target.faults(wait_speed=600):
            status, reason = fate(target, name)
        deletion = refusal(lambda: sagemaker.delete_inference_component(InferenceComponentName=name))
    finally:
        emptied(chat, filler)
    if deletion["code"] != "none":  # there is room now: it can start, and then be deleted
        target.until(
            lambda: (
                refusal(lambda: sagemaker.delete_inference_component(InferenceComponentName=name))["code"] == "none"
            ),
            "deletion",
        )
    emptied(chat, name, delete=False)
    record(target, "capacity", {"status": status, "words": reason, "deletion": deletion})


def room_for_one(chat: Endpoint, name: str) -> dict[str, Any]:
    live = chat.described()
    needed = live["Specification"]["ComputeResourceRequirements"]
    return {
        "InferenceComponentName": name,
        "EndpointName": chat.endpoint_name,
        "VariantName": live["VariantName"],
        "Specification": {"ModelName": live["Specification"]["ModelName"], "ComputeResourceRequirements": needed},
        "RuntimeConfig": {"CopyCount": 1},
    }


def fate(target: Target, name: str) -> tuple[str, str]:
    """Return status and words of a component that is no longer being created, or as it is after ten minutes."""

    def described() -> dict[str, Any]:
        told: dict[str, Any] = target.client("sagemaker").describe_inference_component(InferenceComponentName=name)
        return told

    target.may_come(lambda: described()["InferenceComponentStatus"] != "Creating")  # reports tell of days
    told = described()
    return told["InferenceComponentStatus"], told.get("FailureReason", "")


def test_what_a_bucket_that_locks_its_objects_takes_and_keeps(target: Target) -> None:
    """As the record of what served is written; a day of governance mode, which the caller may bypass at the end."""
    s3, bucket, key = target.client("s3"), f"seatrial-acceptance-{target.environment}-{uuid4().hex[:12]}", "record.json"
    region = target.client("sts").meta.region_name
    place: dict[str, Any] = (
        {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    )
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True, **place)
    try:
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        s3.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
        )
        record_once = {"Bucket": bucket, "Key": key, "Body": b"{}", "IfNoneMatch": "*", "ChecksumAlgorithm": "CRC32"}
        version = s3.put_object(**record_once).get("VersionId", "")
        second = refusal(lambda: s3.put_object(**record_once))
        deleted = refusal(lambda: s3.delete_object(Bucket=bucket, Key=key, VersionId=version))
        record(target, "locked-records", {"version": bool(version), "second": second, "deleted": deleted})
    finally:
        for each in s3.list_object_versions(Bucket=bucket).get("Versions", ()):
            s3.delete_object(Bucket=bucket, Key=key, VersionId=each["VersionId"], BypassGovernanceRetention=True)
        s3.delete_bucket(Bucket=bucket)


def test_whether_a_stack_names_the_change_set_that_deployed_it(target: Target) -> None:
    """As `cdk deploy` makes it; a handle is free."""
    client, stack = target.client("cloudformation"), f"seatrial-{target.environment}-change-set"
    template = json.dumps({"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
    named = {"StackName": stack, "ChangeSetName": "run-7"}
    pace = {"Delay": target.look_s, "MaxAttempts": int(target.patience_s / target.look_s)}
    try:
        client.create_change_set(**named, ChangeSetType="CREATE", TemplateBody=template, Tags=target.tags)
        client.get_waiter("change_set_create_complete").wait(**named, WaiterConfig=pace)
        client.execute_change_set(**named)
        client.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig=pace)
        arn = client.describe_stacks(StackName=stack)["Stacks"][0].get("ChangeSetId", "")
        read = refusal(lambda: client.describe_change_set(ChangeSetName=arn)) if arn else "no name"
        record(target, "change-set-of-stack", {"named": bool(arn), "read": read})
    finally:
        client.delete_stack(StackName=stack)
        client.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig=pace)


def test_who_asks_for_the_alarms(chat: Endpoint, target: Target) -> None:
    """CloudTrail tells it some minutes later; where nothing is recorded, as on the embedded AWS, that is the answer."""
    attribute = [{"AttributeKey": "EventName", "AttributeValue": "DescribeAlarms"}]
    try:
        events = target.client("cloudtrail").lookup_events(LookupAttributes=attribute)["Events"]
    except ClientError as refused:
        record(target, "alarms-asked-by", {"code": refused.response["Error"]["Code"]})
        return
    told = [json.loads(each["CloudTrailEvent"]) for each in events]
    asked = {f"{each['userIdentity'].get('arn', '')} by {each.get('sourceIPAddress', '')}" for each in told}
    ours = sorted(each for each in asked if target.environment in each or "sagemaker" in each)
    record(target, "alarms-asked-by", [*ours])


ASKED_IN = ("test_questions.py", "test_endpoint.py", "test_product.py")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_is_asked_or_says_why_not(question: Question) -> None:
    text = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ASKED_IN)
    assert (f'record(target, "{question.name}"' in text) == (not question.not_asked_because)
