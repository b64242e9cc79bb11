"""The pipeline of a team's repository, synthesized once beside the plain app of the same repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]  # no type information published

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


@pytest.fixture(scope="module")
def commands(template: Template, stages: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Return the commands of each stage that builds."""
    projects = template.find_resources("AWS::CodeBuild::Project")
    built = {
        name: projects[action["Configuration"]["ProjectName"]["Ref"]]["Properties"]["Source"]["BuildSpec"]
        for name, actions in stages.items()
        for action in actions
        if action["ActionTypeId"]["Provider"] == "CodeBuild"
    }
    return {name: json.loads(text)["phases"]["build"]["commands"] for name, text in built.items()}


def test_environments_follow_in_order_and_people_are_asked_before_prod(stages: dict[str, list[dict[str, Any]]]) -> None:
    assert list(stages) == ["Source", "Build", "UpdatePipeline", "dev", "prod", "Deployed"]
    actions = {name: [(each["RunOrder"], each["Name"]) for each in stages[name]] for name in ACCOUNTS}
    assert actions == {"dev": [(1, "Deploy-dev")], "prod": [(1, "Approve-prod"), (2, "Deploy-prod")]}


def test_a_stage_assumes_the_deploy_role_of_its_environment_and_no_other(template: Template, team: Path) -> None:
    """The role trusts what is below the path that the project's role has."""
    trusts = cfn_yaml.load(str(team / "bootstrap" / "roles.yaml"))["Resources"]["DeployRole"]["Properties"]
    trusted = trusts["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]["ArnLike"]["aws:PrincipalArn"]["Fn::Sub"]
    roles = template.find_resources("AWS::IAM::Role")
    policies = template.find_resources("AWS::IAM::Policy").values()
    for name, account in ACCOUNTS.items():
        ((key, role),) = [(key, each) for key, each in roles.items() if f"Deploy{name}" in key]
        path = role["Properties"]["Path"]
        assert trusted.partition(":role")[2].replace("${Environment}", name) == f"{path}*"
        assumed = [
            statement["Resource"]
            for policy in policies
            if policy["Properties"]["Roles"] == [{"Ref": key}]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Action"] == "sts:AssumeRole"
        ]
        assert assumed == [f"arn:aws:iam::{account}:role/seatrial-{name}-deploy"]


@pytest.mark.parametrize(
    ("make", "before", "expected"),
    [
        ("printf 'b\\nc\\n' > build/failed-dev; exit 50", "failed: a ", (0, "failed: a  b c \n")),
        ("touch build/failed-dev", "failed:", (0, "failed: \n")),
        ("exit 3", "failed:", (1, "")),
        ("touch build/failed-dev; exit 2", "failed:", (1, "")),
    ],
)
def test_a_stage_ends_well_once_every_endpoint_was_tried_and_names_what_failed(
    commands: dict[str, list[str]], tmp_path: Path, make: str, before: str, expected: tuple[int, str]
) -> None:
    script = "\n".join(["set -e", f"make() {{ test $1 != deploy || ({make}); }}", *commands["dev"], 'echo "$FAILED"'])
    ended = shell(script, tmp_path, BEFORE=before)
    assert ended == expected
    assert "role/seatrial-dev-deploy\ncredential_source" in (tmp_path / "build" / "aws-config").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("checks", "failed", "code"), [("passed", "failed:  ", 0), ("failed", "failed:", 1), ("passed", "failed: a ", 1)]
)
def test_the_last_stage_fails_where_a_check_or_an_endpoint_did(
    commands: dict[str, list[str]], tmp_path: Path, checks: str, failed: str, code: int
) -> None:
    code_of, text = shell("\n".join(["set -e", *commands["Deployed"]]), tmp_path, CHECKS=checks, FAILED=failed)
    assert (code_of, checks in text) == (code, True)


def shell(script: str, folder: Path, **variables: str) -> tuple[int, str]:
    """Run commands as CodeBuild does, in one shell that the first failure ends."""
    ended = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_the_source_is_the_connection(stages: dict[str, list[dict[str, Any]]]) -> None:
    (source,) = stages["Source"]
    assert source["ActionTypeId"]["Provider"] == "CodeStarSourceConnection"
    found = source["Configuration"]
    assert (found["ConnectionArn"], found["FullRepositoryId"], found["BranchName"]) == (
        CONNECTION,
        "acme/endpoints",
        "main",
    )


def test_the_builds_run_the_targets_that_people_run(
    commands: dict[str, list[str]], team: Path, template: Template
) -> None:
    every = "\n".join(chain.from_iterable(commands.values()))
    targets = set(chain.from_iterable(words.split() for words in re.findall(r"make ([a-z -]+)", every)))
    assert targets == {"validate", "plan-check", "lint", "synth-pipeline", "deploy", "deploy-ended"}
    makefile = (team / "Makefile").read_text(encoding="utf-8")
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    cli = json.loads((team / "package.json").read_text(encoding="utf-8"))["devDependencies"]["aws-cdk"]
    assert f"npm install -g aws-cdk@{cli}" in json.dumps(template.to_json())


def test_a_stale_lock_of_one_endpoint_is_no_part_of_the_pipeline(team: Path, assembly: Path, tmp_path: Path) -> None:
    shutil.copytree(team, tmp_path / "team")
    for lock in (tmp_path / "team" / "endpoints").glob("*.lock.json"):
        lock.write_text("{}", encoding="utf-8")
    synthesized(tmp_path / "team", tmp_path / "out", pipeline=str(tmp_path / "team" / "pipeline.yaml"))
    name = "endpoints-pipeline.template.json"
    assert (tmp_path / "out" / name).read_bytes() == (assembly / name).read_bytes()


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
