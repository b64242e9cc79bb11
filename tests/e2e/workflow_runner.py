"""Runs a workflow of GitHub Actions on this machine: its `run` steps as they are, job by job, in the order of `needs`.

What a step `uses` is replaced:

    actions/checkout                        a clone of the branch
    actions/setup-python                    this Python with what is installed in it, as `make install` leaves it
    aws-actions/configure-aws-credentials   a session of the role that the job's OIDC token may assume
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, TypedDict

import yaml

from tests.e2e.web_identity import assumed
from tests.tools import BIN, ROOT, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

REPLACED = ("actions/checkout", "actions/setup-python", "aws-actions/configure-aws-credentials")
_ROLE = re.compile(r"arn:aws:iam::([0-9]{12}):role/.+")


_OUTPUT = re.compile(r"\$\{\{ needs\.[a-z-]+\.outputs\.([a-z]+) \}\}")
_INPUT = re.compile(r"\$\{\{ inputs\.\w+(?: \|\| '(\w+)')? \}\}")


Step = TypedDict(
    "Step",
    {"name": str, "uses": str, "run": str, "with": "dict[str, str]", "if": str, "env": "dict[str, str]"},
    total=False,
)
Job = TypedDict("Job", {"needs": str, "environment": str, "steps": list[Step], "if": str}, total=False)
"""A job of a workflow."""


class Workflow(TypedDict):
    """A workflow."""

    jobs: dict[str, Job]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a workflow ended.

    Attributes:
        jobs: The conclusion of each job: `success`, `failure`, `rejected` by people, or `skipped` after such a job.
        failed_step: The step that failed; empty when none did.
        output: What the steps wrote.
    """

    jobs: dict[str, str]
    failed_step: str
    output: str


@dataclass(slots=True)
class Runner:
    """A runner for one repository.

    Attributes:
        origin: The repository that is cloned.
        scratch: Where it is cloned to: a folder per job.
        variables: The environment of a step before credentials are configured.
        repository: Its name on GitHub, as `acme/endpoints`.
        accounts: The variables of the root of each account's embedded AWS.
        approve: Asked before a job of a protected environment.
        protected: Those environments.
    """

    origin: Path
    scratch: Path
    repository: str
    variables: Mapping[str, str]
    accounts: Mapping[str, Mapping[str, str]]
    approve: Callable[[str], bool]
    protected: frozenset[str]
    _turn: int = field(default=0, init=False)

    def run(self, workflow: str, branch: str = "main") -> Ran:
        """Run a workflow of a branch."""
        self._turn += 1
        content = _git("show", f"{branch}:.github/workflows/{workflow}.yml", folder=self.origin)
        jobs = _read(content)["jobs"]
        needs = {name: {job["needs"]} if "needs" in job else set[str]() for name, job in jobs.items()}
        ended, failed, output = dict[str, str](), "", ""
        outputs: dict[str, dict[str, str]] = {"": {}}
        for name in TopologicalSorter(needs).static_order():
            environment = jobs[name].get("environment", "")
            given = outputs[jobs[name].get("needs", "")]
            outputs[name] = {}
            # Of conditions only that of a deployment is known; any other job is skipped after one that failed.
            asks = "outputs.ended" in jobs[name].get("if", "")
            if "ended" not in given if asks else any(ended[needed] != "success" for needed in needs[name]):
                ended[name] = "skipped"
            elif environment in self.protected and not self.approve(environment):
                ended[name] = "rejected"
            else:
                folder = self.scratch / f"{self._turn}-{name}"
                step, text = self._job(jobs[name], folder, branch, given)
                output += text
                if (written := folder.with_suffix(".output")).is_file():
                    outputs[name] = dict(
                        line.split("=", 1) for line in written.read_text(encoding="utf-8").splitlines()
                    )
                failed = failed or step
                ended[name] = "failure" if step else "success"
        return Ran(ended, failed, output)

    def _job(self, job: Job, folder: Path, branch: str, given: Mapping[str, str]) -> tuple[str, str]:
        """Run one job; return the name of the step that failed, if one did, and the output of all.

        Args:
            given: The outputs of the job that it needs.
        """
        variables, output, failed = self.variables, "", ""
        for step in job["steps"]:
            condition = step.get("if", "")
            action = step.get("uses", "").partition("@")[0]
            if condition.startswith("failure()") or (failed and (action or "!cancelled()" not in condition)):
                continue
            if action:
                assert action in REPLACED, action
                variables = self._replaced(action, step, folder, branch, job.get("environment", "")) or variables
                continue
            own = {
                name: _INPUT.sub(lambda match: match[1] or "", _OUTPUT.sub(lambda match: given.get(match[1], ""), text))
                for name, text in step.get("env", {}).items()
            }
            own["GITHUB_OUTPUT"] = str(folder.with_suffix(".output"))
            ended = run_to_end("bash", "-eo", "pipefail", "-c", step["run"], folder=folder, env={**variables, **own})
            output += ended.output
            if ended.exit_code:
                failed = failed or step["name"]
        return failed, output

    def _replaced(
        self, action: str, step: Step, folder: Path, branch: str, environment: str
    ) -> Mapping[str, str] | None:
        """Do what an action would; return the variables of the steps after it, if it sets any."""
        if action == "actions/checkout":
            _git("clone", "--quiet", "--branch", branch, str(self.origin), str(folder), folder=self.origin)
        elif action == "actions/setup-python":
            link_installed(folder)
        else:
            role = _ROLE.fullmatch(step["with"]["role-to-assume"])
            assert role is not None, step
            of_branch = f"ref:refs/heads/{branch}"
            subject = f"repo:{self.repository}:{f'environment:{environment}' if environment else of_branch}"
            return assumed(self.accounts[role[1]], role[0], subject)
        return None


def _read(text: str) -> Workflow:
    workflow: Workflow = yaml.safe_load(text)
    return workflow


def link_installed(folder: Path) -> None:
    """Put what `make install` would make into a clone: links to what is installed here."""
    (folder / ".venv").mkdir()
    for path in BIN.parent.iterdir():
        if not path.name.startswith(".seatrial"):
            (folder / ".venv" / path.name).symlink_to(path)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    (folder / ".venv" / ".installed").touch()


def _git(*arguments: str, folder: Path) -> str:
    git = shutil.which("git") or "git"
    found = subprocess.run([git, *arguments], cwd=folder, capture_output=True, text=True, check=True, env=os.environ)
    return found.stdout
