"""The real CDK CLI against one embedded AWS: started and bootstrapped once, stopped however the session ends.

No child inherits the environment of the session: its home is empty, so that no profile and no credentials are found.
The CDK's own check of templates takes half of a synthesis: `test_synth` makes it once, of every committed endpoint.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest
import yaml

from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_laptop import lifecycle
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from tests.checkout import copy_repository
from tests.environment import environment
from tests.tools import BIN, JSII_CACHE, ROOT, Ended, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial_laptop.state import LocalAws

    Processes = Callable[[Path], list[str]]

ENVIRONMENT = "local"
LONGEST_END_S = 120.0
LONGEST_REMOVAL_S = 300.0
NOT_CHECKED = {"CDK_VALIDATION": "false"}


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder of specs with their locks and one of environments, as a user would have them."""

    folder: Path

    @property
    def endpoints(self) -> Path:
        return self.folder / "endpoints"

    @property
    def environments(self) -> Path:
        return self.folder / "environments"

    def write(self, name: str, **changes: object) -> Plan:
        """Write a spec, with its top-level fields changed, and lock its plan even when it is to miss its SLO."""
        spec = self.endpoints / f"{name}.yaml"
        spec.write_text(yaml.safe_dump({**plain_spec(name), **changes}), encoding="utf-8")
        plan = make_plan(load_spec(spec, ENVIRONMENT, environments=self.environments), accept_slo_miss=True)
        write_lock(plan, spec)
        return plan

    def context(self, environment: str = ENVIRONMENT) -> dict[str, str | Path]:
        return {"environment": environment, "endpoints": self.endpoints, "environments": self.environments}

    def synth_arguments(self, environment: str = ENVIRONMENT) -> tuple[str, ...]:
        return tuple(word for name, value in self.context(environment).items() for word in ("-c", f"{name}={value}"))


class RunTool(Protocol):
    def __call__(self, *command: str | Path, folder: Path, env: Mapping[str, str]) -> Ended: ...


class RunCdk(Protocol):
    """Runs the CDK CLI in the repository, on the embedded AWS."""

    def __call__(self, *arguments: str | Path, folder: Path = ROOT) -> Ended: ...


def plain_spec(name: str) -> dict[str, object]:
    return {
        "name": name,
        "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True},
        "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 4},
        "slo": {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}},
        "serving": {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_model_len": 512, "max_num_seqs": 8}},
        "scaling": {"min_copies": 1, "max_copies": 2},
        "trial": {"mode": "off"},
    }


def variables_of(local: LocalAws) -> dict[str, str]:
    """Return the variables of a tool on an embedded AWS; the user's CDK_* are not among those of `child_variables`."""
    return {**lifecycle.child_variables(local), **NOT_CHECKED}


def make_workspace(folder: Path) -> Workspace:
    workspace = Workspace(folder)
    for path in (workspace.endpoints, workspace.environments):
        path.mkdir(parents=True)
    shutil.copy(ROOT / "environments" / f"{ENVIRONMENT}.yaml", workspace.environments)
    return workspace


@pytest.fixture(scope="session")
def account_free(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an empty home and a cache, which hold no profile and no credentials; jsii keeps its unpacked packages."""
    return {
        **NOT_CHECKED,
        **JSII_CACHE,
        "HOME": str(tmp_path_factory.mktemp("home")),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }


@pytest.fixture(autouse=True, scope="module")
def no_account(account_free: dict[str, str]) -> Iterator[None]:
    """Let a file's tests run as a user without an AWS account."""
    with environment(account_free):
        yield


@pytest.fixture(scope="session")
def variables(account_free: dict[str, str]) -> dict[str, str]:
    """Return the variables of a user without an AWS account."""
    with environment(account_free):
        return {**os.environ, "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]), "COLUMNS": "120"}


@pytest.fixture(scope="session")
def processes() -> Processes:
    """Return a function that tells the processes whose command line or environment names a folder."""
    ps = shutil.which("ps") or "/bin/ps"

    def of(folder: Path) -> list[str]:
        listing = subprocess.run([ps, "axeww", "-o", "pid=,command="], capture_output=True, text=True, check=True)
        return [line for line in listing.stdout.splitlines() if str(folder) in line]

    return of


@pytest.fixture(scope="session")
def left(processes: Processes) -> Processes:
    """Return a function that tells the processes of a folder that are still there when all should have ended."""

    def of(folder: Path) -> list[str]:
        deadline = time.monotonic() + LONGEST_END_S
        while (found := processes(folder)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    return of


@pytest.fixture(scope="session")
def run_tool() -> RunTool:
    return run_to_end


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aws")


@pytest.fixture(scope="session")
def cloud(state_dir: Path, account_free: dict[str, str]) -> Iterator[EmbeddedAws]:
    """Start an embedded AWS for the session."""
    try:
        with environment(account_free):
            local = lifecycle.start_embedded_aws(state_dir=state_dir)
        yield EmbeddedAws(local)
    finally:
        lifecycle.stop_embedded_aws(state_dir)


@pytest.fixture(scope="session")
def engines(state_dir: Path, processes: Processes) -> Callable[[], list[int]]:
    """Return a function that tells the process numbers of the engines of the session's embedded AWS."""
    return lambda: [int(line.split()[0]) for line in processes(state_dir) if "-m seatrial_laptop.engine" in line]


@pytest.fixture(scope="session")
def functions(state_dir: Path, processes: Processes) -> Callable[[], list[int]]:
    """Return a function that tells the process numbers of the functions of the session's embedded AWS."""
    return lambda: [int(line.split()[0]) for line in processes(state_dir) if "AWS_LAMBDA_FUNCTION_NAME=" in line]


@pytest.fixture(scope="session")
def cdk(cloud: EmbeddedAws, account_free: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> RunCdk:
    """Bootstrap the embedded AWS and return the way to run the CDK CLI on it."""
    with environment(account_free):
        env = variables_of(cloud.local)

    def run(*arguments: str | Path, folder: Path = ROOT) -> Ended:
        return run_to_end(BIN / "cdk", *arguments, "--no-notices", folder=folder, env=env)

    nothing_to_synthesize = tmp_path_factory.mktemp("bootstrap")
    ended = run("bootstrap", f"aws://{cloud.local.account}/{cloud.region}", folder=nothing_to_synthesize)
    assert ended.exit_code == 0, ended.output
    return run


@pytest.fixture(scope="session")
def remove_stacks(cloud: EmbeddedAws) -> Callable[[], None]:
    """Return a function that deletes what the tests of a file left: the endpoints, then the service of their trials."""
    client = cloud.client("cloudformation")

    def names() -> list[str]:
        every = (stack["StackName"] for stack in client.describe_stacks()["Stacks"])
        return [name for name in every if name.startswith(f"seatrial-{ENVIRONMENT}-")]

    def delete(doomed: list[str]) -> None:
        for name in doomed:
            client.delete_stack(StackName=name)
        deadline = time.monotonic() + LONGEST_REMOVAL_S
        while left := set(doomed) & set(names()):
            assert time.monotonic() < deadline, left
            time.sleep(0.2)

    def remove() -> None:
        delete([name for name in names() if not name.endswith(("-trials", "-optimizations"))])
        delete(names())

    return remove


@pytest.fixture(scope="session")
def synth(variables: dict[str, str]) -> RunCdk:
    """Return the way to synthesize without an AWS account, real or embedded."""

    def run(*arguments: str | Path, folder: Path = ROOT) -> Ended:
        return run_to_end(BIN / "cdk", "synth", "--quiet", *arguments, "--no-notices", folder=folder, env=variables)

    return run


@pytest.fixture(scope="session")
def new_workspace(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Workspace]:
    """Return the maker of workspaces without specs."""
    return lambda: make_workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def workspace(new_workspace: Callable[[], Workspace]) -> Workspace:
    return new_workspace()


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the repository's files."""
    return copy_repository(tmp_path_factory.mktemp("checkout"))
