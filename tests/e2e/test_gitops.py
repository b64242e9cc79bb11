"""A team's repository: merged, tried in dev, approved, deployed to prod, promoted, and watched; two accounts."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError

from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.repository.answers import Answers, new_targets
from seatrial.repository.write import write_repository
from seatrial.specs.load import load_spec
from seatrial_laptop import lifecycle
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from tests.e2e.conftest import plain_spec, variables_of
from tests.e2e.web_identity import assumed, provider_arn
from tests.e2e.workflow_runner import Runner, link_installed
from tests.tools import BIN, run_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import (
        InferenceComponentComputeResourceRequirementsTypeDef,
        InferenceComponentSpecificationSummaryTypeDef,
        InferenceComponentSpecificationTypeDef,
    )

    from tests.tools import Ended

pytestmark = pytest.mark.e2e

ACCOUNTS = {"dev": "111111111111", "prod": "222222222222"}
REPOSITORY = "acme/endpoints"
ALLOWED = {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}}
IMPOSSIBLE = {"ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 5_000}}
LONGEST_EDIT_S = 60.0
TRIAL = {
    "mode": "rollback",
    "concurrency_levels": [1, 2],
    "requests_per_concurrency": 1,
    "budget_minutes": 1,
    "request_timeout_s": 20,
}


@dataclass(frozen=True, slots=True)
class Team:
    """A team's repository, and a clone in which it works."""

    origin: Path
    work: Path

    def merge(self, message: str, branch: str = "main", **changes: object) -> dict[str, str]:
        """Commit the endpoint with these top-level fields and its locks; return the plan's digest by environment."""
        spec = self.work / "endpoints" / "chat.yaml"
        spec.write_text(yaml.safe_dump({**plain_spec("chat"), "trial": TRIAL, **changes}), encoding="utf-8")
        digests = {}
        for name in ACCOUNTS:
            loaded = load_spec(spec, name, environments=self.work / "environments")
            plan = make_plan(loaded, accept_slo_miss=True)
            write_lock(plan, spec)
            digests[name] = plan.digest
        self.push(message, branch)
        return digests

    def push(self, message: str, branch: str = "main") -> None:
        """Commit what is there to a branch, and push it."""
        self.git("checkout", "--quiet", "-B", branch)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", branch)

    def run(self, *command: str, cloud: EmbeddedAws, role: str = "") -> Ended:
        """Run a command in the clone, on an account: as its root, or in a job of main with a role of the workflows."""
        root = variables_of(cloud.local)
        arn = f"arn:aws:iam::{cloud.local.account}:role/{role}"
        env = assumed(root, arn, f"repo:{REPOSITORY}:ref:refs/heads/main") if role else root
        return run_to_end(*command, folder=self.work, env=env)

    def git(self, *arguments: str) -> None:
        git = shutil.which("git") or "git"
        author = ("-c", "user.name=team", "-c", "user.email=team@example.com")
        subprocess.run([git, *author, *arguments], cwd=self.work, check=True, capture_output=True)


def bootstrapped(folder: Path, local: lifecycle.LocalAws) -> Ended:
    where = f"aws://{local.account}/{local.region}"
    env = variables_of(local)
    return run_to_end(BIN / "cdk", "bootstrap", where, "--no-notices", folder=folder, env=env)


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory, no_account: None) -> Iterator[dict[str, EmbeddedAws]]:
    """Start an embedded AWS for each account, and bootstrap it."""
    folder = tmp_path_factory.mktemp("accounts")
    try:
        started = {
            name: lifecycle.start_embedded_aws(state_dir=folder / name, account=account)
            for name, account in ACCOUNTS.items()
        }
        with ThreadPoolExecutor() as pool:
            for ended in pool.map(partial(bootstrapped, folder), started.values()):
                assert ended.exit_code == 0, ended.output
        yield {name: EmbeddedAws(local) for name, local in started.items()}
    finally:
        for name in ACCOUNTS:
            lifecycle.stop_embedded_aws(folder / name)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    folder = tmp_path_factory.mktemp("team")
    team = Team(folder / "origin.git", folder / "work")
    answers = Answers(
        name="endpoints",
        ci="github",
        targets=new_targets(ACCOUNTS, "us-east-1"),
        source=REPOSITORY,
        owner="@acme/platform",
    )
    write_repository(team.work, answers)
    prod = team.work / "environments" / "prod.yaml"
    prod.write_text(f"{prod.read_text(encoding='utf-8')}\naudit: {{mode: compliance, years: 1}}\n", encoding="utf-8")
    git = shutil.which("git") or "git"
    subprocess.run([git, "init", "--quiet", "--bare", "--initial-branch=main", team.origin], check=True)
    team.git("init", "--quiet", "--initial-branch=main")
    team.git("remote", "add", "origin", str(team.origin))
    link_installed(team.work)
    return team


@pytest.fixture(scope="module")
def roles(team: Team, clouds: dict[str, EmbeddedAws]) -> None:
    """Make the roles of the workflows in each account, as the repository's README says."""
    template = (team.work / "bootstrap" / "roles.yaml").read_text(encoding="utf-8")
    for name, cloud in clouds.items():
        given = {"Environment": name, "Enabled": "true", "ProviderArn": provider_arn(cloud.local.account)}
        cloudformation = cloud.client("cloudformation")
        cloudformation.create_stack(
            StackName=f"roles-{name}",
            TemplateBody=template,
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName=f"roles-{name}", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """Return the environments for which people were asked."""
    return []


@pytest.fixture(scope="module")
def runner(
    team: Team,
    clouds: dict[str, EmbeddedAws],
    variables: dict[str, str],
    asked: list[str],
    roles: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Runner:
    def approve(name: str) -> bool:
        if not asked:
            assert clouds["dev"].stack("seatrial-dev-chat").output("Verdict") == "pass"
            assert stacks(clouds[name]) == ["CDKToolkit", f"roles-{name}"]
        asked.append(name)
        return True

    return Runner(
        origin=team.origin,
        scratch=tmp_path_factory.mktemp("runner"),
        repository=REPOSITORY,
        variables=variables,
        accounts={cloud.local.account: variables_of(cloud.local) for cloud in clouds.values()},
        approve=approve,
        protected=frozenset({"prod"}),
    )


@pytest.fixture(scope="module")
def merged(team: Team, runner: Runner) -> dict[str, str]:
    """Merge the first endpoint and deploy it everywhere; return the digests of its plans."""
    wrong = team.work / "endpoints" / "talk.yaml"
    wrong.write_text("name: 5\n", encoding="utf-8")
    digests = team.merge("Add chat, and talk, which is wrong and stops no other", slo=ALLOWED)
    ran = runner.run("deploy")
    assert ran.jobs == {"deploy-dev": "failure", "deploy-prod": "success"}, ran.output
    assert "1 of 2 endpoints of dev deployed; failed: talk\n" in ran.output
    wrong.unlink()
    return digests


def stacks(cloud: EmbeddedAws) -> list[str]:
    described = cloud.client("cloudformation").describe_stacks()["Stacks"]
    return sorted(stack["StackName"] for stack in described)


def test_a_merge_is_tried_in_dev_approved_and_deployed_to_prod(
    clouds: dict[str, EmbeddedAws], merged: dict[str, str], asked: list[str]
) -> None:
    assert asked == ["prod"]
    for name, cloud in clouds.items():
        assert stacks(cloud) == ["CDKToolkit", f"roles-{name}", f"seatrial-{name}-chat", f"seatrial-{name}-trials"]
        stack = cloud.stack(f"seatrial-{name}-chat")
        assert (stack.output("Verdict"), stack.output("PlanDigest")) == ("pass", merged[name])
        assert f":{ACCOUNTS[name]}:" in cloud.live(stack.output("InferenceComponentName")).component_arn


def test_an_auditor_reads_what_serves_in_prod_and_on_which_trial(
    clouds: dict[str, EmbeddedAws], team: Team, merged: dict[str, str]
) -> None:
    words = ("seatrial", "audit", "chat", "-e", "prod", "--format", "json")
    told = team.run(*words, cloud=clouds["prod"])
    (record,) = json.loads(told.output[told.output.index("{") :])["records"]
    stack = clouds["prod"].stack("seatrial-prod-chat")
    assert (told.exit_code, record["signature"], record["change"], record["to"]) == (0, "verified", "create", None)
    assert (record["plan_digest"], record["verdict"]) == (merged["prod"], "pass")
    assert record["result_uri"] == stack.output("TrialResultUri")
    assert f":{ACCOUNTS['prod']}:stack/seatrial-prod-chat/" in record["stack_id"]
    assert record["result_signature"]


def test_a_live_endpoint_is_tried_as_a_candidate_that_is_deleted(
    clouds: dict[str, EmbeddedAws], team: Team, merged: dict[str, str]
) -> None:
    cloud = clouds["dev"]
    stack = cloud.stack("seatrial-dev-chat")
    started = team.run("seatrial", "trial", "start", "chat", "-e", "dev", "--id", "first", cloud=cloud)
    watched = team.run("seatrial", "trial", "watch", "chat", "-e", "dev", cloud=cloud)
    assert (started.exit_code, watched.exit_code) == (0, 0), started.output + watched.output
    kept = cloud.client("s3").get_object(
        Bucket=stack.output("ResultsBucket"), Key="trials/dev-chat/scheduled/scheduled-first.json"
    )
    result = json.load(kept["Body"])
    assert (result["verdict"]["status"], result["request"]["plan_digest"]) == ("pass", merged["dev"])
    components = cloud.client("sagemaker").list_inference_components()["InferenceComponents"]
    assert [each["InferenceComponentName"] for each in components] == [stack.output("InferenceComponentName")]


def test_a_hand_edit_of_the_live_endpoint_is_drift(
    clouds: dict[str, EmbeddedAws], team: Team, merged: dict[str, str]
) -> None:
    cloud = clouds["dev"]
    sagemaker, name = cloud.client("sagemaker"), cloud.stack("seatrial-dev-chat").output("InferenceComponentName")
    assert drift(team, cloud) == []
    before = sagemaker.describe_inference_component(InferenceComponentName=name)["Specification"]
    needed = before["ComputeResourceRequirements"]
    more = needed["MinMemoryRequiredInMb"] + 1024
    edit(sagemaker, name, before, {**needed, "MinMemoryRequiredInMb": more})
    assert drift(team, cloud) == [("memory per copy (MiB)", f"{more}")]
    edit(sagemaker, name, before, needed)


def edit(
    sagemaker: SageMakerClient,
    component: str,
    before: InferenceComponentSpecificationSummaryTypeDef,
    needed: InferenceComponentComputeResourceRequirementsTypeDef,
) -> None:
    """Give the copies of a component other resources, as by hand."""
    specification: InferenceComponentSpecificationTypeDef = {
        "ModelName": before["ModelName"],
        "StartupParameters": before["StartupParameters"],
        "ComputeResourceRequirements": needed,
    }
    sagemaker.update_inference_component(InferenceComponentName=component, Specification=specification)
    deadline = time.monotonic() + LONGEST_EDIT_S
    while (
        sagemaker.describe_inference_component(InferenceComponentName=component)["InferenceComponentStatus"]
        != "InService"
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def drift(team: Team, cloud: EmbeddedAws) -> list[tuple[str, str]]:
    """Return in what chat in dev is not as locked; its trials on a machine under load may differ."""
    told = team.run("seatrial", "drift", "-e", "dev", "--format", "json", cloud=cloud, role="seatrial-dev-read")
    (chat,) = json.loads(told.output)["endpoints"]
    assert chat["not_asked"] == []
    assert told.exit_code == (1 if any(each["severity"] != "note" for each in chat["findings"]) else 0)
    changed = [each for each in chat["findings"] if each["rule"] == "SEA432"]
    return [(each["field"], each["message"].partition(",")[0]) for each in changed]


def test_prod_stays_as_deployed_until_its_plan_is_promoted_from_the_trial_in_dev(
    clouds: dict[str, EmbeddedAws], team: Team, merged: dict[str, str]
) -> None:
    environment = team.work / "environments" / "prod.yaml"
    text = environment.read_text(encoding="utf-8")
    required = "source: dev\n  required: true\n  accept_simulated: true"
    environment.write_text(text.replace("source: dev", required), encoding="utf-8")
    shown = team.run("seatrial", "keys", "-e", "dev", "--write", cloud=clouds["dev"])
    assert (shown.exit_code, "environments/prod.yaml: added" in shown.output) == (0, True), shown.output
    waiting = team.run("cdk", "ls", "--context", "environment=prod", "--no-notices", cloud=clouds["prod"])
    assert (waiting.exit_code, "left as deployed until promoted: chat" in waiting.output) == (0, True), waiting.output
    assert [line for line in waiting.output.splitlines() if line.startswith("seatrial-")] == ["seatrial-prod-trials"]

    words = ("chat", "--to", "prod", "--write")
    promoted = team.run("seatrial", "promote", *words, cloud=clouds["dev"], role="seatrial-dev-read")
    assert promoted.exit_code == 0, promoted.output
    locks = json.loads((team.work / "endpoints" / "chat.lock.json").read_text(encoding="utf-8"))
    tried = clouds["dev"].stack("seatrial-dev-chat")
    provenance = locks["environments"]["prod"]["promoted"]
    assert (provenance["source"], provenance["verdict"]) == ("dev", "pass")
    assert (provenance["plan_digest"], provenance["result_uri"]) == (merged["dev"], tried.output("TrialResultUri"))
    checked = team.run("make", "plan-check", cloud=clouds["prod"])
    assert (checked.exit_code, "awaiting" in checked.output) == (0, False), checked.output
    deployed = team.run("cdk", "ls", "--context", "environment=prod", "--no-notices", cloud=clouds["prod"])
    assert "seatrial-prod-chat" in deployed.output.splitlines(), deployed.output

    signed = json.loads(locks["evidence"]["prod"])
    assert signed["seal"]["actor"].startswith(
        f"arn:aws:states:us-east-1:{ACCOUNTS['dev']}:execution:seatrial-dev-trials:"
    )
    made_up = (
        clouds["dev"]
        .client("s3")
        .get_object(
            Bucket=tried.output("ResultsBucket"),
            Key=tried.output("TrialResultUri").partition("//")[2].partition("/")[2],
        )["Body"]
        .read()
    )
    (team.work / "made-up.json").write_bytes(made_up.replace(b'"duration_s":', b'"duration_s":1'))
    forged = team.run("seatrial", "promote", *words, "--result", "made-up.json", cloud=clouds["prod"])
    (team.work / "made-up.json").unlink()
    assert (forged.exit_code, "SEA581" in forged.output) == (2, True), forged.output


def test_a_merge_that_fails_its_trial_in_dev_never_reaches_prod(
    clouds: dict[str, EmbeddedAws], team: Team, runner: Runner, merged: dict[str, str], asked: list[str]
) -> None:
    stack = clouds["prod"].stack("seatrial-prod-chat")
    before, deployed = clouds["prod"].live(stack.output("InferenceComponentName")), stack.output("PlanDigest")
    digests = team.merge("Ask for too much", slo=IMPOSSIBLE)
    ran = runner.run("deploy")
    assert (ran.jobs, ran.failed_step) == ({"deploy-dev": "failure", "deploy-prod": "success"}, "Deploy and try")
    assert digests["prod"] not in {deployed, merged["prod"]}
    assert asked == ["prod", "prod"]
    assert clouds["prod"].stack("seatrial-prod-chat").output("PlanDigest") == deployed
    assert clouds["prod"].live(stack.output("InferenceComponentName")) == before
    assert clouds["dev"].stack("seatrial-dev-chat").status == "UPDATE_ROLLBACK_COMPLETE"


def test_a_broken_guard_rail_is_stopped_at_the_pull_request(team: Team, runner: Runner, merged: dict[str, str]) -> None:
    spec = yaml.safe_load((team.work / "endpoints" / "chat.yaml").read_text(encoding="utf-8"))
    spec["scaling"] = {"min_copies": 1, "max_copies": 50}
    (team.work / "endpoints" / "chat.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    team.push("Ask for 50 copies", "more-copies")
    ran = runner.run("pull-request", "more-copies")
    assert (ran.jobs["check"], ran.failed_step) == ("failure", "Validate")
    assert "SEA111" in ran.output


@pytest.mark.parametrize(
    ("role", "subject"),
    [
        ("seatrial-prod-deploy", f"repo:{REPOSITORY}:environment:dev"),
        ("seatrial-prod-deploy", f"repo:{REPOSITORY}:ref:refs/heads/main"),
        ("seatrial-prod-deploy", "repo:acme/other:environment:prod"),
        ("seatrial-prod-read", f"repo:{REPOSITORY}:pull_request"),
    ],
)
def test_another_job_cannot_assume_a_role(clouds: dict[str, EmbeddedAws], roles: None, role: str, subject: str) -> None:
    root = variables_of(clouds["prod"].local)
    with pytest.raises(ClientError, match="Not authorized to perform sts:AssumeRoleWithWebIdentity"):
        assumed(root, f"arn:aws:iam::{ACCOUNTS['prod']}:role/{role}", subject)


def test_no_job_reads_the_token_of_a_hub(clouds: dict[str, EmbeddedAws], merged: dict[str, str]) -> None:
    """N10: a model's environment may hold it, so no role of the workflows describes a model."""
    cloud = clouds["dev"]
    model = cloud.client("sagemaker").list_models()["Models"][0]["ModelName"]
    root = variables_of(cloud.local)
    subjects = {"read": f"repo:{REPOSITORY}:ref:refs/heads/main", "deploy": f"repo:{REPOSITORY}:environment:dev"}
    for role, subject in subjects.items():
        env = assumed(root, f"arn:aws:iam::{ACCOUNTS['dev']}:role/seatrial-dev-{role}", subject)
        session = boto3.Session(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"])
        sagemaker = session.client("sagemaker", region_name=env["AWS_REGION"], endpoint_url=env["AWS_ENDPOINT_URL"])
        with pytest.raises(ClientError, match="is not authorized to perform: sagemaker:DescribeModel"):
            sagemaker.describe_model(ModelName=model)
