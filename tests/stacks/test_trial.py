from __future__ import annotations

import json
import re
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Annotations, Match, Template

from seatrial.specs.endpoint import Percentiles, TrialSpec
from seatrial.specs.environment import Audit, EnvironmentSpec
from seatrial_base.bounds import LONGEST_FUNCTION_S, LOST_AFTER_S, SWEEP_S
from seatrial_base.errors import RenderError, SpecError
from seatrial_cdk.trials.runtime import store
from seatrial_cdk.trials.trials_stack import TrialsStack
from seatrial_stacks.app_stacks import add_stacks
from seatrial_stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment


def test_the_trial_knows_what_must_be_live(dev_template: Template, dev_deployment: Deployment) -> None:
    (config,) = dev_template.find_resources("AWS::SageMaker::EndpointConfig")
    (model,) = dev_template.find_resources("AWS::SageMaker::Model")
    dev_template.has_resource_properties(
        "Custom::SmokeBenchmark",
        {
            "EndpointName": "dev-chat",
            "InferenceComponentName": "dev-chat-model",
            "EndpointConfigName": {"Fn::GetAtt": [config, "EndpointConfigName"]},
            "ModelName": {"Fn::GetAtt": [model, "ModelName"]},
            "Request": dev_deployment.trial_request,
            "Mode": "rollback",
            "BudgetSeconds": "600",
            "FallbackTarget": "12.8",
        },
    )


def test_the_trial_runs_again_when_the_plan_changes(dev_template: Template, dev_deployment: Deployment) -> None:
    digest = dev_deployment.plan.digest
    dev_template.has_resource_properties("Custom::SmokeBenchmark", {"PlanDigest": digest})
    dev_template.has_output("PlanDigest", {"Value": digest})


def test_the_trial_is_asked_of_the_environments_function_by_its_name(
    dev_template: Template, prod_template: Template
) -> None:
    function = "arn:aws:lambda:eu-west-1:123456789012:function:seatrial-prod-trials"
    prod_template.has_resource_properties("Custom::SmokeBenchmark", {"ServiceToken": function})
    joined = ["arn:aws:lambda:us-east-1:", {"Ref": "AWS::AccountId"}, ":function:seatrial-dev-trials"]
    dev_template.has_resource_properties("Custom::SmokeBenchmark", {"ServiceToken": {"Fn::Join": ["", joined]}})


def test_no_stack_exports_anything_or_imports_it(dev_template: Template, dev_trials: Template) -> None:
    for template in (dev_template, dev_trials):
        text = json.dumps(template.to_json())
        assert "Fn::ImportValue" not in text
        assert '"Export"' not in text


def test_the_resource_is_another_one_than_that_of_the_release_before(dev_template: Template) -> None:
    """CloudFormation refuses another function for a resource that is there, so it is a new resource that it gets."""
    (name,) = dev_template.find_resources("Custom::SmokeBenchmark")
    assert name.startswith("Trial")


def test_the_longest_trial_stays_within_cloudformations_hour(dev_deployment: Deployment) -> None:
    template = Template.from_stack(EndpointStack(App(), "long", deployment=with_budget(dev_deployment, 50.0)))
    template.has_resource_properties("Custom::SmokeBenchmark", {"BudgetSeconds": "3000", "ServiceTimeout": "3600"})


def test_the_stacks_hold_about_a_dozen_resources_each(
    dev_template: Template, prod_template: Template, dev_trials: Template, prod_trials: Template
) -> None:
    """Of an environment with `removal: destroy` two are CDK's own: they empty the bucket."""
    counts = [len(each.to_json()["Resources"]) for each in (dev_template, prod_template, dev_trials, prod_trials)]
    assert counts == [18, 18, 18, 14]


def test_an_environment_has_one_service_however_many_endpoints(dev_deployment: Deployment, tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    second = dev_deployment.endpoint.model_copy(update={"name": "talk"})
    add_stacks(app, (dev_deployment, replace(dev_deployment, endpoint=second)))
    app.synth()
    stacks = {path.name.partition(".")[0] for path in tmp_path.glob("*.template.json")}
    assert stacks == {"seatrial-dev-chat", "seatrial-dev-talk", "seatrial-dev-trials"}


def test_what_is_tried_is_deployed_after_its_service(assembly: Path) -> None:
    manifest = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    for stack, depends in (("seatrial-dev-chat", True), ("seatrial-lab-chat", False)):
        assert ("seatrial-dev-trials" in manifest[stack].get("dependencies", [])) is depends


def test_the_service_is_one_function_of_a_known_name(dev_trials: Template) -> None:
    dev_trials.has_resource_properties(
        "AWS::Lambda::Function",
        {
            "FunctionName": "seatrial-dev-trials",
            "Handler": "seatrial_cdk.trial_service.runtime.handler.handler",
            "Runtime": "python3.13",
            "Architectures": ["arm64"],
            "Timeout": 900,
            "MemorySize": 1769,
            "VpcConfig": Match.absent(),
        },
    )
    function, autodelete = dev_trials.find_resources("AWS::Lambda::Function").values()
    ours = function if "FunctionName" in function["Properties"] else autodelete
    variables = ours["Properties"]["Environment"]["Variables"]
    assert set(variables) == {"ENVIRONMENT", "RESULTS_BUCKET", "SIGNING_KEY", "STATE_MACHINE", "SOCKETS_PER_FUNCTION"}


def test_the_function_joins_the_network_of_the_environment(prod_trials: Template) -> None:
    vpc = {"SubnetIds": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}
    prod_trials.has_resource_properties("AWS::Lambda::Function", {"VpcConfig": vpc})


def test_the_workflow_has_a_known_name_and_the_services_function_alone(prod_trials: Template) -> None:
    (function,) = prod_trials.find_resources("AWS::Lambda::Function")
    prod_trials.has_resource_properties(
        "AWS::StepFunctions::StateMachine",
        {
            "StateMachineName": "seatrial-prod-trials",
            "StateMachineType": "STANDARD",
            "DefinitionSubstitutions": {"Function": {"Fn::GetAtt": [function, "Arn"]}},
        },
    )


def test_an_execution_that_died_is_told_to_the_function(prod_trials: Template) -> None:
    (function,) = prod_trials.find_resources("AWS::Lambda::Function")
    (machine,) = prod_trials.find_resources("AWS::StepFunctions::StateMachine")
    rules = prod_trials.find_resources("AWS::Events::Rule")
    (rule,) = (name for name, found in rules.items() if "EventPattern" in found["Properties"])
    arn = {"Fn::GetAtt": [machine, "Arn"]}
    prod_trials.has_resource_properties(
        "AWS::Events::Rule",
        {
            "EventPattern": {
                "source": ["aws.states"],
                "detail-type": ["Step Functions Execution Status Change"],
                "detail": {"stateMachineArn": [arn], "status": ["FAILED", "TIMED_OUT", "ABORTED"]},
            },
            "Targets": [{"Id": "Function", "Arn": {"Fn::GetAtt": [function, "Arn"]}}],
        },
    )
    prod_trials.has_resource_properties(
        "AWS::Lambda::Permission",
        {"Principal": "events.amazonaws.com", "SourceArn": {"Fn::GetAtt": [rule, "Arn"]}},
    )


def test_the_function_sweeps_every_five_minutes(prod_trials: Template) -> None:
    (function,) = prod_trials.find_resources("AWS::Lambda::Function")
    target = {"Id": "Function", "Arn": {"Fn::GetAtt": [function, "Arn"]}, "Input": '{"Sweep": true}'}
    schedule = {"ScheduleExpression": "rate(5 minutes)", "Targets": [target]}
    prod_trials.has_resource_properties("AWS::Events::Rule", schedule)


def test_the_candidate_is_tried_before_endpoint_and_component_are_updated(dev_template: Template) -> None:
    (candidate,) = dev_template.find_resources("Custom::CandidateTrial")
    for kind in ("Endpoint", "InferenceComponent"):
        (resource,) = dev_template.find_resources(f"AWS::SageMaker::{kind}").values()
        assert candidate in resource["DependsOn"]
    copies = {"CopyCount": {"Fn::GetAtt": [candidate, "CopyCount"]}}
    dev_template.has_resource_properties("AWS::SageMaker::InferenceComponent", {"RuntimeConfig": copies})


def test_both_custom_resources_are_told_the_same_so_that_what_updates_one_updates_the_other(
    dev_template: Template,
) -> None:
    (before,) = dev_template.find_resources("Custom::CandidateTrial").values()
    (after,) = dev_template.find_resources("Custom::SmokeBenchmark").values()
    differ = {name for name in before["Properties"] if before["Properties"][name] != after["Properties"].get(name)}
    assert differ == {"Phase", "ServiceTimeout"}


def test_a_candidate_is_what_the_component_will_be(dev_template: Template) -> None:
    (component,) = dev_template.find_resources("AWS::SageMaker::InferenceComponent").values()
    (candidate,) = dev_template.find_resources("Custom::CandidateTrial").values()
    _, (parts) = candidate["Properties"]["Specification"]["Fn::Join"]
    told = json.loads("".join(part if isinstance(part, str) else "MODEL" for part in parts))
    wanted = component["Properties"]["Specification"]
    assert told == {**wanted, "ModelName": "MODEL"}


def test_it_is_told_what_else_updates_the_component(dev_deployment: Deployment) -> None:
    """CloudFormation sends the copy count with every update: then it must be the live one."""

    def told(deployment: Deployment) -> str:
        (resource,) = (
            Template.from_stack(EndpointStack(App(), "x", deployment=deployment))
            .find_resources("Custom::CandidateTrial")
            .values()
        )
        digest: str = resource["Properties"]["Component"]
        return digest

    tagged = dev_deployment.environment.model_copy(update={"tags": {"team": "chat"}})
    rolling = dev_deployment.plan.model_copy(update={"copies_replaced_at_once": 1})
    slower = dev_deployment.endpoint.slo.model_copy(update={"ttft_ms": Percentiles(p95=9_000)})
    digests = [
        told(dev_deployment),
        told(replace(dev_deployment, environment=tagged)),
        told(replace(dev_deployment, plan=rolling)),
    ]
    assert len(set(digests)) == 3
    assert (
        told(replace(dev_deployment, endpoint=dev_deployment.endpoint.model_copy(update={"slo": slower})))
        == (digests[0])
    )


@pytest.mark.parametrize(("budget", "start"), [("10", "1500"), ("50", "300")])
def test_a_candidate_may_start_as_long_as_cloudformations_hour_leaves(
    dev_deployment: Deployment, budget: str, start: str
) -> None:
    template = Template.from_stack(EndpointStack(App(), "x", deployment=with_budget(dev_deployment, float(budget))))
    template.has_resource_properties("Custom::CandidateTrial", {"StartSeconds": start, "ServiceTimeout": "3600"})


def test_the_roles_go_after_the_endpoint_and_after_what_aws_releases_then(prod_template: Template) -> None:
    """CloudFormation deletes in reverse order; the rights of the endpoint's roles are in them."""
    (candidate,) = prod_template.find_resources("Custom::CandidateTrial").values()
    roles = {
        name for name in prod_template.find_resources("AWS::IAM::Role") if "InstanceRole" in name or "ModelRole" in name
    }
    assert len(roles) == 2
    assert roles <= {*candidate["DependsOn"]}
    assert candidate["Properties"]["ReleaseSeconds"] == "300"
    resources = prod_template.to_json()["Resources"]
    sorter = TopologicalSorter({name: references(one) & resources.keys() for name, one in resources.items()})
    assert len([*sorter.static_order()]) == len(resources), "no circle"


def references(value: object) -> set[str]:
    """Return the logical IDs that a resource names."""
    if isinstance(value, dict):
        own = {f"{value['Ref']}"} if "Ref" in value else set()
        got = value.get("Fn::GetAtt")
        own |= {f"{got[0]}"} if isinstance(got, list) else set()
        after = value.get("DependsOn", [])
        own |= {after} if isinstance(after, str) else {*after}
        return own.union(*(references(each) for each in value.values()))
    return set[str]().union(*(references(each) for each in value)) if isinstance(value, list) else set()


def test_without_a_key_and_a_network_nothing_is_waited_for(dev_template: Template) -> None:
    dev_template.has_resource_properties("Custom::CandidateTrial", {"ReleaseSeconds": "0"})


def test_a_candidate_gets_time_for_an_instance_and_its_image(dev_template: Template) -> None:
    dev_template.has_resource_properties(
        "Custom::CandidateTrial", {"InstanceSeconds": "900", "InstanceAccelerators": "1"}
    )


@pytest.mark.parametrize(("budget", "is_late"), [(15.0, False), (15.1, True), (50.0, True)])
def test_a_budget_that_leaves_a_candidate_no_time_for_its_instance_is_told(
    dev_deployment: Deployment, budget: float, *, is_late: bool
) -> None:
    """Its start takes 1500 s, the instance and its image 900 s, of 3300 s."""
    stack = EndpointStack(App(), "late", deployment=with_budget(dev_deployment, budget))
    told = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("SEA505"))
    assert [each.entry.data for each in told] == (
        [
            f"SEA505: budget {budget:g} minutes leaves a candidate {55 - budget:.0f} minutes to start; "
            "on a new instance it may take 40: set trial.budget_minutes to 15 or less, or trial.update to in_place "
            "[ack: seatrial:SEA505]"
        ]
        if is_late
        else []
    )


def test_cdk_deploy_tells_at_its_beginning_how_to_follow_the_trial(dev_deployment: Deployment) -> None:
    stack = EndpointStack(App(), "followed", deployment=dev_deployment)
    told = Annotations.from_stack(stack).find_info("*", Match.string_like_regexp("seatrial trial watch"))
    name, environment = dev_deployment.endpoint.name, dev_deployment.environment.name
    assert [f"{each.entry.data}".rpartition(": ")[2] for each in told] == [
        f"seatrial trial watch {name} -e {environment}"
    ]


def test_a_trial_that_makes_no_candidate_needs_no_time_for_one(dev_deployment: Deployment) -> None:
    trial = dev_deployment.endpoint.trial.model_copy(update={"budget_minutes": 50.0, "update": "in_place"})
    spec = dev_deployment.endpoint.model_copy(update={"trial": trial})
    stack = EndpointStack(App(), "placed", deployment=replace(dev_deployment, endpoint=spec))
    assert Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("SEA505")) == []


def test_cloudformation_waits_ten_minutes_longer_than_the_budget_in_whole_seconds(dev_deployment: Deployment) -> None:
    template = Template.from_stack(EndpointStack(App(), "odd", deployment=with_budget(dev_deployment, 20.001)))
    template.has_resource_properties("Custom::SmokeBenchmark", {"BudgetSeconds": "1201", "ServiceTimeout": "1801"})


@pytest.mark.parametrize("budget", [1.0, 16.0])
def test_a_lost_deletion_is_answered_before_cloudformation_gives_up_however_short_the_budget(
    dev_deployment: Deployment, budget: float
) -> None:
    """A rollback or a deletion that times out leaves the stack stuck; one sweep may fail."""
    template = Template.from_stack(EndpointStack(App(), "short", deployment=with_budget(dev_deployment, budget)))
    template.has_resource_properties("Custom::SmokeBenchmark", {"ServiceTimeout": "1560"})
    assert LONGEST_FUNCTION_S < LOST_AFTER_S < 1560 - SWEEP_S


def test_the_log_of_trials_ends_after_a_month_and_is_kept_with_the_results(
    dev_trials: Template, prod_trials: Template
) -> None:
    for template, policy in ((dev_trials, "Delete"), (prod_trials, "Retain")):
        template.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 30})
        template.has_resource("AWS::Logs::LogGroup", {"DeletionPolicy": policy})
        template.resource_count_is("AWS::Logs::LogGroup", 1)


def test_results_are_private_encrypted_and_go_over_tls_only(dev_trials: Template) -> None:
    (key,) = dev_trials.find_resources("AWS::KMS::Key", {"Properties": {"EnableKeyRotation": True}})
    encryption = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": {"Fn::GetAtt": [key, "Arn"]}}
    dev_trials.has_resource_properties(
        "AWS::S3::Bucket",
        {
            "BucketEncryption": {
                "ServerSideEncryptionConfiguration": [Match.object_like({"ServerSideEncryptionByDefault": encryption})]
            },
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
        },
    )
    tls = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    dev_trials.has_resource_properties(
        "AWS::S3::BucketPolicy",
        {"PolicyDocument": Match.object_like({"Statement": Match.array_with([Match.object_like(tls)])})},
    )


def test_only_the_history_of_trials_expires(dev_trials: Template) -> None:
    rules = [{"Prefix": f"{name}/", "ExpirationInDays": 365, "Status": "Enabled"} for name in ("trials", "runs")]
    dev_trials.has_resource_properties("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": rules}})


def test_nothing_that_a_later_request_reads_expires(dev_trials: Template) -> None:
    read_later = [
        store.owner_key("dev-chat"),
        store.copies_key("dev-chat"),
        store.no_room_key("dev-chat"),
        store.held_key("dev-chat"),
        store.released_key("dev-chat"),
        store.scheduled_passed_key("dev-chat"),
        store.configuration_key("dev-chat", "plan", "config", "model"),
        f"{store.LATEST}/dev-chat/plan/config/model.json",
    ]
    (bucket,) = dev_trials.find_resources("AWS::S3::Bucket").values()
    rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert [(rule["Prefix"], key) for rule in rules for key in read_later if key.startswith(rule["Prefix"])] == []
    may = bucket_folders(dev_trials)
    assert {key.partition("/")[0] for key in read_later} <= may


def bucket_folders(template: Template) -> set[str]:
    """Return the folders that the function may read."""
    text = json.dumps(template.find_resources("AWS::IAM::Role"))
    return set(re.findall(r'"/(\w+)/\*"', text))


def test_removal_destroy_empties_and_deletes_the_bucket(dev_trials: Template) -> None:
    dev_trials.has_resource("AWS::S3::Bucket", {"DeletionPolicy": "Delete"})
    dev_trials.resource_count_is("Custom::S3AutoDeleteObjects", 1)


def test_removal_retain_keeps_the_bucket(prod_trials: Template) -> None:
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    prod_trials.has_resource("AWS::S3::Bucket", kept)
    prod_trials.resource_count_is("Custom::S3AutoDeleteObjects", 0)


def test_removal_retain_keeps_the_key_of_the_bucket(dev_deployment: Deployment) -> None:
    kept = dev_deployment.environment.model_copy(update={"removal": "retain"})
    stack = TrialsStack(App(), environment=kept)
    Template.from_stack(stack).has_resource("AWS::KMS::Key", {"DeletionPolicy": "RetainExceptOnCreate"})


def test_the_environments_key_is_used_where_there_is_one(prod_trials: Template) -> None:
    assert len(prod_trials.find_resources("AWS::KMS::Key")) == len(signing_keys(prod_trials)) == 1


def signing_keys(template: Template) -> Mapping[str, Mapping[str, object]]:
    return template.find_resources("AWS::KMS::Key", {"Properties": {"KeyUsage": "SIGN_VERIFY"}})


def test_the_function_alone_signs_results_with_a_key_that_outlasts_the_stack(
    dev_trials: Template, prod_trials: Template
) -> None:
    """`dev` has `removal: destroy`."""
    for template, policy in ((dev_trials, "Delete"), (prod_trials, "RetainExceptOnCreate")):
        (key,) = signing_keys(template).values()
        properties: Any = key["Properties"]
        assert (properties["KeySpec"], properties["PendingWindowInDays"]) == ("ECC_NIST_P256", 30)
        assert "EnableKeyRotation" not in properties
        assert key["DeletionPolicy"] == policy
        statements = properties["KeyPolicy"]["Statement"]
        (signing,) = (each for each in statements if "kms:Sign" in each["Action"] or "kms:*" in each["Action"])
        (function,) = (
            each["Properties"]["Role"]["Fn::GetAtt"]
            for each in template.find_resources("AWS::Lambda::Function").values()
            if "SIGNING_KEY" in each["Properties"].get("Environment", {}).get("Variables", {})
        )
        assert signing["Principal"] == {"AWS": {"Fn::GetAtt": function}}
        assert "kms:Sign" not in json.dumps(template.find_resources("AWS::IAM::Role"))


def test_mode_off_makes_no_trial_and_no_bucket(weights_template: Template) -> None:
    weights_template.resource_count_is("Custom::SmokeBenchmark", 0)
    weights_template.resource_count_is("AWS::S3::Bucket", 0)
    weights_template.resource_count_is("AWS::Lambda::Function", 0)


def test_without_a_trial_scaling_holds_the_predicted_target(dev_deployment: Deployment) -> None:
    untried = dev_deployment.endpoint.trial.model_copy(update={"mode": "off"})
    spec = dev_deployment.endpoint.model_copy(update={"trial": untried})
    stack = EndpointStack(App(), "untried", deployment=replace(dev_deployment, endpoint=spec))
    Template.from_stack(stack).has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        {"TargetTrackingScalingPolicyConfiguration": Match.object_like({"TargetValue": 12.8})},
    )


def test_a_budget_beyond_cloudformations_hour_is_refused(dev_deployment: Deployment) -> None:
    with pytest.raises(SpecError) as refused:
        EndpointStack(App(), "long", deployment=with_budget(dev_deployment, 50.5))
    assert str(refused.value) == (
        "trial.budget_minutes: SEA505: budget 50.5 minutes exceeds 50 minutes\n"
        "  hint: reduce concurrency levels, or requests per level"
    )


def with_budget(deployment: Deployment, budget_minutes: float) -> Deployment:
    trial = deployment.endpoint.trial.model_copy(update={"budget_minutes": budget_minutes})
    return replace(deployment, endpoint=deployment.endpoint.model_copy(update={"trial": trial}))


def test_files_and_mounted_weights_exclude_each_other(dev_deployment: Deployment) -> None:
    both = {"files": {"serving.properties": "engine=Python\n"}, "weights_s3_uri": "s3://model-weights/llama-2-7b/"}
    serving = dev_deployment.serving.model_copy(update=both)
    with pytest.raises(RenderError) as refused:
        EndpointStack(App(), "both", deployment=replace(dev_deployment, serving=serving))
    assert str(refused.value) == (
        "SEA305: packaged files and mounted weights both use /opt/ml/model\n"
        "  hint: mounted weights: configure the container through its environment"
    )


def test_results_and_logs_are_kept_as_long_as_the_environment_says() -> None:
    environment = EnvironmentSpec.model_validate(
        {"name": "dev", "region": "us-east-1", "retention": {"results_days": 90, "log_days": 545}}
    )
    template = Template.from_stack(TrialsStack(App(), environment=environment))
    rules = [{"Prefix": f"{name}/", "ExpirationInDays": 90, "Status": "Enabled"} for name in ("trials", "runs")]
    template.has_resource_properties("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": rules}})
    template.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 545})
    variables = {"Variables": Match.object_like({"LOG_DAYS": "545"})}
    template.has_resource_properties("AWS::Lambda::Function", {"Environment": variables})


def test_without_a_retention_the_function_has_no_variable_of_it(dev_trials: Template) -> None:
    variables = {"Variables": Match.object_like({"LOG_DAYS": Match.absent(), "ENVIRONMENT": "dev"})}
    dev_trials.has_resource_properties("AWS::Lambda::Function", {"Environment": variables})


@pytest.mark.parametrize("mode", ["governance", "compliance"])
def test_records_are_locked_for_years_written_by_one_role_and_outlast_the_stack(mode: str) -> None:
    environment = EnvironmentSpec.model_validate(
        {"name": "dev", "region": "us-east-1", "audit": {"mode": mode, "years": 7}}
    )
    template = Template.from_stack(TrialsStack(App(), environment=environment))
    (bucket,) = template.find_resources("AWS::S3::Bucket", {"Properties": {"ObjectLockEnabled": True}})
    rule = {"DefaultRetention": {"Mode": mode.upper(), "Days": 2562}}
    locked = {"ObjectLockConfiguration": {"Rule": rule}, "VersioningConfiguration": {"Status": "Enabled"}}
    template.has_resource("AWS::S3::Bucket", {"Properties": locked, "DeletionPolicy": "RetainExceptOnCreate"})
    results = [{"Prefix": f"{name}/", "ExpirationInDays": 2562, "Status": "Enabled"} for name in ("trials", "runs")]
    template.has_resource_properties("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": results}})
    (role,) = template.find_resources(
        "AWS::IAM::Role", {"Properties": {"Description": "Trials of the endpoints of dev"}}
    )
    denied: list[dict[str, Any]] = [
        {
            "Action": "s3:PutObject",
            "Condition": {"ArnNotLike": {"aws:PrincipalArn": Match.array_with([{"Fn::GetAtt": [role, "Arn"]}])}},
        },
        {"Action": "s3:DeleteObject"},
    ]
    statements = Match.array_with([Match.object_like({**each, "Effect": "Deny"}) for each in denied])
    policy = {"Bucket": {"Ref": bucket}, "PolicyDocument": {"Statement": statements}}
    template.has_resource_properties("AWS::S3::BucketPolicy", policy)
    variables = {"Variables": Match.object_like({"RECORDS_BUCKET": {"Ref": bucket}})}
    template.has_resource_properties("AWS::Lambda::Function", {"Environment": variables})


def test_what_serves_is_recorded_after_its_trial_and_before_clients_learn_of_it(
    dev_deployment: Deployment, weights_template: Template, dev_template: Template
) -> None:
    audited = dev_deployment.environment.model_copy(update={"audit": Audit(mode="governance", years=1)})
    deployment = replace(dev_deployment, environment=audited)
    template = Template.from_stack(EndpointStack(App(), "audited", deployment=deployment))
    ((name, record),) = template.find_resources("Custom::ServedRecord").items()
    (trial,) = template.find_resources("Custom::SmokeBenchmark")
    (alias,) = template.find_resources("AWS::SSM::Parameter").values()
    assert trial in record["DependsOn"]
    assert name in alias["DependsOn"]
    served = json.loads(record["Properties"]["Served"])
    assert (served["model"], served["licence"]) == ("meta-llama/Llama-2-7b-chat-hf", "llama2")
    assert (served["plan_digest"], served["weights_digest"]) == (deployment.plan.digest, "unknown")
    assert record["Properties"]["ResultUri"] == {"Fn::GetAtt": [trial, "ResultUri"]}
    untried = replace(deployment, endpoint=deployment.endpoint.model_copy(update={"trial": TrialSpec(mode="off")}))
    template = Template.from_stack(EndpointStack(App(), "untried", deployment=untried))
    template.has_resource_properties("Custom::ServedRecord", {"ResultUri": Match.absent()})
    for plain in (weights_template, dev_template):
        assert not plain.find_resources("Custom::ServedRecord")
