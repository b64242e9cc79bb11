"""A merge in a team's repository: tried in the account of dev, approved, then deployed to the account of prod."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.demo.embedded_aws import EmbeddedAws
from seatrial.local import lifecycle
from seatrial.plan.lock.lock_file import write_lock
from seatrial.plan.planner import make_plan
from seatrial.repository.answers import Answers, new_targets
from seatrial.repository.write import write_repository
from seatrial.spec.load import load_spec
from tests.e2e.conftest import BIN, plain_spec, run_to_end
from tests.e2e.workflow_runner import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Outcome

pytestmark = pytest.mark.e2e

ACCOUNTS = {"dev": "111111111111", "prod": "222222222222"}
ALLOWED = {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}}
IMPOSSIBLE = {"ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 5_000}}
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

    def git(self, *arguments: str) -> None:
        git = shutil.which("git") or "git"
        author = ("-c", "user.name=team", "-c", "user.email=team@example.com")
        subprocess.run([git, *author, *arguments], cwd=self.work, check=True, capture_output=True)


def bootstrapped(folder: Path, local: lifecycle.LocalAws) -> Outcome:
    where = f"aws://{local.account}/{local.region}"
    env = lifecycle.child_variables(local)
    return run_to_end(BIN / "cdk", "bootstrap", where, "--no-notices", folder=folder, env=env)


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory, no_account: None) -> Iterator[dict[str, EmbeddedAws]]:
    """Start an embedded AWS for each account, and bootstrap it."""
    folder = tmp_path_factory.mktemp("accounts")
    try:
        started = {name: lifecycle.up(state_dir=folder / name, account=account) for name, account in ACCOUNTS.items()}
        with ThreadPoolExecutor() as pool:
            for ended in pool.map(partial(bootstrapped, folder), started.values()):
                assert ended.exit_code == 0, ended.output
        yield {name: EmbeddedAws(local, local.region) for name, local in started.items()}
    finally:
        for name in ACCOUNTS:
            lifecycle.down(folder / name)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    folder = tmp_path_factory.mktemp("team")
    team = Team(folder / "origin.git", folder / "work")
    answers = Answers(
        name="endpoints",
        ci="github",
        targets=new_targets(ACCOUNTS, "us-east-1"),
        source="acme/endpoints",
        owner="@acme/platform",
    )
    write_repository(team.work, answers)
    git = shutil.which("git") or "git"
    subprocess.run([git, "init", "--quiet", "--bare", "--initial-branch=main", team.origin], check=True)
    team.git("init", "--quiet", "--initial-branch=main")
    team.git("remote", "add", "origin", str(team.origin))
    return team


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
    tmp_path_factory: pytest.TempPathFactory,
) -> Runner:
    def approve(name: str) -> bool:
        assert clouds["dev"].stack("seatrial-dev-chat").output("Verdict") == "pass"
        assert stacks(clouds[name]) == ["CDKToolkit"]
        asked.append(name)
        return True

    return Runner(
        origin=team.origin,
        scratch=tmp_path_factory.mktemp("runner"),
        variables=variables,
        accounts={cloud.local.account: lifecycle.child_variables(cloud.local) for cloud in clouds.values()},
        approve=approve,
        protected=frozenset({"prod"}),
    )


@pytest.fixture(scope="module")
def merged(team: Team, runner: Runner) -> dict[str, str]:
    """Merge the first endpoint and deploy it everywhere; return the digests of its plans."""
    digests = team.merge("Add chat", slo=ALLOWED)
    ran = runner.run("deploy")
    assert ran.jobs == {"deploy-dev": "success", "deploy-prod": "success"}, ran.output
    return digests


def stacks(cloud: EmbeddedAws) -> list[str]:
    described = cloud.client("cloudformation").describe_stacks()["Stacks"]
    return sorted(stack["StackName"] for stack in described)


def test_a_merge_is_tried_in_dev_approved_and_deployed_to_prod(
    clouds: dict[str, EmbeddedAws], merged: dict[str, str], asked: list[str]
) -> None:
    assert asked == ["prod"]
    for name, cloud in clouds.items():
        assert stacks(cloud) == ["CDKToolkit", f"seatrial-{name}-chat", f"seatrial-{name}-trials"]
        stack = cloud.stack(f"seatrial-{name}-chat")
        assert (stack.output("Verdict"), stack.output("PlanDigest")) == ("pass", merged[name])
        assert f":{ACCOUNTS[name]}:" in cloud.live(stack.output("InferenceComponentName")).component_arn


def test_a_merge_that_fails_its_trial_in_dev_never_reaches_prod(
    clouds: dict[str, EmbeddedAws], team: Team, runner: Runner, merged: dict[str, str], asked: list[str]
) -> None:
    stack = clouds["prod"].stack("seatrial-prod-chat")
    before = clouds["prod"].live(stack.output("InferenceComponentName"))
    digests = team.merge("Ask for too much", slo=IMPOSSIBLE)
    ran = runner.run("deploy")
    assert (ran.jobs, ran.failed_step) == ({"deploy-dev": "failure", "deploy-prod": "skipped"}, "Deploy and try")
    assert digests["prod"] != merged["prod"]
    assert asked == ["prod"]
    assert clouds["prod"].stack("seatrial-prod-chat").output("PlanDigest") == merged["prod"]
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
