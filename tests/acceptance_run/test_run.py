"""`make test-aws` against an embedded AWS as if it were an account: what it refuses, how it ends, and what it leaves.

The embedded AWS is reached by the variables that lead to it, as an account by its credentials.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError

from seatrial_base.catalog.resource_types import find_resource_schema
from seatrial_base.errors import SpecError
from seatrial_laptop import lifecycle
from seatrial_laptop.aws.rights import Right
from tests.acceptance.account import smoke as smoke_module
from tests.acceptance.account.price import longest_run_s
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
from tests.acceptance.account.smoke import PASSED, QUESTIONS, Place, place_of, row_of, smoke
from tests.environment import environment
from tests.launch_rights import allows
from tests.tools import JSII_CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.account.removal import Clients
    from tests.command_line import CommandLine

ROOT: Final = Path(__file__).parents[2]
PLACE: Final = "name: sandbox\nregion: us-east-1\nremoval: destroy\ntags: {team: platform}\n"
TEMPLATE: Final = '{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}'
LONGEST_S: Final = 300.0
EMPTY_ZIP: Final = b"PK\x05\x06" + bytes(18)

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
    assert [refused in message for message, _ in expiring_credentials(longest_run_s())] == ([True] if refused else [])


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
    role = iam.create_role(RoleName="seatrial-acceptance-sandbox", Path=path, AssumeRolePolicyDocument=trust)["Role"]
    function = {"FunctionName": "seatrial-acceptance-sandbox", "Runtime": "python3.12", "Handler": "index.handler"}
    account("lambda").create_function(**function, Role=role["Arn"], Code={"ZipFile": EMPTY_ZIP})
    make(account, "seatrial-sandbox-smoke-chat", None)
    assert clean("sandbox", "aaaa", environments=options.environments) == 0
    assert [user["UserName"] for user in iam.list_users()["Users"]] == ["other"]
    assert iam.list_roles(PathPrefix=path)["Roles"] == []
    assert account("lambda").list_functions()["Functions"] == []
    stacks = account("cloudformation").describe_stacks()["Stacks"]
    assert not [each for each in stacks if "-smoke-" in each["StackName"] and each["StackStatus"] == "CREATE_COMPLETE"]


@pytest.fixture
def place(bootstrapped: Clients, options: Options, around: Surroundings, tmp_path: Path) -> Place:
    """Return where the questions are asked that need no endpoint."""
    (tmp_path / "smoke").mkdir()
    return place_of(options, around, Account("us-east-1"), tmp_path / "smoke", str)


def test_the_questions_without_an_endpoint_are_answered_where_somebody_judges(
    bootstrapped: Clients, options: Options, around: Surroundings
) -> None:
    shown: list[str] = []
    assert smoke(options, replace(around, tell=shown.append)) == 1
    answered = {each.name: next(line for line in shown if line.startswith(f"{each.name} ")) for each in QUESTIONS}
    here = {"rights in a network", "rights to alarms", "alarms of a narrow role"}
    assert {name for name, line in answered.items() if PASSED in line} == here
    assert {name for name, line in answered.items() if "not answered here: " in line} == answered.keys() - here
    assert shown[1] == "at most 0.01 USD (requests to CloudWatch) and 10 minutes"
    assert shown[-1] == "nothing is left"
    assert bootstrapped("lambda").list_functions()["Functions"] == []
    assert bootstrapped("iam").list_roles(PathPrefix="/seatrial-acceptance/")["Roles"] == []


def test_a_signal_ends_the_questions_without_an_endpoint(
    bootstrapped: Clients, options: Options, around: Surroundings
) -> None:
    shown: list[str] = []

    def interrupted(*words: str) -> subprocess.CompletedProcess[str]:
        os.kill(os.getpid(), signal.SIGINT)
        return around.seatrial(*words)

    assert smoke(options, replace(around, seatrial=interrupted, tell=shown.append)) == 128 + signal.SIGINT
    assert len([line for line in shown if "not answered here: ended by SIGINT" in line]) == len(QUESTIONS)
    assert shown[-1] == "nothing is left"


def results(decisions: dict[str, str]) -> dict[str, object]:
    return {"EvaluationResults": [{"EvalActionName": name, "EvalDecision": may} for name, may in decisions.items()]}


def acted(image_tag: str, *, is_right: bool) -> dict[str, MagicMock]:
    """Return clients that answer as AWS does, or each in another way than is expected."""
    iam, stacks, functions, registry, tokens, alarms = (MagicMock() for _ in range(6))

    def simulated(**asked: list[Any]) -> dict[str, object]:
        (resource,), (policy,) = asked["ResourceArns"], asked["PolicyInputList"]
        context = {
            each["ContextKeyName"].lower(): each["ContextKeyValues"][
                0 if each["ContextKeyType"] != "stringList" else slice(None)
            ]
            for each in asked["ContextEntries"]
        }
        decided = {
            action: (is_right or action == "s3:PutObject")
            and allows(json.loads(policy), Right(action, resource, context))
            for action in asked["ActionNames"]
        }
        return results({name: "allowed" if may else "implicitDeny" for name, may in decided.items()})

    def principal(**asked: list[str]) -> dict[str, object]:
        may = "allowed" if is_right and not asked["PolicyInputList"] else "explicitDeny"
        return results(dict.fromkeys(asked["ActionNames"], may))

    def described(**asked: str) -> dict[str, str]:
        schema = find_resource_schema(asked["TypeName"])
        refuse(schema is None, "no such type")
        return {"Schema": f"{schema}".replace("'", '"') if is_right else "{}"}

    def created(**_: object) -> None:
        may = is_right and "ec2:" in iam.put_role_policy.call_args.kwargs["PolicyDocument"]
        refuse(not may, "no permissions to call CreateNetworkInterface on EC2")

    def status(**asked: str) -> dict[str, str]:
        is_valid = is_right and "-smoke-unknown" not in asked["StackName"]
        return {"Status": "CREATE_COMPLETE" if is_valid else "FAILED"}

    iam.simulate_custom_policy.side_effect, iam.simulate_principal_policy.side_effect = simulated, principal
    stacks.describe_type.side_effect, stacks.describe_change_set.side_effect = described, status
    functions.create_function.side_effect = created
    keys = dict.fromkeys(("AccessKeyId", "SecretAccessKey", "SessionToken"), "key")
    tokens.assume_role.return_value = {"Credentials": keys}
    alarms.describe_alarms.side_effect = lambda **asked: refuse(("MetricAlarm" in asked["AlarmTypes"]) != is_right, "")
    alarms.describe_alarm_history.side_effect = partial(refuse, is_so=True, words="")
    missing = ["no-such-tag", *([] if is_right else [image_tag])]
    registry.batch_get_image.return_value = {"failures": [{"imageId": {"imageTag": tag}} for tag in missing]}
    names = ("iam", "cloudformation", "lambda", "ecr", "sts", "cloudwatch")
    return dict(zip(names, (iam, stacks, functions, registry, tokens, alarms), strict=True))


def refuse(is_so: bool, words: str) -> None:  # noqa: FBT001 (what is seen)
    if is_so:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": words}}, "Any")


def test_what_an_account_answers_without_an_endpoint_is_judged(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded AWS has no schemas of types, no foreign registry and no checks of functions."""
    monkeypatch.setattr(smoke_module, "LONGEST_STEP_S", 0.0)
    for status, expected in (("ok", PASSED), ("problem", "otherwise")):
        clients = acted(place.planned.image.rpartition(":")[2], is_right=expected == PASSED)
        session = MagicMock(return_value=MagicMock(client=MagicMock(return_value=clients["cloudwatch"])))
        monkeypatch.setattr(smoke_module, "boto3", MagicMock(Session=session))
        planned = replace(place.planned, checks=({"subject": "quota", "answer": "4", "status": status},))
        there = replace(place, clients=Account("us-east-1", clients), planned=planned)
        answers = {each.name: row_of(each, there)[1].partition(":")[0] for each in QUESTIONS}
        assert answers == dict.fromkeys(answers, expected)
        monkeypatch.setattr(smoke_module, "PRODUCTS", smoke_module.PRODUCTS[:1])


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
