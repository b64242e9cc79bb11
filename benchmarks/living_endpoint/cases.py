"""The updates that an endpoint lives through, and what its users and its owner see of each."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from benchmarks.living_endpoint.endpoint import COPIES, STACK, kill_functions
from benchmarks.living_endpoint.users import steady_users
from benchmarks.living_endpoint.watch import watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.living_endpoint.endpoint import LivingEndpoint
    from benchmarks.living_endpoint.users import Sent
    from seatrial_laptop.demo.cdk_cli import ToolOutcome

BEFORE_S: Final = 20.0
"""How long the users are watched before each update, to compare with."""
DEAD_S: Final = 20.0
SCALE_OUT_S: Final = 20.0
"""How long the instance of a scale-out takes to start."""
MISSED: Final = {"ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 5_000}}
"""An objective that no engine meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one case showed.

    Attributes:
        case: What was done.
        deployed: CloudFormation took the update.
        requests: Requests of users meanwhile.
        failed: Those that failed.
        first_failure: Why the first of them did; empty without one.
        p95_before_ms: p95 of users' latency in the 20 s before, in milliseconds.
        p95_ms: p95 of users' latency meanwhile.
        least_copies: The fewest copies that served meanwhile; before it there were three.
        copies: Copies that serve afterwards.
        tried: Candidates that were seen.
        left: What was left that should not: candidates, suspended scaling.
        target: Requests in flight per copy that autoscaling holds afterwards.
        took_s: How long it took.
        note: What else is to be said.
    """

    case: str
    deployed: bool
    requests: int
    failed: int
    first_failure: str
    p95_before_ms: float
    p95_ms: float
    least_copies: int
    copies: int
    tried: int
    left: tuple[str, ...]
    target: float | None
    took_s: float
    note: str = ""

    @property
    def is_harmful(self) -> bool:
        """Whether a request failed, a copy was taken away, or something was left."""
        return bool(self.failed or self.least_copies < COPIES or self.left)

    @property
    def ratio(self) -> float:
        """Users' p95 meanwhile against before."""
        return self.p95_ms / self.p95_before_ms


def p95_ms(sent: Sequence[Sent]) -> float:
    """Return the 95th percentile of the latencies, nearest rank, in milliseconds."""
    latencies = sorted(each.latency_s for each in sent)
    return latencies[math.ceil(0.95 * len(latencies)) - 1] * 1000 if latencies else math.nan


@dataclass(frozen=True, slots=True)
class RunningUpdate:
    """An update that is under way.

    Attributes:
        living: The endpoint that is updated.
        ended: Is set once the deployment has ended.
    """

    living: LivingEndpoint
    ended: threading.Event = field(default_factory=threading.Event)

    def until(self, done: Callable[[], object], what: str) -> None:
        """Wait until something is so.

        Raises:
            TimeoutError: The update ended without it, or it was not so for three minutes.
        """
        self.living.until(done, what, ended=self.ended.is_set)

    def until_candidate(self) -> None:
        """Wait for a candidate.

        Raises:
            TimeoutError: The update ended without one, or there was none for three minutes.
        """
        self.until(lambda: self.living.candidates, "a candidate")


@dataclass(frozen=True, slots=True)
class Case:
    """An update, and what happens beside it.

    Attributes:
        name: What is done.
        changes: Top-level fields of the spec that change.
        beside: Is called once the update has begun, in a thread of its own; it may wait for what it needs. What it
            raises fails the case as soon as the update has ended, so that the next one finds none under way.
        deploys: CloudFormation is to take the update.
        context: What `-c` gives to the CDK CLI beside the place.
    """

    name: str
    changes: Mapping[str, object]
    beside: Callable[[RunningUpdate], object] | None = None
    deploys: bool = True
    context: Mapping[str, str] = field(default_factory=dict)


def run_case(
    living: LivingEndpoint, case: Case, *, before_s: float = BEFORE_S, tell: Callable[[str], None] = print
) -> Outcome:
    """Do one case to an endpoint of three copies under the load of its users.

    Raises:
        Exception: What was raised beside the update.
    """
    living.write(**case.changes)
    assembly = living.synth("assembly", **case.context)
    living.control()
    living.set_copies(COPIES)
    with _observed(living) as observed:
        time.sleep(before_s)
        began_s = time.monotonic()
        ended = _deployed(living, case, assembly)
        took_s = time.monotonic() - began_s
    if (ended.exit_code == 0) != case.deploys:
        tell(ended.last_lines())
    return _outcome(living, case, observed, began_s, took_s, deployed=ended.exit_code == 0)


def _deployed(living: LivingEndpoint, case: Case, assembly: Path) -> ToolOutcome:
    update = RunningUpdate(living)
    with ThreadPoolExecutor(max_workers=1) as threads:
        beside = threads.submit(case.beside or _nothing, update)
        try:
            ended = living.deploy(assembly)
        finally:
            update.ended.set()
        beside.result()
    return ended


CONTROL_ROUNDS: Final = 8
"""Trials that the control run makes one after the other, so that it lasts as long as an update."""


def run_control(living: LivingEndpoint) -> Outcome:
    """Load a component beside the one that serves as a trial does, with the tools of a deployment, and update nothing.

    What the users see here is what the shared cores cost: there is no update.
    """
    living.set_copies(COPIES)
    assembly = living.synth("assembly")
    with _observed(living) as observed:
        time.sleep(BEFORE_S)
        began_s = time.monotonic()
        living.create_beside()
        tools = threading.Thread(target=living.deploy, args=(assembly,), daemon=True)
        tools.start()
        for _ in range(CONTROL_ROUNDS):
            living.load_beside()
        tools.join()
        living.delete_beside()
        took_s = time.monotonic() - began_s
    return _outcome(living, Case("control: no update", {}), observed, began_s, took_s, deployed=False)


@dataclass(frozen=True, slots=True)
class _Observed:
    sent: list[Sent]
    copies: list[int]
    candidates: set[str]


@contextmanager
def _observed(living: LivingEndpoint) -> Iterator[_Observed]:
    """Let users and a look-out run beside a block; both follow the alias, as clients do."""
    alias = living.alias()

    def copies() -> int:
        name = alias.target().inference_component or ""
        told = living.sagemaker.describe_inference_component(InferenceComponentName=name)
        return told["RuntimeConfig"].get("CurrentCopyCount", 0)

    with watching(living, copies) as seen, steady_users(living.runtime, living.alias()) as users:
        yield _Observed(users.sent, seen.copies, seen.candidates)


def _outcome(
    living: LivingEndpoint, case: Case, observed: _Observed, began_s: float, took_s: float, *, deployed: bool
) -> Outcome:
    meanwhile = [each for each in observed.sent if began_s <= each.due_s < began_s + took_s]
    before = [each for each in observed.sent if each.due_s < began_s]
    failures = [each.failure for each in observed.sent if each.failure]
    left = (*living.candidates, *(("scale-in is suspended",) if living.is_scale_in_suspended else ()))
    return Outcome(
        case=case.name,
        deployed=deployed,
        requests=len(meanwhile),
        failed=len(failures),
        first_failure=failures[0] if failures else "",
        p95_before_ms=p95_ms(before),
        p95_ms=p95_ms(meanwhile),
        least_copies=min(observed.copies),
        copies=living.copies,
        tried=len(observed.candidates),
        left=left,
        target=living.target,
        took_s=took_s,
    )


def _nothing(update: RunningUpdate) -> None:
    del update


def batch_of(sequences: int, *, instance_type: str = "ml.g5.2xlarge") -> Mapping[str, object]:
    """Return the change of a spec that makes another configuration: another batch limit."""
    overrides = {"max_model_len": 512, "max_num_seqs": sequences}
    return {"serving": {"instance_types": [instance_type], "overrides": overrides}}


def scale_out(update: RunningUpdate) -> None:
    """Begin a scale-out to four copies while the candidate is tried; its instance starts longer than the trial runs."""
    update.until_candidate()
    update.living.control(instance_start_s=SCALE_OUT_S)
    try:
        update.living.set_copies(COPIES + 1, wait=False)
        time.sleep(1.0)
    finally:
        update.living.control()


def cancel(update: RunningUpdate) -> None:
    """Cancel the update while the candidate is tried."""
    cloudformation = update.living.cloud.client("cloudformation")
    update.until_candidate()
    time.sleep(2.0)
    cloudformation.cancel_update_stack(StackName=STACK)


def _kill(update: RunningUpdate) -> None:
    """Kill the functions of the trial service while they load, again and again until the candidate is gone."""
    update.until_candidate()
    time.sleep(2.0)
    for _ in range(3):
        kill_functions(update.living.folder)
        time.sleep(0.5)


def _kill_all(update: RunningUpdate) -> None:
    """Let no function of the trial service live for 20 s: only the sweep is left then."""
    update.until_candidate()
    until_s = time.monotonic() + DEAD_S
    while time.monotonic() < until_s:
        kill_functions(update.living.folder)
        time.sleep(0.05)


def cases() -> tuple[Case, ...]:
    """Return the cases in an order in which each begins with a configuration that serves."""
    return (
        Case("(a) a good configuration", batch_of(4)),
        Case("(b) one that fails its trial", {**batch_of(3), "slo": MISSED}, deploys=False),
        Case("(c) during a scale-out", batch_of(5), scale_out),
        Case("(d) cancelled in mid-trial", batch_of(6), cancel, deploys=False),
        Case("(e) trial service killed in mid-trial", batch_of(7), _kill),
        Case("(f) another SLO only", {**batch_of(5), "slo": {"ttft_ms": {"p95": 15_000}, "tpot_ms": {"p95": 5_000}}}),
        Case("(h) every function dies for 20 s", batch_of(9), _kill_all, deploys=False),
        Case("(g) another instance type", batch_of(5, instance_type="ml.g5.4xlarge")),
    )
