"""The target of the suite: an embedded AWS of its own, or the account of `make test-aws`, which sets the variables."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import boto3
import pytest
import yaml

from seatrial_laptop import lifecycle
from tests.acceptance.account.lifeline import LIFELINE, end_with
from tests.acceptance.account.removal import RUN_TAG
from tests.acceptance.endpoint import Endpoint
from tests.acceptance.target import Target
from tests.acceptance.transcript.lines import RunLine
from tests.acceptance.transcript.masks import ACCOUNT
from tests.acceptance.transcript.recorder import Recorder
from tests.environment import environment
from tests.tools import BIN, JSII_CACHE, ROOT, Ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_laptop.state import LocalAws
    from tests.command_line import CommandLine

ENVIRONMENT_OF_ACCOUNT: Final = "SEATRIAL_ACCEPTANCE_ENVIRONMENT"
"""Path of the environment file of an account; without it the suite runs on the embedded AWS."""
TRANSCRIPT: Final = "SEATRIAL_ACCEPTANCE_TRANSCRIPT"
PATIENCE_S: Final = {True: 180.0, False: 3_600.0}
LOOK_S: Final = {True: 0.2, False: 15.0}
LOOKS: Final = "SEATRIAL_ACCEPTANCE_LOOK_S"
"""Seconds between two looks at an account; an embedded AWS that stands for one changes too fast for 15."""
HERE: Final = Path(__file__).parent
CASE: Final = pytest.StashKey[str]()
RECORDER: Final = pytest.StashKey[Recorder]()


FIRST_TO_LAST: Final = (
    "test_questions",
    "test_endpoint",
    "test_removal",
    "test_product",
    "test_adapters",
    "test_doze",
    "test_transcript",
)
"""What an hour in an account is to answer comes first; the endpoint of three copies is gone before the others run."""


def pytest_sessionstart() -> None:
    """Let the suite end with the process that watches what it spends."""
    if LIFELINE in os.environ:
        end_with(int(os.environ.pop(LIFELINE)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of the suite in their order, where they stand among others."""
    places = [index for index, item in enumerate(items) if item.path.parent == HERE and item.path.stem in FIRST_TO_LAST]
    ours = sorted((items[index] for index in places), key=lambda item: FIRST_TO_LAST.index(item.path.stem))
    for index, item in zip(places, ours, strict=True):
        items[index] = item


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell the transcript which case asks, from its fixtures on."""
    item.config.stash[CASE] = f"{item.path.stem}.{item.name}"
    if RECORDER in item.config.stash:
        item.config.stash[RECORDER].case = item.config.stash[CASE]


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalAws, Path] | None]:
    """Start an embedded AWS, unless there is an account."""
    if ENVIRONMENT_OF_ACCOUNT in os.environ:
        yield None
        return
    state = tmp_path_factory.mktemp("acceptance-aws")
    try:
        with environment(alone(tmp_path_factory)):
            local = lifecycle.start_embedded_aws(state_dir=state)
        yield local, state
    finally:
        lifecycle.stop_embedded_aws(state)


def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an empty home and cache: no profile and no credentials are found; jsii keeps its unpacked packages."""
    return {
        **JSII_CACHE,
        "HOME": str(tmp_path_factory.mktemp("home")),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }


@pytest.fixture(scope="session")
def variables(embedded: tuple[LocalAws, Path] | None, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the variables of the tools: those that lead to the embedded AWS alone, or the caller's."""
    if embedded is None:
        return {**os.environ, "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]])}
    with environment(alone(tmp_path_factory)):
        return {**lifecycle.child_variables(embedded[0]), "CDK_VALIDATION": "false"}


@pytest.fixture(scope="session")
def recorder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Return what writes the transcript."""
    file = os.environ.get(TRANSCRIPT) or str(tmp_path_factory.mktemp("transcript") / "transcript.jsonl")
    made = Recorder(Path(file), case=pytestconfig.stash.get(CASE, ""))
    pytestconfig.stash[RECORDER] = made
    return made


@pytest.fixture(scope="session")
def target(
    embedded: tuple[LocalAws, Path] | None,
    variables: Mapping[str, str],
    recorder: Recorder,
    command_line: CommandLine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Target:
    """Return what the suite runs against; the embedded AWS is bootstrapped, as an account is before."""
    folder = tmp_path_factory.mktemp("acceptance")
    file = Path(os.environ.get(ENVIRONMENT_OF_ACCOUNT, ROOT / "environments" / "local.yaml"))
    (folder / "environments").mkdir()
    shutil.copy(ROOT / "cdk.json", folder)  # its feature flags are those of published products
    shutil.copy(file, folder / "environments" / file.name)
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    with environment({name: value for name, value in variables.items() if name.startswith(("AWS_", "CDK_"))}):
        session = boto3.Session(region_name=written["region"])
        session.get_credentials()  # found now, while the variables are set

    def seatrial(*words: str, folder: Path, variables: Mapping[str, str]) -> Ended:
        done = command_line.run(*words, folder=folder, variables=variables)
        return Ended(done.returncode, done.stdout or done.stderr)

    made = Target(
        environment=written["name"],
        region=written["region"],
        folder=folder,
        variables=variables,
        session=session,
        endpoint_url=variables.get("AWS_ENDPOINT_URL"),
        recorder=recorder,
        seatrial_command=seatrial,
        state=embedded[1] if embedded else None,
        patience_s=PATIENCE_S[embedded is not None],
        look_s=float(os.environ.get(LOOKS, LOOK_S[embedded is not None])),
        run_id=written.get("tags", {}).get(RUN_TAG, ""),
    )
    recorder.begin(run_line(made))
    recorder.watch(session.events)
    recorder.hidden = {made.client("sts").get_caller_identity()["Account"]: ACCOUNT}
    if embedded:
        nothing_to_synthesize = tmp_path_factory.mktemp("bootstrap")
        ended = made.cdk("bootstrap", f"aws://{embedded[0].account}/{made.region}", folder=nothing_to_synthesize)
        assert ended.exit_code == 0, ended.last_lines
    return made


def run_line(target: Target) -> RunLine:
    return RunLine(
        target="embedded" if target.is_embedded else "account",
        environment=target.environment,
        region=target.region,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={name: metadata.version(name) for name in ("seatrial", "boto3", "aws-cdk-lib")},
    )


@pytest.fixture(scope="session")
def chat(target: Target) -> Endpoint:
    """Deploy the endpoint that the suite shares, with the trial service of its environment."""
    endpoint = Endpoint(target, "chat")
    ended = endpoint.deploy()
    assert ended.exit_code == 0, ended.last_lines
    return endpoint
