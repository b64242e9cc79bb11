from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial.errors import RenderError, SpecError
from stacks.endpoint_stack import EndpointStack
from tests.sample_plan import LMI_IMAGE as IMAGE
from tests.stacks.conftest import request_text

if TYPE_CHECKING:
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
            "Image": IMAGE,
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


def test_no_wait_is_longer_than_cloudformations_hour(prod_template: Template) -> None:
    runner = {"Handler": "seatrial_cdk.trial_service.runtime.runner.handler", "Timeout": 900, "MemorySize": 1769}
    prod_template.has_resource_properties("AWS::Lambda::Function", runner)
    prod_template.has_resource_properties("Custom::SmokeBenchmark", {"BudgetSeconds": "840", "ServiceTimeout": "1440"})
    (waiter,) = prod_template.find_resources("AWS::StepFunctions::StateMachine").values()
    definition = json.dumps(waiter["Properties"]["DefinitionString"])
    # 840 s / 60 looks = 14 s; 82 x 14 s = 1148 s covers the budget + 300 s
    assert r"\"IntervalSeconds\":14,\"MaxAttempts\":82" in definition.replace("\\\\", "\\")


def test_the_longest_trial_stays_within_cloudformations_hour(dev_deployment: Deployment) -> None:
    template = Template.from_stack(EndpointStack(App(), "long", deployment=with_budget(dev_deployment, 50.0)))
    template.has_resource_properties("Custom::SmokeBenchmark", {"BudgetSeconds": "3000", "ServiceTimeout": "3600"})
    runner = {"Handler": "seatrial_cdk.trial_service.runtime.runner.handler", "Timeout": 900}
    template.has_resource_properties("AWS::Lambda::Function", runner)
    (waiter,) = template.find_resources("AWS::StepFunctions::StateMachine").values()
    definition = json.dumps(waiter["Properties"]["DefinitionString"]).replace("\\\\", "\\")
    # a look every 20 s at most, since a paused trial waits for one; 165 x 20 s = 3300 s
    assert r"\"IntervalSeconds\":20,\"MaxAttempts\":165" in definition


def test_who_starts_runs_knows_the_runner(dev_template: Template) -> None:
    for module in ("on_event", "is_complete"):
        (function,) = dev_template.find_resources(
            "AWS::Lambda::Function",
            {"Properties": {"Handler": f"seatrial_cdk.trial_service.runtime.{module}.handler"}},
        ).values()
        assert set(function["Properties"]["Environment"]["Variables"]) == {"RESULTS_BUCKET", "RUNNER_FUNCTION"}


def test_a_trial_of_more_streams_than_one_function_has_sockets_for_gets_a_fleet(
    dev_template: Template, dev_deployment: Deployment
) -> None:
    many = replace(dev_deployment, trial_request=request_text(16, 1024))
    template = Template.from_stack(EndpointStack(App(), "many", deployment=many))
    template.resource_count_is("AWS::StepFunctions::StateMachine", 2)
    dev_template.resource_count_is("AWS::StepFunctions::StateMachine", 1)
    starters = template.find_resources(
        "AWS::Lambda::Function",
        {"Properties": {"Environment": {"Variables": Match.object_like({"TRIAL_FLEET": Match.any_value()})}}},
    )
    handlers = {function["Properties"]["Handler"].split(".")[-2] for function in starters.values()}
    assert handlers == {"on_event", "is_complete"}


def test_a_runner_that_fails_is_not_started_twice(dev_template: Template) -> None:
    dev_template.resource_count_is("AWS::Lambda::EventInvokeConfig", 1)
    dev_template.has_resource_properties("AWS::Lambda::EventInvokeConfig", {"MaximumRetryAttempts": 0})


def test_a_runner_that_starts_late_is_not_started(dev_template: Template) -> None:
    dev_template.has_resource_properties("AWS::Lambda::EventInvokeConfig", {"MaximumEventAgeInSeconds": 60})


def test_a_budget_is_rounded_up_to_whole_seconds(dev_deployment: Deployment) -> None:
    template = Template.from_stack(EndpointStack(App(), "odd", deployment=with_budget(dev_deployment, 1.001)))
    template.has_resource_properties("Custom::SmokeBenchmark", {"BudgetSeconds": "61", "ServiceTimeout": "661"})


def test_the_handlers_share_one_archive(dev_template: Template) -> None:
    ours = dev_template.find_resources("AWS::Lambda::Function", {"Properties": {"Runtime": "python3.13"}})
    assert len(ours) == 3
    assert len({json.dumps(function["Properties"]["Code"]) for function in ours.values()}) == 1


def test_every_log_of_the_trial_ends_after_a_month(dev_template: Template) -> None:
    dev_template.resource_count_is("AWS::Logs::LogGroup", 4)
    dev_template.all_resources_properties("AWS::Logs::LogGroup", {"RetentionInDays": 30})
    dev_template.all_resources("AWS::Logs::LogGroup", {"DeletionPolicy": "Delete"})


def test_results_are_private_encrypted_and_go_over_tls_only(dev_template: Template) -> None:
    (key,) = dev_template.find_resources("AWS::KMS::Key")
    encryption = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": {"Fn::GetAtt": [key, "Arn"]}}
    dev_template.has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    dev_template.has_resource_properties(
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
    dev_template.has_resource_properties(
        "AWS::S3::BucketPolicy",
        {"PolicyDocument": Match.object_like({"Statement": Match.array_with([Match.object_like(tls)])})},
    )


def test_only_the_history_of_trials_expires(dev_template: Template) -> None:
    rules = [{"Prefix": f"{name}/", "ExpirationInDays": 365, "Status": "Enabled"} for name in ("trials", "runs")]
    dev_template.has_resource_properties("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": rules}})


def test_removal_destroy_empties_and_deletes_the_bucket(dev_template: Template) -> None:
    dev_template.has_resource("AWS::S3::Bucket", {"DeletionPolicy": "Delete"})
    dev_template.resource_count_is("Custom::S3AutoDeleteObjects", 1)


def test_removal_retain_keeps_the_bucket(prod_template: Template) -> None:
    kept = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    prod_template.has_resource("AWS::S3::Bucket", kept)
    prod_template.resource_count_is("Custom::S3AutoDeleteObjects", 0)


def test_removal_retain_keeps_the_key_of_the_bucket(dev_deployment: Deployment) -> None:
    kept = dev_deployment.environment.model_copy(update={"removal": "retain"})
    stack = EndpointStack(App(), "kept", deployment=replace(dev_deployment, environment=kept))
    Template.from_stack(stack).has_resource("AWS::KMS::Key", {"DeletionPolicy": "RetainExceptOnCreate"})


def test_removal_retain_keeps_the_log_of_the_runner_alone(prod_template: Template) -> None:
    groups = prod_template.find_resources("AWS::Logs::LogGroup")
    kept = [name for name, group in groups.items() if group["DeletionPolicy"] == "Retain"]
    (runner,) = prod_template.find_resources(
        "AWS::Lambda::Function", {"Properties": {"Handler": "seatrial_cdk.trial_service.runtime.runner.handler"}}
    ).values()
    assert [{"Ref": name} for name in kept] == [runner["Properties"]["LoggingConfig"]["LogGroup"]]


def test_the_environments_key_is_used_where_there_is_one(prod_template: Template) -> None:
    prod_template.resource_count_is("AWS::KMS::Key", 0)


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
        "  hint: measure fewer concurrency levels, or fewer requests per level"
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
        "SEA305: packaged files and mounted weights both claim /opt/ml/model\n"
        "  hint: with mounted weights, configure the container through its environment only"
    )
