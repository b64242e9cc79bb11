"""What is alarming, who is told, and what is rolled back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial.specs.environment import Alarms
from seatrial_base.errors import SpecError
from seatrial_cdk.observability.endpoint_alarms import NEVER
from seatrial_stacks.app_stacks import add_stacks
from seatrial_stacks.endpoint_stack import EndpointStack
from tests.sample_plan import decided
from tests.stacks.conftest import ROOT, alarms_that_roles_may_describe, dev

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment

ALARM = "AWS::CloudWatch::Alarm"
GIVEN = "arn:aws:sns:us-east-1:111122223333:on-call"


def template_of(deployment: Deployment) -> Template:
    return Template.from_stack(EndpointStack(App(), "stack", deployment=deployment))


def with_instances(*, planned: int, most: int, surge: int = 0) -> Deployment:
    changed = {"instance_count": decided(planned), "max_instances": most, "surge_instances": decided(surge)}
    deployment = dev()
    return replace(deployment, plan=deployment.plan.model_copy(update=changed))


def on_call(template: Template) -> dict[str, Mapping[str, Any]]:
    """Return the alarms that tell people, by logical ID."""
    return {name: each for name, each in template.find_resources(ALARM).items() if "OnCall" in name}


def rolling_back(template: Template) -> dict[str, Mapping[str, Any]]:
    """Return the alarms that roll an update back, by logical ID."""
    return {name: each for name, each in template.find_resources(ALARM).items() if "OnCall" not in name}


def with_slo(deployment: Deployment, **bounds: dict[str, float]) -> Deployment:
    spec = deployment.endpoint
    return replace(deployment, endpoint=spec.model_copy(update={"slo": spec.slo.model_validate(bounds)}))


def with_topic(deployment: Deployment) -> Deployment:
    environment = deployment.environment.model_copy(update={"alarms": Alarms(topic_arn=GIVEN)})
    return replace(deployment, environment=environment)


def test_alarms_watch_errors_and_the_latency_that_the_slo_allows(dev_template: Template) -> None:
    watched = {
        "Dimensions": [{"Name": "InferenceComponentName", "Value": "dev-chat-model"}],
        "TreatMissingData": "notBreaching",
        "Period": 60,
    }
    dev_template.has_resource_properties(
        "AWS::CloudWatch::Alarm", {**watched, "MetricName": "Invocation5XXErrors", "Statistic": "Sum", "Threshold": 5}
    )
    us = (2000 + 255 * 100) * 1000  # TTFT + 255 further tokens x TPOT, in microseconds
    dev_template.has_resource_properties(
        "AWS::CloudWatch::Alarm", {**watched, "MetricName": "ModelLatency", "ExtendedStatistic": "p95", "Threshold": us}
    )


def test_without_an_slo_people_are_told_of_no_latency_and_none_rolls_back(weights_template: Template) -> None:
    told = {each["Properties"]["MetricName"] for each in on_call(weights_template).values()}
    assert told == {"Invocation5XXErrors", "NoCapacityInvocationFailures"}
    guards = {
        each["Properties"]["MetricName"]: each["Properties"]["Threshold"]
        for each in rolling_back(weights_template).values()
    }
    assert guards == {
        "Invocation5XXErrors": 5,
        "NoCapacityInvocationFailures": 1,
        "ModelLatency": NEVER,
        "FirstChunkModelLatency": NEVER,
    }


def test_one_request_without_a_copy_is_alarming_and_first_tokens_that_aws_does_not_publish_are_not(
    dev_template: Template,
) -> None:
    capacity = {"Statistic": "Sum", "Threshold": 1, "EvaluationPeriods": 1, "DatapointsToAlarm": 1}
    watched = {"Namespace": "AWS/SageMaker", "TreatMissingData": "notBreaching", "Period": 60}
    dev_template.has_resource_properties(ALARM, {**watched, **capacity, "MetricName": "NoCapacityInvocationFailures"})
    # Its name stays in the DeploymentConfig of endpoint and component: another list would replace the fleet.
    (kept,) = dev_template.find_resources(ALARM, {"Properties": {"MetricName": "FirstChunkModelLatency"}}).values()
    assert (kept["Properties"]["Threshold"], "AlarmActions" in kept["Properties"]) == (NEVER, False)
    assert "SageMaker publishes none of inference components" in kept["Properties"]["AlarmDescription"]


def test_each_alarm_has_its_section_in_a_runbook_whose_address_the_environment_gives(dev_template: Template) -> None:
    text = (ROOT / "docs" / "how-to" / "alarms.md").read_text()
    sections = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.*)$", text, re.MULTILINE)}
    url = "https://wiki.example.com/llm"
    given = dev().environment.model_copy(update={"alarms": Alarms(runbook_url=url)})
    linked = {
        alarm["Properties"]["AlarmDescription"].rpartition(f"Runbook: {url}#")[2].partition(".")[0]
        for alarm in template_of(replace(dev(), environment=given)).find_resources(ALARM).values()
    }
    assert linked == {"5xx-errors", "no-capacity", "model-latency", "time-to-first-token"} <= sections
    for alarm in dev_template.find_resources(ALARM).values():
        assert "docs/" not in alarm["Properties"]["AlarmDescription"], "no path that another repository lacks"
        assert alarm["Properties"]["AlarmDescription"].endswith(". Cause: `seatrial doctor chat -e dev`")


def test_every_alarm_tells_its_topic_of_beginning_and_end(dev_template: Template) -> None:
    made = {"Fn::Join": ["", ["arn:aws:sns:us-east-1:", {"Ref": "AWS::AccountId"}, ":seatrial-dev-alarms"]]}
    for template, topic in ((dev_template, made), (template_of(with_topic(dev())), GIVEN)):
        alarms = [alarm["Properties"] for alarm in on_call(template).values()]
        assert len(alarms) == 3
        assert not any("AlarmActions" in alarm["Properties"] for alarm in rolling_back(template).values())
        assert {json.dumps([alarm["AlarmActions"], alarm["OKActions"]]) for alarm in alarms} == {
            json.dumps([[topic], [topic]])
        }


def test_without_a_trial_only_a_given_topic_is_told(weights_template: Template) -> None:
    for alarm in weights_template.find_resources(ALARM).values():
        assert "AlarmActions" not in alarm["Properties"]


def test_the_environments_topic_is_encrypted_and_cloudwatch_publishes_to_it(dev_trials: Template) -> None:
    (key,) = dev_trials.find_resources("AWS::KMS::Key", {"Properties": {"EnableKeyRotation": True}})
    (topic,) = dev_trials.find_resources("AWS::SNS::Topic")
    dev_trials.has_resource_properties(
        "AWS::SNS::Topic",
        {"TopicName": "seatrial-dev-alarms", "KmsMasterKeyId": {"Fn::GetAtt": [key, "Arn"]}},
    )
    cloudwatch = {
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    publish = {**cloudwatch, "Effect": "Allow", "Action": "sns:Publish", "Resource": {"Ref": topic}}
    plain = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    for kind, field, wanted in (
        ("AWS::SNS::TopicPolicy", "PolicyDocument", publish),
        ("AWS::SNS::TopicPolicy", "PolicyDocument", plain),
        ("AWS::KMS::Key", "KeyPolicy", {**cloudwatch, "Action": ["kms:Decrypt", "kms:GenerateDataKey*"]}),
    ):
        statement = Match.array_with([Match.object_like(wanted)])
        dev_trials.has_resource_properties(kind, {field: Match.object_like({"Statement": statement})})


def test_a_given_topic_is_not_made(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    add_stacks(app, (with_topic(dev()),))
    app.synth()
    trials = Template.from_string((tmp_path / "seatrial-dev-trials.template.json").read_text())
    trials.resource_count_is("AWS::SNS::Topic", 0)


@pytest.mark.parametrize("batch", [None, 1])
def test_alarms_roll_the_endpoint_back_and_a_component_that_is_updated_in_batches(batch: int | None) -> None:
    deployment = replace(dev(), plan=dev().plan.model_copy(update={"copies_replaced_at_once": batch}))
    template = template_of(deployment)
    named = {"Alarms": [{"AlarmName": {"Ref": name}} for name in rolling_back(template)]}
    assert len(named["Alarms"]) == 4
    (endpoint,) = template.find_resources("AWS::SageMaker::Endpoint").values()
    (component,) = template.find_resources("AWS::SageMaker::InferenceComponent").values()
    told = endpoint["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"]
    assert sorted(map(str, told["Alarms"])) == sorted(map(str, named["Alarms"]))
    if batch is None:
        assert "DeploymentConfig" not in component["Properties"]
    else:
        assert component["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"] == told


@pytest.mark.parametrize(
    ("planned", "most", "surge", "batch", "timeout_s"),
    [
        (2, 4, 1, 1, 5 * (600 + 600 + 900 + 60)),
        (2, 20, 0, 1, 28_800),
        (4, 30, 2, 2, 28_800),
        (6, 6, 0, 1, 6 * (600 + 600 + 900 + 60)),
    ],
)
def test_several_instances_are_replaced_some_at_a_time(
    planned: int, most: int, surge: int, batch: int, timeout_s: int
) -> None:
    for instances in (planned, most + surge):
        assert 0.05 <= batch / instances <= 0.5
    size = {"Type": "INSTANCE_COUNT", "Value": batch}
    template_of(with_instances(planned=planned, most=most, surge=surge)).has_resource_properties(
        "AWS::SageMaker::Endpoint",
        {
            "DeploymentConfig": {
                "BlueGreenUpdatePolicy": Match.absent(),
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": size,
                    "RollbackMaximumBatchSize": size,
                    "WaitIntervalInSeconds": 60,
                    "MaximumExecutionTimeoutInSeconds": timeout_s,
                },
            }
        },
    )


@pytest.mark.parametrize(("planned", "most"), [(1, 1), (1, 4), (2, 21)])
def test_one_instance_or_too_wide_a_range_is_replaced_at_once(planned: int, most: int) -> None:
    template_of(with_instances(planned=planned, most=most)).has_resource_properties(
        "AWS::SageMaker::Endpoint",
        {
            "DeploymentConfig": {
                "RollingUpdatePolicy": Match.absent(),
                "BlueGreenUpdatePolicy": {
                    "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60},
                    "TerminationWaitInSeconds": 300,
                    "MaximumExecutionTimeoutInSeconds": 600 + 600 + 900 + 60 + 300,
                },
            }
        },
    )


def test_another_threshold_touches_neither_component_nor_endpoint() -> None:
    slower = with_slo(dev(), ttft_ms={"p95": 9}, tpot_ms={"p95": 9})
    before, after = (template_of(each).to_json()["Resources"] for each in (dev(), slower))
    changed = {each["Type"] for name, each in after.items() if each != before[name]}
    assert (before.keys(), changed) == (after.keys(), {ALARM})


def test_an_objective_more_or_less_touches_neither_component_nor_endpoint() -> None:
    """Another DeploymentConfig alone would be an UpdateEndpoint with the same configuration: a fleet, or a refusal."""
    some = with_slo(dev(), ttft_ms={"p95": 2000}, tpot_ms={"p95": 100})
    before, after = (template_of(each).to_json()["Resources"] for each in (some, with_slo(dev())))
    assert {each["Type"] for name, each in before.items() if after.get(name) != each} == {ALARM}
    assert all("OnCall" in name for name in before.keys() ^ after.keys())
    serving = {"AWS::SageMaker::Endpoint", "AWS::SageMaker::InferenceComponent"}
    kept = [name for name, each in after.items() if each["Type"] in serving]
    assert [after[name]["Properties"] for name in kept] == [before[name]["Properties"] for name in kept]
    assert len(kept) == 2


def test_rollback_alarms_off_changes_the_alarms_of_the_rollback_and_tells_the_trial() -> None:
    """One deployment repairs an endpoint that is broken, and the next one restores the guard: both touch no fleet."""
    before, after = (
        Template.from_stack(EndpointStack(App(context=context), "stack", deployment=dev())).to_json()["Resources"]
        for context in ({}, {"rollback_alarms": "off"})
    )
    every = {name: before[name]["Type"] for name in before if after[name] != before[name]}
    changed = {name for name, kind in every.items() if kind == ALARM}
    assert changed == {name for name, each in before.items() if each["Type"] == ALARM and "OnCall" not in name}
    tried = {name: after[name]["Properties"]["RollbackAlarms"] for name, kind in every.items() if kind != ALARM}
    assert {every[name] for name in tried} == {"Custom::CandidateTrial", "Custom::SmokeBenchmark"}
    assert {*tried.values()} == {"off"}
    assert {after[name]["Properties"]["Threshold"] for name in changed} == {NEVER}
    assert all("rollback_alarms=off" in after[name]["Properties"]["AlarmDescription"] for name in changed)


def test_another_value_of_rollback_alarms_is_refused() -> None:
    with pytest.raises(SpecError, match="SEA404"):
        EndpointStack(App(context={"rollback_alarms": "no"}), "stack", deployment=dev())


def test_every_execution_role_may_describe_exactly_the_alarms_that_roll_back(dev_template: Template) -> None:
    described = alarms_that_roles_may_describe(dev_template)
    assert len(described) == 2
    assert set(map(frozenset, described.values())) == {frozenset(rolling_back(dev_template))}


def test_people_are_told_after_the_first_trial_which_saturates_the_component(dev_template: Template) -> None:
    (trial,) = dev_template.find_resources("Custom::SmokeBenchmark")
    for alarm in on_call(dev_template).values():
        assert trial in alarm["DependsOn"]
    for alarm in rolling_back(dev_template).values():
        assert "DependsOn" not in alarm
