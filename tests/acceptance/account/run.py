"""Runs the suite on an account: shows the price, asks, watches the budget, and removes everything however it ends."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import yaml
from botocore.exceptions import BotoCoreError, ClientError

from seatrial_base.errors import LocalError, SpecError
from seatrial_base.findings import Finding, Place
from tests.acceptance.account.lifeline import LIFELINE, LONGEST_END_S, lifeline
from tests.acceptance.account.price import (
    HOUR_S,
    LONGEST_REMOVAL_S,
    LONGEST_SMOKE_REMOVAL_S,
    Spending,
    expected_usd,
    list_price,
    longest_run_s,
    price_lines,
    running_instances,
)
from tests.acceptance.account.removal import RUN_TAG, left_of_smoke, remove, runs_stacks
from tests.acceptance.endpoint import SPEC, batch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.acceptance.account.removal import Clients

ROOT: Final = Path(__file__).parents[3]
BIN: Final = Path(sys.executable).parent
RULE: Final = "SEA629"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_S: Final = 30.0
EXPIRATION: Final = "AWS_CREDENTIAL_EXPIRATION"
"""Where botocore and the AWS CLI (`configure export-credentials`) write when given credentials expire."""
JUDGED: Final = (0, 1)
"""Exit codes of a command that has judged: what else there is can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller decides.

    Attributes:
        environment: Name of the environment.
        environments: Folder of environments.
        budget_usd: Most that may be spent.
        yes: Ask nothing.
        folder: Where a folder of the run is made, with its transcript.
        pytest: Further words for pytest, as `-k` and a name.
    """

    environment: str
    environments: Path = ROOT / "environments"
    budget_usd: float = 15.0
    yes: bool = False
    folder: Path = ROOT / ".seatrial" / "acceptance"
    pytest: Sequence[str] = ()


def _run_seatrial(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([f"{BIN / 'seatrial'}", *words], capture_output=True, text=True, check=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run takes from outside; tests give other prices and times.

    Attributes:
        seatrial: Runs `seatrial` with words to its end.
        price_of: Returns the price of an instance type in USD per hour.
        look_s: Between two looks at what runs.
        ask: Asks the caller and returns the answer.
        tell: Shows a line.
    """

    seatrial: Callable[..., subprocess.CompletedProcess[str]] = _run_seatrial
    price_of: Callable[[str], float] = list_price
    look_s: float = LOOK_S
    ask: Callable[[str], str] = input
    tell: Callable[[str], object] = print


@dataclass(slots=True)
class Stop:
    """Why a run ends before its time; empty while it goes on."""

    because: str = ""
    exit_code: int = 1


@dataclass(frozen=True, slots=True)
class Account:
    """An account's clients in one region, one each."""

    region: str
    _made: dict[str, Any] = field(default_factory=dict)

    def __call__(self, service: str) -> Any:  # noqa: ANN401 (boto3's clients have no type of their own)
        """Return the client of a service."""
        if service not in self._made:
            make: Callable[..., Any] = boto3.Session(region_name=self.region).client
            self._made[service] = make(service)
        return self._made[service]


def run(options: Options, around: Surroundings | None = None) -> int:
    """Run the suite on an account and return the exit code: 0 when all passed and nothing is left.

    Raises:
        SpecError: SEA629, the environment can't be used; every reason is told.
        LocalError: SEA629, the account can't be asked.
    """
    around = around or Surroundings()
    place = read_environment(options.environments, options.environment)
    clients = Account(f"{place['region']}")
    with tempfile.TemporaryDirectory() as folder:
        planned = planned_in(Path(folder), options, around)
    usd_per_hour = around.price_of(planned.instance_type)
    check(options, clients, expected_usd(usd_per_hour), longest_run_s(), planned.lacking)
    for line in price_lines(planned.instance_type, usd_per_hour):
        around.tell(line)
    around.tell(f"budget: {options.budget_usd:.2f} USD; what would exceed it is stopped and removed")
    if not options.yes and around.ask("Run this in your account? [yes/no] ").strip().lower() != "yes":
        around.tell("nothing was done")
        return 1
    return _run(options, around, place, clients, usd_per_hour)


def read_environment(folder: Path, name: str) -> dict[str, object]:
    """Return the environment's document.

    Raises:
        SpecError: SEA629, there is none, or it is no mapping with a region.
    """
    file = folder / f"{name}.yaml"
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no YAML"
        hint = f"copy environments/dev.yaml to {file.name}, with name: {name} and removal: destroy"
        raise SpecError.of(RULE, f"{reason}", where=f"{file}", hint=hint) from error
    if not isinstance(document, dict) or "region" not in document:
        raise SpecError.of(RULE, "an environment has a name and a region", where=f"{file}")
    return document


@dataclass(frozen=True, slots=True)
class Planned:
    """What the planner takes for the suite's endpoint, and what the account lacks for it.

    Attributes:
        instance_type: The instance type.
        image: The URI of its container's image.
        lacking: What `seatrial preflight` finds missing, each with what to do.
        checks: All that it checks: subject, status and answer.
    """

    instance_type: str
    image: str
    lacking: tuple[tuple[str, str], ...]
    checks: tuple[dict[str, str], ...] = ()


def planned_in(folder: Path, options: Options, around: Surroundings) -> Planned:
    """Lock a plan of the suite's endpoint, and ask the account for what its deployment needs: quota among it.

    Raises:
        SpecError: SEA629, there is no plan.
    """
    where = ("-e", options.environment, "--environments", f"{options.environments.absolute()}")
    spec = folder / "endpoints" / "chat.yaml"
    spec.parent.mkdir()
    spec.write_text(yaml.safe_dump({"name": "chat", **SPEC, **batch_of(8)}), encoding="utf-8")
    planned = around.seatrial("plan", f"{spec}", "--write", *where)
    if planned.returncode:
        raise SpecError.of(RULE, f"the suite's endpoint has no plan there: {planned.stderr.strip()}")
    lock = json.loads(spec.with_suffix(".lock.json").read_text(encoding="utf-8"))["environments"][options.environment]
    asked = around.seatrial("preflight", f"{spec}", "--format", "json", *where)
    plan = Planned(str(lock["instance_type"]["value"]), str(lock["image"]["value"]["uri"]), ())
    if asked.returncode not in JUDGED:
        why = asked.stderr.strip()
        unread = {"subject": "seatrial preflight", "status": "unread", "answer": why}
        return replace(plan, lacking=((f"seatrial preflight: {why}", ""),), checks=(unread,))
    told = json.loads(asked.stdout)
    errors = (each for each in told["findings"] if each["severity"] == "error")
    lacking = tuple((f"{each['message']}", f"{each['hint']}") for each in errors)
    return replace(plan, lacking=lacking, checks=tuple(told["checks"]))


def check(
    options: Options, clients: Clients, expected: float, longest_s: float, lacking: Sequence[tuple[str, str]]
) -> None:
    """Refuse what can't end well, and tell every reason.

    Raises:
        SpecError: SEA629 for each.
        LocalError: SEA629, the account can't be asked.
    """
    try:
        problems = [*_problems(options, clients, expected, longest_s), *lacking]
    except (ClientError, BotoCoreError) as error:
        raise LocalError.of(
            RULE, f"the account can't be asked: {error}", hint="give credentials, as for the AWS CLI"
        ) from error
    if problems:
        where = Place(f"{options.environments / options.environment}.yaml")
        raise SpecError([Finding(RULE, where, message, hint) for message, hint in problems])


def _problems(options: Options, clients: Clients, expected: float, longest_s: float) -> Iterator[tuple[str, str]]:
    place = read_environment(options.environments, options.environment)
    if place.get("removal") != "destroy":
        yield "removal is not destroy: what the suite makes would stay", "use an environment that keeps nothing"
    account = clients("sts").get_caller_identity()["Account"]
    if str(place.get("account") or account) != account:
        yield "the credentials are those of another account", "give those of the environment's account"
    yield from expiring_credentials(longest_s)
    if expected > options.budget_usd:
        yield f"{expected:.2f} USD are expected, the budget is {options.budget_usd:.2f}", "raise --budget-usd"
    stacks = {stack["StackName"] for page in _stack_pages(clients) for stack in page["Stacks"]}
    theirs = sorted(name for name in stacks if name.startswith(f"seatrial-{options.environment}-"))
    if theirs:
        runs = ", ".join(sorted({found.run for found in runs_stacks(clients, options.environment, None)}))
        hint = (
            f"make clean-aws ENV={options.environment} removes those of run {runs}"
            if runs
            else "use another environment"
        )
        yield f"it is in use: {', '.join(theirs)}", hint


def expiring_credentials(longest_s: float) -> Iterator[tuple[str, str]]:
    """Yield that the given credentials may end before suite and removal: neither goes on then, and instances run on.

    Those of a profile are renewed, and keys without a session's token do not expire.
    """
    if not os.environ.get("AWS_SESSION_TOKEN"):
        return
    hint = "give credentials that are renewed, as a profile that assumes a role, or longer ones"
    needed = f"suite and removal take up to {longest_s / HOUR_S:.1f} h"
    try:
        expires = datetime.fromisoformat(os.environ[EXPIRATION])
    except (KeyError, ValueError):
        yield f"the credentials are of a session, {EXPIRATION} does not say until when; {needed}", hint
        return
    left_s = (expires if expires.tzinfo else expires.replace(tzinfo=UTC)).timestamp() - time.time()
    if left_s < longest_s:
        yield f"the credentials expire in {left_s / HOUR_S:.1f} h, {needed}", hint


def _stack_pages(clients: Clients) -> Iterator[Mapping[str, Any]]:
    yield from clients("cloudformation").get_paginator("describe_stacks").paginate()


def _run(
    options: Options, around: Surroundings, place: Mapping[str, object], clients: Clients, usd_per_hour: float
) -> int:
    run_id = secrets.token_hex(4)
    folder = options.folder / run_id
    folder.mkdir(parents=True)
    file = folder / f"{options.environment}.yaml"
    tags = {**_mapping(place.get("tags")), RUN_TAG: run_id}
    # JSON is YAML with every text in quotes: a run's ID such as 79e54297 would be read as a number without them.
    file.write_text(json.dumps({**place, "tags": tags}, indent=2), encoding="utf-8")
    transcript = folder / "transcript.jsonl"
    around.tell(f"run {run_id} ({datetime.now(UTC).isoformat(timespec='seconds')}); transcript: {transcript}")
    around.tell(f"if this process is killed: make clean-aws ENV={options.environment} RUN={run_id}")
    spending = Spending(around.price_of, usd_per_hour)
    stop, code = Stop(), 1
    with signals_stop(stop):
        try:
            code = _watched(options, around, clients, spending, stop, _environment(file, transcript))
        finally:
            left = _removed(options, around, clients, spending, run_id)
    return _told(around, spending, stop, code, left, transcript)


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _environment(file: Path, transcript: Path) -> dict[str, str]:
    names = {"SEATRIAL_ACCEPTANCE_ENVIRONMENT": f"{file}", "SEATRIAL_ACCEPTANCE_TRANSCRIPT": f"{transcript}"}
    return {**os.environ, **names}


@contextmanager
def signals_stop(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C, a termination and a closed terminal stop the run, and not the removal after it."""

    def ended(number: int, _: object) -> None:
        stop.because, stop.exit_code = f"ended by {signal.Signals(number).name}", 128 + number

    before = {number: signal.signal(number, ended) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watched(
    options: Options,
    around: Surroundings,
    clients: Clients,
    spending: Spending,
    stop: Stop,
    variables: Mapping[str, str],
) -> int:
    """Run the suite in a process of its own until it ends, is stopped, or would exceed the budget."""
    words = ("-m", "pytest", "tests/acceptance", "-m", "acceptance", "-q", "-p", "no:cacheprovider", *options.pytest)
    with (
        lifeline() as file,
        subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env={**variables, LIFELINE: f"{file}"},
            pass_fds=(file,),
            start_new_session=True,
        ) as suite,
    ):
        try:
            while suite.poll() is None and not stop.because:
                _look(options, clients, spending)
                if spending.would_exceed(options.budget_usd, around.look_s):
                    stop.because = f"the budget of {options.budget_usd:.2f} USD would be exceeded"
                _pause(around.look_s, suite, stop)
        finally:
            _end(suite)
    return suite.returncode


def _pause(seconds: float, suite: subprocess.Popen[bytes], stop: Stop) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and suite.poll() is None and not stop.because:
        time.sleep(min(0.2, seconds))


def _end(suite: subprocess.Popen[bytes]) -> None:
    """End the suite: interrupted, it ends its tools; what does not end is killed."""
    if suite.poll() is None:
        os.killpg(suite.pid, signal.SIGINT)
        try:
            suite.wait(LONGEST_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(suite.pid, signal.SIGKILL)


def _removed(options: Options, around: Surroundings, clients: Clients, spending: Spending, run_id: str) -> list[str]:
    """Remove everything, and count what it costs meanwhile."""
    _look(options, clients, spending)
    look_s = min(around.look_s, 10.0)
    try:
        left = remove(
            clients, options.environment, run_id, longest_s=LONGEST_REMOVAL_S, tell=around.tell, look_s=look_s
        )
    except (ClientError, BotoCoreError) as error:
        left = [f"what could not be removed: {error}"]
    _look(options, clients, spending)
    return left


def _look(options: Options, clients: Clients, spending: Spending) -> None:
    """Count what runs; where the account does not answer, what ran before is taken to run on."""
    try:
        instances = running_instances(clients("sagemaker"), f"{options.environment}-")
    except (ClientError, BotoCoreError):
        instances = None
    spending.look(instances, time.monotonic())


def _told(
    around: Surroundings, spending: Spending, stop: Stop, code: int, left: Sequence[str], transcript: Path
) -> int:
    if stop.because:
        around.tell(f"stopped: {stop.because}")
    for each in left:
        around.tell(f"left: {each}")
    around.tell(
        f"spent about {spending.usd:.2f} USD (estimate at list prices); {'something is' if left else 'nothing is'} left"
    )
    around.tell(f"compare: python -m tests.acceptance.transcript.compare {transcript}")
    if stop.because:
        return stop.exit_code
    return code or int(bool(left))


def clean(environment: str, run_id: str | None, *, environments: Path = ROOT / "environments") -> int:
    """Remove what runs left, found by their tag; return 1 when something stays.

    Raises:
        SpecError: SEA629, there is no such environment.
        LocalError: SEA629, the account can't be asked.
    """
    clients = Account(f"{read_environment(environments, environment)['region']}")
    try:
        left = left_of_smoke(clients, environment, LONGEST_SMOKE_REMOVAL_S)
        left += remove(clients, environment, run_id, longest_s=LONGEST_REMOVAL_S)
    except (ClientError, BotoCoreError) as error:
        raise LocalError.of(RULE, f"the account can't be asked: {error}") from error
    for each in left:
        print(f"left: {each}")  # noqa: T201 (a command's output)
    return int(bool(left))
