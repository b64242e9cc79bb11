"""`make test-aws` against an embedded AWS as if it were an account: what it refuses, how it ends, and what it leaves.

The embedded AWS is reached by the variables that lead to it, as an account by its credentials.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from seatrial_base.errors import SpecError
from seatrial_laptop import lifecycle
from tests.acceptance.account.removal import left, remove, runs_stacks
from tests.acceptance.account.run import (
    Account,
    Options,
    Stop,
    Surroundings,
    clean,
    expiring_credentials,
    run,
    signals_stop,
)
from tests.environment import environment
from tests.tools import JSII_CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.account.removal import Clients
    from tests.command_line import CommandLine

ROOT: Final = Path(__file__).parents[2]
PLACE: Final = "name: sandbox\nregion: us-east-1\nremoval: destroy\ntags: {team: platform}\n"
TEMPLATE: Final = '{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}'
LONGEST_S: Final = 300.0

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """Start an embedded AWS under another account's ID, let this process reach it alone, and return its clients."""
    state = tmp_path_factory.mktemp("account")
    home = JSII_CACHE | {name: str(tmp_path_factory.mktemp(name.lower())) for name in ("HOME", "XDG_CACHE_HOME")}
    try:
        with environment(home):
            local = lifecycle.start_embedded_aws(state_dir=state, account="123456789012")
            with environment({**lifecycle.environment(local), **home, "CDK_VALIDATION": "false"}):
                yield Account("us-east-1")
    finally:
        lifecycle.stop_embedded_aws(state)


@pytest.fixture(scope="module")
def bootstrapped(account: Clients, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    """Bootstrap it with the CDK, as a user does before."""
    command = [str(Path(sys.executable).with_name("cdk")), "bootstrap", "aws://123456789012/us-east-1", "--no-notices"]
    subprocess.run(command, cwd=tmp_path_factory.mktemp("bootstrap"), check=True, capture_output=True)
    return account


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "sandbox.yaml").write_text(PLACE)
    return Options(environment="sandbox", environments=tmp_path / "environments", yes=True, folder=tmp_path / "runs")


def make(account: Clients, name: str, run_id: str | None) -> None:
    tags = [{"Key": "seatrial:environment", "Value": "sandbox"}]
    tags += [{"Key": "seatrial-acceptance", "Value": run_id}] if run_id else []
    account("cloudformation").create_stack(StackName=name, TemplateBody=TEMPLATE, Tags=tags)
    account("cloudformation").get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


@pytest.fixture
def around(command_line: CommandLine, tmp_path: Path) -> Surroundings:
    """Return what a run takes from outside, with the commands in forks."""
    return Surroundings(seatrial=lambda *words: command_line.run(*words, folder=tmp_path))


def refusals(options: Options, around: Surroundings) -> list[str]:
    with pytest.raises(SpecError) as refused:
        run(options, around)
    assert {each.rule for each in refused.value.problems} == {"SEA629"}
    return [each.message for each in refused.value.problems]


def test_a_missing_environment_is_told_with_a_way_out(options: Options, around: Surroundings) -> None:
    (options.environments / "sandbox.yaml").unlink()
    assert refusals(options, around) == ["No such file or directory"]


def test_every_reason_against_an_environment_is_told_at_once(
    account: Clients, options: Options, around: Surroundings
) -> None:
    file = options.environments / "sandbox.yaml"
    file.write_text(PLACE.replace("destroy", "retain") + 'account: "210987654321"\n')
    make(account, "seatrial-sandbox-chat", "e1e2e3e4")
    try:
        told = refusals(options, replace(around, price_of=lambda _: 100.0))
    finally:
        assert remove(account, "sandbox", "e1e2e3e4", longest_s=LONGEST_S, tell=lambda _: None, look_s=0.2) == []
    assert [each.split(":")[0] for each in told if "USD" not in each][:3] == [
        "removal is not destroy",
        "the credentials are those of another account",
        "it is in use",
    ]
    assert any("USD are expected, the budget is 15.00" in each for each in told)
    assert len(told) > len(["removal", "credentials", "in use", "price"]), "what preflight finds missing is told too"


@pytest.mark.parametrize(
    ("hours", "refused"),
    [(None, "AWS_CREDENTIAL_EXPIRATION does not say until when"), (1.0, "the credentials expire in 1.0 h"), (12.0, "")],
)
def test_credentials_that_end_before_the_removal_are_refused(
    monkeypatch: pytest.MonkeyPatch, hours: float | None, refused: str
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    if hours is not None:
        expires = datetime.now(UTC) + timedelta(hours=hours)
        monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", expires.isoformat(timespec="seconds"))
    assert [refused in message for message, _ in expiring_credentials()] == ([True] if refused else [])


def test_who_says_no_gets_the_price_and_nothing_else(
    bootstrapped: Clients, options: Options, around: Surroundings
) -> None:
    shown: list[str] = []
    asking = Options(environment="sandbox", environments=options.environments, folder=options.folder)
    assert run(asking, replace(around, ask=lambda _: "no", tell=shown.append)) == 1
    assert shown[0].startswith("ml.g4dn.xlarge at 0.7364 USD per hour")
    assert shown[-1] == "nothing was done"
    assert not options.folder.exists()


def test_the_removal_finds_a_run_by_its_tag_and_leaves_others(account: Clients) -> None:
    make(account, "seatrial-sandbox-one", "aaaa")
    make(account, "seatrial-sandbox-two", "bbbb")
    make(account, "somebody-elses", None)
    told: list[str] = []
    assert remove(account, "sandbox", "aaaa", longest_s=LONGEST_S, tell=told.append, look_s=0.2) == []
    assert told == ["removing seatrial-sandbox-one (CREATE_COMPLETE)"]
    assert [each.name for each in runs_stacks(account, "sandbox", None)] == ["seatrial-sandbox-two"]
    assert left(account, "sandbox", "bbbb")[0] == "stack seatrial-sandbox-two (CREATE_COMPLETE)"
    assert remove(account, "sandbox", None, longest_s=LONGEST_S, tell=told.append, look_s=0.2) == []
    account("cloudformation").describe_stacks(StackName="somebody-elses")


def test_users_and_roles_of_a_run_go_too(account: Clients, options: Options) -> None:
    iam, path = account("iam"), "/seatrial-acceptance/"
    iam.create_user(UserName="team-search-aaaa", Path=path)
    iam.create_access_key(UserName="team-search-aaaa")
    iam.create_user(UserName="other")
    trust = '{"Version": "2012-10-17", "Statement": []}'
    iam.create_role(RoleName="seatrial-acceptance-sandbox", Path=path, AssumeRolePolicyDocument=trust)
    assert clean("sandbox", "aaaa", environments=options.environments) == 0
    assert [user["UserName"] for user in iam.list_users()["Users"]] == ["other"]
    assert iam.list_roles(PathPrefix=path)["Roles"] == []


SUITE: Final = """
import sys
from pathlib import Path
from tests.acceptance.account import run as runner
from tests.acceptance.account.run import Options, Surroundings, run

class Rising:
    # cheap while the run is priced, dear once an instance runs
    asked = 0
    def __call__(self, instance_type):
        self.asked += 1
        return float(sys.argv[3]) if self.asked > 1 else 0.1

options = Options(environment="sandbox", environments=Path(sys.argv[1]), yes=True, folder=Path(sys.argv[2]),
                  pytest=("-k", "absent_component"))
sys.exit(run(options, Surroundings(price_of=Rising(), look_s=0.5, tell=lambda line: print(line, flush=True))))
"""


def started(options: Options, usd_per_hour: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", SUITE, f"{options.environments}", f"{options.folder}", f"{usd_per_hour}"]
    path = os.pathsep.join([f"{ROOT}", *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.skipif("SEATRIAL_ALL_FAILURES" not in os.environ, reason="opt-in: make test-failures")
def test_what_would_exceed_the_budget_is_stopped_and_removed(bootstrapped: Clients, options: Options) -> None:
    process = started(options, 50_000.0)
    output, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1, output
    assert "stopped: the budget of 15.00 USD would be exceeded" in output
    assert [line for line in output.splitlines() if line.startswith("left: ")] == []
    assert "nothing is left" in output
    assert runs_stacks(bootstrapped, "sandbox", None) == []
    assert bootstrapped("sagemaker").list_endpoints()["Endpoints"] == []


def test_an_interrupted_run_removes_everything_and_its_transcript_has_no_account(
    bootstrapped: Clients, options: Options
) -> None:
    process = started(options, 0.1)
    deadline = time.monotonic() + LONGEST_S
    while not runs_stacks(bootstrapped, "sandbox", None):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 128 + signal.SIGINT, output
    assert "stopped: ended by SIGINT" in output
    assert [line for line in output.splitlines() if line.startswith("left: ")] == []
    assert "nothing is left" in output
    assert runs_stacks(bootstrapped, "sandbox", None) == []
    (transcript,) = options.folder.glob("*/transcript.jsonl")
    text = transcript.read_text(encoding="utf-8")
    assert '"target":"account"' in text
    assert "123456789012" not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_run_and_not_the_removal(number: signal.Signals) -> None:
    stop = Stop()
    others = signal.set_wakeup_fd(-1)  # of a command that ran in this process: it would end it after `PATIENCE_S`
    with signals_stop(stop):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    signal.set_wakeup_fd(others)
    assert (stop.because, stop.exit_code) == (f"ended by {number.name}", 128 + number)
