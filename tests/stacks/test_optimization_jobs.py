"""The stack of an environment's optimization jobs, and what an endpoint's stack has for its own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App, Validations
from aws_cdk.assertions import Match, Template
from cdk_nag import AwsSolutionsChecks

from seatrial.account.trials import job_parameter
from seatrial.deployment.optimization_job import jobs_name
from seatrial_cdk.jobs.optimization_service import definition, jobs_archive
from seatrial_cdk.policy import UNNAMED_RESOURCE_ACTIONS
from seatrial_stacks.app_stacks import add_stacks
from tests.policy_findings import policy_findings
from tests.resource_types import unknown_types
from tests.stacks.conftest import ROOT, optimization_request, prod, weights

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthesize two endpoints with jobs, one of them twice; cdk-nag fails on a finding that is not acknowledged."""
    out = tmp_path_factory.mktemp("jobs")
    app = App(
        outdir=str(out), analytics_reporting=False, context=json.loads((ROOT / "cdk.json").read_text())["context"]
    )
    Validations.of(app).add_plugins(AwsSolutionsChecks())
    without_key = weights().environment.model_copy(update={"kms_key_arn": None})
    lab = replace(weights(), environment=without_key, optimization_job=optimization_request("lab"))
    twin = replace(lab, endpoint=lab.endpoint.model_copy(update={"name": "twin"}))
    add_stacks(app, (lab, twin, replace(prod(), optimization_job=optimization_request("prod"), serving=lab.serving)))
    app.synth()
    return out


@pytest.fixture(scope="module")
def jobs(folder: Path) -> Template:
    return Template.from_string((folder / "seatrial-lab-optimizations.template.json").read_text())


@pytest.fixture(scope="module")
def jobs_of_prod(folder: Path) -> Template:
    return Template.from_string((folder / "seatrial-prod-optimizations.template.json").read_text())


def test_the_catalog_has_every_resource_type(jobs: Template) -> None:
    assert unknown_types(jobs.to_json()["Resources"].values()) == []


def test_policies_of_jobs(folder: Path) -> None:
    assert policy_findings([folder]) == []


def test_two_endpoints_with_the_same_artifacts_share_one_job_and_depend_on_its_stack(
    folder: Path, jobs: Template
) -> None:
    jobs.resource_count_is("Custom::OptimizationJob", 1)
    made = optimization_request("lab")
    jobs.has_resource_properties(
        "Custom::OptimizationJob", {"Phase": "job", "Digest": made.digest, "Name": f"lab-{made.digest}"}
    )
    manifest = json.loads((folder / "manifest.json").read_text())["artifacts"]
    assert all(
        "seatrial-lab-optimizations" in manifest[f"seatrial-lab-{name}"]["dependencies"] for name in ("chat", "twin")
    )


def test_the_endpoint_mounts_the_artifacts_and_waits_for_what_is_told_of_them(folder: Path) -> None:
    template = Template.from_string((folder / "seatrial-lab-chat.template.json").read_text())
    ((name, gate),) = template.find_resources("Custom::OptimizedWeights").items()
    assert gate["Properties"]["Name"] == optimization_request("lab").name
    source = Match.object_like({"S3DataSource": {"S3Uri": Match.any_value(), "S3DataType": "S3Prefix"}})
    template.has_resource_properties("AWS::SageMaker::Model", {"PrimaryContainer": {"ModelDataSource": source}})
    (endpoint,) = template.find_resources("AWS::SageMaker::Endpoint").values()
    assert name in endpoint["DependsOn"]
    assert [name, "Bucket"] in every_attribute(template.to_json())


def every_attribute(value: Any) -> list[list[str]]:  # noqa: ANN401 (JSON)
    if isinstance(value, dict):
        own = [value["Fn::GetAtt"]] if "Fn::GetAtt" in value else []
        return own + [found for each in value.values() for found in every_attribute(each)]
    return [found for each in value for found in every_attribute(each)] if isinstance(value, list) else []


def test_no_right_is_wider_than_its_names(jobs: Template, jobs_of_prod: Template) -> None:
    for template in (jobs, jobs_of_prod):
        documents = [
            policy["PolicyDocument"]
            for role in template.find_resources("AWS::IAM::Role").values()
            for policy in role["Properties"].get("Policies", [])
        ]
        documents += [
            each["Properties"]["PolicyDocument"] for each in template.find_resources("AWS::IAM::Policy").values()
        ]
        statements = [statement for document in documents for statement in document["Statement"]]
        on_all = [each["Action"] for each in statements if each["Resource"] in ("*", ["*"])]
        assert {action for each in on_all for action in ([each] if isinstance(each, str) else each)} <= {
            *UNNAMED_RESOURCE_ACTIONS
        }
        (passing,) = [each for each in statements if each["Action"] in ("iam:PassRole", ["iam:PassRole"])]
        assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}


def test_a_job_runs_in_the_network_of_its_environment_with_its_key(jobs: Template, jobs_of_prod: Template) -> None:
    (job,) = jobs_of_prod.find_resources("Custom::OptimizationJob").values()
    asked = json.loads(job["Properties"]["Request"])
    assert asked["VpcConfig"] == {"SecurityGroupIds": ["sg-0a1b2c3d"], "Subnets": ["subnet-0a1b2c3d"]}
    assert {"Key": "seatrial:environment", "Value": "prod"} in asked["Tags"]
    jobs.resource_count_is("AWS::KMS::Key", 1)
    jobs_of_prod.resource_count_is("AWS::KMS::Key", 0)
    jobs_of_prod.has_resource("AWS::S3::Bucket", {"DeletionPolicy": "RetainExceptOnCreate"})


def test_the_function_has_the_name_and_the_parameters_that_commands_ask(jobs: Template) -> None:
    path = job_parameter(optimization_request("lab")).rpartition("/")[0]
    variables = {"Variables": Match.object_like({"PARAMETERS": path})}
    function = {"FunctionName": jobs_name("lab"), "Environment": variables}
    jobs.has_resource_properties("AWS::Lambda::Function", function)


def test_every_step_of_the_workflow_leads_to_another_or_ends() -> None:
    states: Any = definition("${Function}")["States"]
    following = {state["Next"] for state in states.values() if "Next" in state}
    following |= {
        each["Next"] for state in states.values() for each in (*state.get("Catch", []), *state.get("Choices", []))
    }
    assert following | {"Create"} == {*states} - {"Ended"} | {"Ended"}
    assert jobs_archive() == jobs_archive()
