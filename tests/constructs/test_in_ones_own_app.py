"""What an app of one's own gets: names in parameters, roles as its account asks, alarms of endpoints of others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match, Template

from seatrial.node import check_node
from seatrial.specs.endpoint import Percentiles, Slo
from seatrial.specs.load import environments_of, load_environment
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_cdk.delivery.plain_errors import plain_errors
from seatrial_cdk.endpoint.container_network import SERVICES, ContainerNetwork, HostingVpcEndpoints
from seatrial_cdk.endpoint.endpoint_parts import EndpointOutputs
from seatrial_cdk.endpoint.execution_role import RoleOptions
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint
from seatrial_cdk.observability.endpoint_alarms import EndpointAlarms
from seatrial_cdk.trials.trial_service import TrialService
from seatrial_cdk.trials.trials_stack import TrialsStack

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_endpoint"
BOUNDARY = "arn:aws:iam::123456789012:policy/platform/Bound"
ENVIRONMENT = f"""\
name: dev
region: us-east-1
removal: destroy
trial_schedule: rate(7 days)
outputs: both
security: {{permissions_boundary: '{BOUNDARY}', role_path: /seatrial/}}
"""


@pytest.fixture(scope="module")
def app_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    for name in ("chat.yaml", "chat.lock.json"):
        shutil.copy(EXAMPLE / name, folder)
    shutil.copytree(EXAMPLE / "environments", folder / "environments")
    (folder / "environments" / "dev.yaml").write_text(ENVIRONMENT)
    return folder


@pytest.fixture(scope="module")
def templates(app_folder: Path) -> Mapping[str, Template]:
    app = App(context={"@aws-cdk/core:target-partitions": ["aws"]})
    stack = Stack(app, "Own")
    chat = LlmEndpoint.from_spec(stack, "Chat", app_folder / "chat.yaml", environment="dev")
    chat.apply_removal_policy(RemovalPolicy.RETAIN)
    trials = app.node.find_child("seatrial-dev-trials")
    assert isinstance(trials, TrialsStack)
    return {"own": Template.from_stack(stack), "trials": Template.from_stack(trials)}


@pytest.mark.parametrize("stack", ["own", "trials"])
def test_every_role_has_the_boundary_and_ours_the_path(templates: Mapping[str, Template], stack: str) -> None:
    roles = templates[stack].find_resources("AWS::IAM::Role")
    assert {role["Properties"]["PermissionsBoundary"] for role in roles.values()} == {BOUNDARY}
    paths = {name: role["Properties"].get("Path") for name, role in roles.items() if "CustomS3" not in name}
    assert set(paths.values()) == {"/seatrial/"}


def test_every_alarm_is_one_that_the_trial_service_may_describe(templates: Mapping[str, Template]) -> None:
    names = [
        each["Properties"]["AlarmName"]
        for each in templates["own"].find_resources("AWS::CloudWatch::Alarm").values()
        if each["Properties"]["Namespace"] == "AWS/SageMaker"
    ]
    (allowed,) = (
        "".join(str(part) for part in statement["Resource"]["Fn::Join"][1]).rpartition("alarm:")[2]
        for role in templates["trials"].find_resources("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "cloudwatch:DescribeAlarms"
    )
    assert allowed == "seatrial-dev-*"
    assert len(names) == len(set(names)) > 4
    assert [name for name in names if not fnmatchcase(name, allowed)] == []
    assert "seatrial-dev-chat-model-AlarmsErrors" in names


def test_a_schedule_names_its_role_with_the_path(templates: Mapping[str, Template]) -> None:
    (schedule,) = templates["own"].find_resources("AWS::Scheduler::Schedule").values()
    assert ":role/seatrial/seatrial-dev-schedules-" in str(schedule["Properties"]["Target"]["RoleArn"])


def test_names_and_results_are_outputs_and_parameters(templates: Mapping[str, Template]) -> None:
    parameters = templates["own"].find_resources("AWS::SSM::Parameter").values()
    names = {each["Properties"]["Name"] for each in parameters}
    assert {"/seatrial/dev/chat/alias", "/seatrial/dev/chat/EndpointName", "/seatrial/dev/chat/Verdict"} <= names
    assert len(names) == len(templates["own"].find_outputs("*")) + 1


def test_the_alias_keeps_its_logical_id_in_every_generation(templates: Mapping[str, Template]) -> None:
    aliases = templates["own"].find_resources(
        "AWS::SSM::Parameter", {"Properties": {"Name": Match.string_like_regexp("alias$")}}
    )
    assert [*aliases] == ["ChatNamesAlias26F2FD97"] or next(iter(aliases)).startswith("ChatNamesAlias")


def test_the_alias_of_an_endpoint_that_is_kept_is_kept(templates: Mapping[str, Template]) -> None:
    resources = templates["own"].to_json()["Resources"].items()
    kept = {name for name, each in resources if each.get("DeletionPolicy") == "Retain"}
    assert {name[:14] for name in kept if "Alias" in name} == {"ChatNamesAlias"}
    assert {each["Type"] for name, each in resources if name not in kept} >= {"AWS::CloudWatch::Alarm"}
    assert {each["Type"] for name, each in resources if name in kept} >= {"AWS::SageMaker::Endpoint", "AWS::IAM::Role"}


def test_a_path_of_parameters_that_is_none_is_refused() -> None:
    with pytest.raises(SpecError, match="SEA447"):
        EndpointOutputs(Stack(App(), "S"), "Outputs", values={"A": "b"}, parameters="support/")


def test_an_endpoint_of_others_gets_alarms_on_its_variant() -> None:
    stack = Stack(App(), "S")
    topic = sns.Topic(stack, "Topic")
    older = LlmEndpoint.from_endpoint_name(stack, "Older", "support")
    slo = Slo(ttft_ms=Percentiles(p95=2000))
    EndpointAlarms(stack, "Alarms", endpoint=older, slo=slo, output_tokens=1, topic=topic)
    alarms = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    assert sorted(each["Properties"]["MetricName"] for each in alarms) == [
        "FirstChunkModelLatency",
        "Invocation5XXErrors",
    ]
    assert all(each["Properties"]["AlarmActions"] == [{"Ref": "TopicBFC7AF6E"}] for each in alarms)
    assert {d["Value"] for each in alarms for d in each["Properties"]["Dimensions"]} == {"support", "AllTraffic"}


def test_a_trial_service_takes_resources_of_the_app() -> None:
    stack = Stack(App(), "S")
    vpc, key = ec2.Vpc(stack, "Vpc", max_azs=1), kms.Key(stack, "Key")
    options = RoleOptions(path="/own/", permissions_boundary=iam.ManagedPolicy.from_aws_managed_policy_name("Any"))
    TrialService(
        stack,
        "Trials",
        environment="dev",
        network=ContainerNetwork.in_vpc(stack, vpc),
        key=key,
        findings_topic=sns.Topic(stack, "Findings"),
        role_options=options,
    )
    template = Template.from_stack(stack)
    # The app's own, and the one that signs results, which none of the app's could be.
    uses = [each["Properties"].get("KeyUsage") for each in template.find_resources("AWS::KMS::Key").values()]
    assert sorted(uses, key=str) == [None, "SIGN_VERIFY"]
    (function,) = template.find_resources(
        "AWS::Lambda::Function", {"Properties": {"FunctionName": "seatrial-dev-trials"}}
    ).values()
    assert function["Properties"]["Environment"]["Variables"]["FINDINGS_TOPIC"]["Ref"].startswith("Findings")
    assert len(function["Properties"]["VpcConfig"]["SubnetIds"]) == 1


def test_an_isolated_vpc_gets_what_hosting_calls() -> None:
    stack = Stack(App(), "S")
    HostingVpcEndpoints(stack, "Endpoints", vpc=ec2.Vpc(stack, "Vpc", max_azs=2), more_services=["states", "logs"])
    template = Template.from_stack(stack)
    found = [each["Properties"] for each in template.find_resources("AWS::EC2::VPCEndpoint").values()]
    assert sorted(each["VpcEndpointType"] for each in found) == ["Gateway"] + ["Interface"] * (len(SERVICES) + 1)
    rules = [
        group["Properties"].get("SecurityGroupIngress", [])
        for group in template.find_resources("AWS::EC2::SecurityGroup").values()
    ]
    assert [(rule["FromPort"], rule["ToPort"]) for group in rules for rule in group] == [(443, 443)]


def test_environments_are_found_beside_the_spec(app_folder: Path) -> None:
    assert environments_of(app_folder / "chat.yaml") == app_folder / "environments"
    assert load_environment(app_folder / "environments", "dev").outputs == "both"


@pytest.mark.parametrize("variables", [{"PATH": "/nowhere"}, {"PATH": os.environ["PATH"], "JSII_NODE": "no-such-node"}])
def test_without_node_the_message_tells_what_to_install(variables: dict[str, str]) -> None:
    with pytest.raises(SeatrialError, match=r"SEA446: .* aws-cdk-lib needs Node.js\n  hint: .*seatrial\[cdk,node\]"):
        check_node(variables)


def test_an_app_without_node_ends_without_a_traceback(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, EXAMPLE / "app.py"], env=env, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("SEA446: ")


def test_a_mistake_of_the_user_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, plain_errors():
        raise SpecError.of("SEA404", "no spec", where="endpoints")
    assert (ended.value.code, capsys.readouterr().err) == (2, "endpoints: SEA404: no spec\n")
    with pytest.raises(RuntimeError, match="something else"), plain_errors():
        raise RuntimeError("something else")


def test_a_spec_of_the_other_hosting_is_refused_before_anything_is_defined(app_folder: Path) -> None:
    stack = Stack(App(), "Own")
    with pytest.raises(SpecError) as refused:
        SingleModelEndpoint.from_spec(stack, "Chat", app_folder / "chat.yaml", environment="dev")
    (problem,) = refused.value.problems
    assert (problem.rule, problem.field, problem.hint) == ("SEA125", "hosting.kind", "use LlmEndpoint.from_spec")
    assert Template.from_stack(stack).to_json().get("Resources", {}) == {}


def test_a_class_of_ones_own_is_made_of_a_spec(app_folder: Path) -> None:
    """It was refused: what a spec defined was an `LlmEndpoint`, whatever class was asked for one."""

    class OwnEndpoint(LlmEndpoint):
        pass

    stack = Stack(App(), "Own")
    made = OwnEndpoint.from_spec(stack, "Chat", app_folder / "chat.yaml", environment="dev", trials="deployed")
    assert type(made) is OwnEndpoint
    assert made.parts is not None
