"""The pipeline of a team's repository, synthesized once beside the plain app of the same repository."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.repository.answers import Answers, new_targets
from seatrial.repository.write import write_repository
from seatrial_base.errors import SpecError
from seatrial_stacks.app_stacks import define_stacks
from tests.policy_findings import policy_findings
from tests.resource_types import unknown_types

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNTS = {"dev": "111111111111", "prod": "222222222222"}
CONNECTION = "arn:aws:codeconnections:us-east-1:111111111111:connection/0f0e0d0c-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team")
    answers = Answers(
        name="endpoints",
        ci="codepipeline",
        targets=new_targets(ACCOUNTS, "us-east-1"),
        source="acme/endpoints",
        owner="@acme/platform",
        connection_arn=CONNECTION,
    )
    write_repository(folder, answers)
    return folder


def synthesized(team: Path, outdir: Path, **context: str) -> App:
    flags = json.loads((team / "cdk.json").read_text(encoding="utf-8"))["context"]
    folders = {name: str(team / name) for name in ("endpoints", "environments")}
    app = App(
        outdir=str(outdir), analytics_reporting=False, tree_metadata=False, context={**flags, **folders, **context}
    )
    define_stacks(app)
    app.synth()
    return app


@pytest.fixture(scope="module")
def assembly(team: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline")
    synthesized(team, folder, pipeline=str(team / "pipeline.yaml"))
    return folder


@pytest.fixture(scope="module")
def template(assembly: Path) -> Template:
    return Template.from_json(json.loads((assembly / "endpoints-pipeline.template.json").read_text(encoding="utf-8")))


def test_the_source_uses_the_connection_by_the_action_of_its_own_service(template: Template) -> None:
    policies = template.find_resources("AWS::IAM::Policy").values()
    statements = [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
    (ours,) = (each for each in statements if "codeconnections:UseConnection" in each["Action"])
    assert (ours["Effect"], ours["Resource"]) == ("Allow", CONNECTION)


def test_policies_of_the_pipeline_and_its_stages(assembly: Path) -> None:
    assert policy_findings([assembly]) == []


def test_the_catalog_has_every_resource_type(template: Template) -> None:
    assert unknown_types(template.to_json()["Resources"].values()) == []


@pytest.fixture(scope="module")
def stages(template: Template) -> dict[str, list[dict[str, Any]]]:
    (pipeline,) = template.find_resources("AWS::CodePipeline::Pipeline").values()
    return {stage["Name"]: stage["Actions"] for stage in pipeline["Properties"]["Stages"]}


def test_environments_follow_in_order_and_people_are_asked_before_prod(stages: dict[str, list[dict[str, Any]]]) -> None:
    assert list(stages) == ["Source", "Build", "UpdatePipeline", "Assets", "dev", "prod"]
    actions = {name: [(each["RunOrder"], each["Name"]) for each in stages[name]] for name in ACCOUNTS}
    assert actions["dev"][0] == (1, "seatrial-dev-trials.Prepare")
    assert actions["dev"][-1] == (4, "seatrial-dev-chat.Deploy")
    assert actions["prod"][0] == (1, "Approve-prod")
    assert actions["prod"][-1] == (5, "seatrial-prod-chat.Deploy")
    asked = [
        each["Name"] for each in chain.from_iterable(stages.values()) if each["ActionTypeId"]["Category"] == "Approval"
    ]
    assert asked == ["Approve-prod"]


def test_each_stage_is_deployed_with_the_bootstrap_role_of_its_account(stages: dict[str, list[dict[str, Any]]]) -> None:
    for name, account in ACCOUNTS.items():
        deploying = [each for each in stages[name] if each["ActionTypeId"]["Category"] == "Deploy"]
        for action in deploying:
            role = json.dumps(action["RoleArn"])
            assert f":iam::{account}:role/cdk-hnb659fds-deploy-role-{account}-us-east-1" in role


def test_the_source_is_the_connection(stages: dict[str, list[dict[str, Any]]]) -> None:
    (source,) = stages["Source"]
    assert source["ActionTypeId"]["Provider"] == "CodeStarSourceConnection"
    found = source["Configuration"]
    assert (found["ConnectionArn"], found["FullRepositoryId"], found["BranchName"]) == (
        CONNECTION,
        "acme/endpoints",
        "main",
    )


def test_the_build_runs_the_targets_that_people_run(template: Template, team: Path) -> None:
    every = [
        each["Properties"]["Source"]["BuildSpec"]
        for each in template.find_resources("AWS::CodeBuild::Project").values()
    ]
    # All assets are published by one project, whose commands are a file of the cloud assembly.
    (_,) = (each for each in every if each.endswith(".yaml"))
    specs = [json.loads(each)["phases"] for each in every if not each.endswith(".yaml")]
    commands = [phases["build"]["commands"] for phases in specs]
    (cache,) = (cache for each in every if not each.endswith(".yaml") and (cache := json.loads(each).get("cache")))
    assert cache == {"paths": ["/root/.cache/pip/**/*", "/root/.npm/**/*"]}
    synth = {"Properties": {"Cache": {"Type": "LOCAL", "Modes": ["LOCAL_CUSTOM_CACHE"]}}}
    assert len(template.find_resources("AWS::CodeBuild::Project", synth)) == 1
    targets = [command for command in chain.from_iterable(commands) if command.startswith("make ")]
    assert targets == ["make validate", "make plan-check", "make lint", "make synth-pipeline"]
    makefile = (team / "Makefile").read_text(encoding="utf-8")
    assert [command for command in targets if f"\n{command.removeprefix('make ')}:" not in makefile] == []
    (own,) = [phases for phases in specs if "deploy endpoints-pipeline" in phases["build"]["commands"][0]]
    cli = json.loads((team / "package.json").read_text(encoding="utf-8"))["devDependencies"]["aws-cdk"]
    assert own["install"]["commands"] == [f"npm install -g aws-cdk@{cli}"]


def test_artifacts_of_two_accounts_have_a_key_that_is_rotated(template: Template) -> None:
    (key,) = template.find_resources("AWS::KMS::Key").values()
    assert key["Properties"]["EnableKeyRotation"] is True
    readers = json.dumps(key["Properties"]["KeyPolicy"])
    assert ":iam::222222222222:role/cdk-hnb659fds-deploy-role-222222222222-us-east-1" in readers


def test_a_stage_has_the_templates_of_the_plain_app(team: Path, assembly: Path, tmp_path: Path) -> None:
    synthesized(team, tmp_path)
    plain = {path.name: path.read_bytes() for path in tmp_path.glob("*.template.json")}
    assert len(plain) == 4
    staged = {}
    for name in ACCOUNTS:
        folder = assembly / f"assembly-endpoints-pipeline-{name}"
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"].values()
        for each in (each["properties"] for each in manifest if each["type"] == "aws:cloudformation:stack"):
            staged[f"{each['stackName']}.template.json"] = (folder / each["templateFile"]).read_bytes()
    assert staged == plain


def test_the_plain_app_has_no_pipeline_and_the_pipeline_no_plain_stacks(team: Path, assembly: Path) -> None:
    assert (team / "pipeline.yaml").is_file()
    assert [path.name for path in assembly.glob("*.template.json")] == ["endpoints-pipeline.template.json"]


def test_every_problem_of_a_pipeline_is_told(team: Path, tmp_path: Path) -> None:
    environments = tmp_path / "environments"
    environments.mkdir()
    (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\n", encoding="utf-8")
    file = tmp_path / "pipeline.yaml"
    token = f"hf_{'a1B2' * 9}"
    text = f'name: "a b"\naccount: "1"\nregion: us-east-1\nrepository: {token}\n'
    file.write_text(text, encoding="utf-8")
    context = {"pipeline": str(file), "environments": str(environments), "endpoints": str(team / "endpoints")}
    with pytest.raises(SpecError) as caught:
        define_stacks(App(context=context))
    found = [(problem.rule, problem.field) for problem in caught.value.problems]
    assert sorted(found) == [
        ("SEA106", "connection_arn"),
        ("SEA107", "account"),
        ("SEA107", "name"),
        ("SEA107", "repository"),
        ("SEA113", "repository"),
        ("SEA483", "account"),
    ]
    assert token not in str(caught.value)
