"""What a user of the AWS CDK expects of a construct: its place, connections, rights, removal, durations and sizes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, CfnParameter, Duration, Environment, RemovalPolicy, Size, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match, Template

from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.inference_component import ComponentCopies
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_cdk.endpoint.variant_instances import InstanceScaleIn, TrafficShift, VariantInstances
from seatrial_cdk.scaling.endpoint_scaling import CopyScaling, ScalingLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constructs import Construct

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"
PLACE = Environment(account="123456789012", region="us-east-1")
ELSEWHERE = "arn:aws:sagemaker:eu-west-1:210987654321:endpoint/chat"
INSTANCES = VariantInstances(instance_type="ml.g5.2xlarge")
COPIES = ComponentCopies(accelerators=1, memory_min_mb=1024)


def endpoint(scope: Construct, name: str = "Endpoint", **arguments: object) -> LlmEndpoint:
    given = {"instances": INSTANCES, "container": ServingContainer(image=IMAGE), "copies": COPIES, **arguments}
    return LlmEndpoint(scope, name, **given)  # type: ignore[arg-type] # its arguments


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = Stack(App(), "S", env=PLACE)
    vpc = ec2.Vpc(stack, "Vpc", nat_gateways=0)
    role = iam.Role(stack, "Given", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    imported = iam.Role.from_role_arn(stack, "Imported", "arn:aws:iam::123456789012:role/imported", mutable=False)
    chat = endpoint(
        stack,
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
        model_role=role,
        instance_role=imported,
    )
    chat.connections.allow_from(ec2.Peer.ipv4("10.1.0.0/16"), ec2.Port.tcp(8080))
    client = ec2.SecurityGroup.from_security_group_id(stack, "Client", "sg-client")
    client.connections.allow_to(chat, ec2.Port.tcp(443))
    chat.apply_removal_policy(RemovalPolicy.RETAIN)
    chat.grant_describe(role)
    CopyScaling(chat, "Scaling", endpoint=chat, limits=ScalingLimits(max_capacity=2), target_concurrency_per_copy=4)
    assert (chat.stack, chat.env.account, chat.env.region) == (stack, PLACE.account, PLACE.region)
    return stack


@pytest.fixture(scope="module")
def template(stack: Stack) -> Template:
    return Template.from_stack(stack)


def test_what_serves_is_kept_and_nothing_else(template: Template) -> None:
    kept = {each["Type"] for each in template.to_json()["Resources"].values() if "DeletionPolicy" in each}
    assert kept == {
        "AWS::ApplicationAutoScaling::ScalableTarget",
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::SageMaker::Endpoint",
        "AWS::SageMaker::EndpointConfig",
        "AWS::SageMaker::InferenceComponent",
        "AWS::SageMaker::Model",
    }
    serving = template.find_resources("AWS::SageMaker::Endpoint").values()
    assert [(each["DeletionPolicy"], each["UpdateReplacePolicy"]) for each in serving] == [("Retain", "Retain")]


def test_connections_open_the_security_group_of_the_containers(template: Template) -> None:
    (group,) = template.find_resources("AWS::EC2::SecurityGroup").values()
    assert [rule["CidrIp"] for rule in group["Properties"]["SecurityGroupIngress"]] == ["10.1.0.0/16"]
    (rule,) = template.find_resources("AWS::EC2::SecurityGroupIngress").values()
    assert (rule["Properties"]["SourceSecurityGroupId"], rule["Properties"]["FromPort"]) == ("sg-client", 443)


def test_a_given_role_gets_the_rights_of_a_new_one(template: Template) -> None:
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    allowed = {
        action
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    assert {"ecr:BatchGetImage", "logs:PutLogEvents", "sagemaker:DescribeInferenceComponent"} <= allowed


def test_an_endpoint_without_a_vpc_has_no_connections() -> None:
    scope = Stack(App(), "S", env=PLACE)
    with pytest.raises(SpecError, match="SEA449"):
        _ = endpoint(scope).connections
    network = ContainerNetwork(subnet_ids=("subnet-1",), security_group_ids=("sg-1", "sg-2"))
    assert len(endpoint(scope, "Given", network=network).connections.security_groups) == 2


def test_an_endpoint_is_named_by_its_arn() -> None:
    stack = Stack(App(), "S", env=PLACE)
    chat = LlmEndpoint.from_endpoint_arn(stack, "Chat", ELSEWHERE, inference_component_name="chat-model")
    assert chat.endpoint_arn == ELSEWHERE
    assert chat.inference_component_arn == ELSEWHERE.replace("endpoint/chat", "inference-component/chat-model")
    assert (chat.env.account, chat.env.region, chat.stack) == ("210987654321", "eu-west-1", stack)
    assert chat.openai_base_url is not None
    assert "runtime.sagemaker.eu-west-1." in chat.openai_base_url
    metric = chat.metric_invocations()
    assert (metric.region, metric.account) == ("eu-west-1", "210987654321")
    own = LlmEndpoint.from_endpoint_name(stack, "Own", "chat").metric_invocations()
    assert (own.region, own.account) == (None, None)
    token = CfnParameter(stack, "Arn").value_as_string
    user = iam.User(stack, "User")
    LlmEndpoint.from_endpoint_arn(stack, "Token", token).grant_invoke(user)
    (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    assert "Fn::Split" in str(policy["Properties"]["PolicyDocument"]["Statement"][0]["Resource"])


@pytest.mark.parametrize(
    "arn",
    [
        "chat",
        ELSEWHERE.replace("sagemaker", "sns"),
        ELSEWHERE.replace("endpoint/", "model/"),
        ELSEWHERE.replace("210987654321", "2222"),
        ELSEWHERE.replace("/chat", "/a_b c"),
        None,
    ],
)
def test_what_is_no_arn_of_an_endpoint_is_refused(arn: str) -> None:
    with pytest.raises(SpecError, match="SEA439"):
        LlmEndpoint.from_endpoint_arn(Stack(App(), "S"), "Chat", arn)


def test_a_right_to_nothing_is_refused_at_the_call() -> None:
    stack = Stack(App(), "S")
    with pytest.raises(SpecError, match="SEA439"):
        LlmEndpoint.from_endpoint_name(stack, "Chat", "chat").grant(iam.User(stack, "User"))


def test_all_names_are_imported_together() -> None:
    names: dict[str, object] = {}
    exec("from seatrial_cdk import *", names)  # noqa: S102 (there is no star in a function)
    assert names["LlmEndpoint"] is LlmEndpoint


def stack_with(instances: VariantInstances, copies: ComponentCopies, limits: ScalingLimits) -> Stack:
    stack = Stack(App(), "S", env=PLACE)
    chat = endpoint(stack, instances=instances, copies=copies)
    CopyScaling(chat, "Scaling", endpoint=chat, limits=limits, target_concurrency_per_copy=4)
    chat.roll_back_on(["chat-slow"])
    return stack


def test_durations_and_sizes_are_what_their_numbers_are() -> None:
    numbers = stack_with(
        replace(
            INSTANCES,
            volume_size_gb=100,
            startup_timeout_s=600,
            download_timeout_s=900,
            provision_timeout_s=1800,
            scale_in=InstanceScaleIn(cooldown_minutes=30),
        ),
        replace(COPIES, memory_min_mb=2048, memory_max_mb=4096, startup_timeout_s=600, download_timeout_s=900),
        ScalingLimits(max_capacity=2, scale_out_cooldown_s=60, scale_in_cooldown_s=300),
    )
    measured = stack_with(
        replace(
            INSTANCES,
            volume_size_gb=Size.mebibytes(102_400),
            startup_timeout_s=Duration.minutes(10),
            download_timeout_s=Duration.minutes(15),
            provision_timeout_s=Duration.minutes(30),
            scale_in=InstanceScaleIn(cooldown_minutes=Duration.seconds(1800)),
        ),
        replace(
            COPIES,
            memory_min_mb=Size.gibibytes(2),
            memory_max_mb=Size.gibibytes(4),
            startup_timeout_s=Duration.minutes(10),
            download_timeout_s=Duration.seconds(900),
        ),
        ScalingLimits(
            max_capacity=2, scale_out_cooldown_s=Duration.minutes(1), scale_in_cooldown_s=Duration.minutes(5)
        ),
    )
    assert Template.from_stack(measured).to_json() == Template.from_stack(numbers).to_json()


def test_every_time_and_size_of_an_argument_is_taken_from_the_cdk_too() -> None:
    kinds = (VariantInstances, InstanceScaleIn, ComponentCopies, ScalingLimits, TrafficShift)
    named = {f"{kind.__name__}.{field.name}": str(field.type) for kind in kinds for field in fields(kind)}
    times = {name for name in named if name.endswith(("_s", "_minutes", "_days", "_ms"))}
    sizes = {name for name in named if name.endswith(("_mb", "_gb", "_bytes"))}
    assert (len(times), len(sizes)) == (10, 3)
    assert {name for name in times if "int | Duration" not in named[name]} == set()
    assert {name for name in sizes if "int | Size" not in named[name]} == set()


WRONG: Mapping[str, tuple[dict[str, object], str]] = {
    "a part of a unit": ({"startup_timeout_s": Duration.millis(90_500)}, "90.5 s is no whole number"),
    "a size as a time": ({"startup_timeout_s": Size.gibibytes(2)}, "a whole number"),
    "a time as a size": ({"volume_size_gb": Duration.minutes(2)}, "a Duration of 2 minutes'; it is a whole number"),
    "no number": ({"initial_count": float("nan")}, "is nan; it is a finite number"),
    "a time as a count": ({"initial_count": Duration.minutes(2)}, "a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_template_can_hold_is_refused_without_a_traceback_of_the_cdk(case: str) -> None:
    arguments, message = WRONG[case]
    with pytest.raises(SpecError, match=message):
        endpoint(Stack(App(), "S"), instances=replace(INSTANCES, **arguments))  # type: ignore[arg-type] # wrong on purpose


def test_bounds_hold_of_durations_and_tokens_keep_their_unit() -> None:
    stack = Stack(App(), "S", env=PLACE)
    endpoint(stack, instances=replace(INSTANCES, startup_timeout_s=Duration.hours(2)))
    number = CfnParameter(stack, "Number", type="Number").value_as_number
    seconds = replace(INSTANCES, startup_timeout_s=Duration.seconds(number))
    endpoint(stack, "Token", instances=seconds)
    with pytest.raises(SpecError, match="another unit"):
        endpoint(stack, "Other", instances=replace(INSTANCES, startup_timeout_s=Duration.minutes(number)))
    Annotations.from_stack(stack).has_error(
        "*", Match.string_like_regexp("startup_timeout_s is 7200; it is 60 to 3600")
    )
    configs = Template.from_stack(stack).find_resources("AWS::SageMaker::EndpointConfig")
    (config,) = (each for name, each in configs.items() if name.startswith("Token"))
    (variant,) = config["Properties"]["ProductionVariants"]
    assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == {"Ref": "Number"}
