"""The stack of a probe is deleted, whatever happens after its deployment began."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.probe.run import ProbeRun, uninterrupted
from seatrial_base.errors import BenchError, SeatrialError
from seatrial_laptop.demo.cdk_cli import ToolOutcome
from tests.probe.conftest import result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.probe.pinned import PinnedSpec
    from seatrial_load.documents.result import TrialResult
    from tests.probe.conftest import Locked

STACK = "seatrial-dev-chat-probe-candidate"
DONE = ToolOutcome(0, "done")


def succeed() -> ToolOutcome:
    return DONE


def interrupt() -> ToolOutcome:
    raise SystemExit(130)


@dataclass
class FakeCdk:
    """Writes an assembly as the CDK CLI does, and ends as it is told."""

    deploy: Callable[[], ToolOutcome] = succeed
    destroy: Callable[[], ToolOutcome] = succeed
    synthesizes: bool = True
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def cdk(self, *arguments: str) -> ToolOutcome:
        self.commands.append(arguments)
        if arguments[0] == "destroy":
            return self.destroy()
        assembly = Path(arguments[arguments.index("--output") + 1])
        if self.synthesizes:
            assembly.mkdir()
            (assembly / "manifest.json").write_text("{}")
        return self.deploy()

    @property
    def names(self) -> list[str]:
        return [" ".join(command[:2]) for command in self.commands]


@dataclass
class FakeStacks:
    found: Callable[[], TrialResult]
    there: bool = False

    def exists(self, name: str) -> bool:
        assert name == STACK
        return self.there

    def result(self, name: str) -> TrialResult:
        assert name == STACK
        return self.found()


@dataclass
class FakeClock:
    now_s: float = 0.0

    def __call__(self) -> float:
        self.now_s += 90.0
        return self.now_s


@pytest.fixture
def pinned(locked: Locked) -> PinnedSpec:
    (candidate,) = locked.pinned("candidate")
    return candidate


def run_of(locked: Locked, pinned: PinnedSpec, cdk: FakeCdk, stacks: FakeStacks) -> ProbeRun:
    return ProbeRun(pinned=pinned, environments=locked.environments, cdk=cdk, stacks=stacks, clock=FakeClock())


def no_result() -> TrialResult:
    raise BenchError.of("SEA507", "the trial ended with an error")


BOTH = [f"deploy {STACK}", f"destroy {STACK}"]


def test_it_is_deployed_measured_and_deleted(locked: Locked, pinned: PinnedSpec) -> None:
    cdk, wanted = FakeCdk(), result_of(pinned)
    result, spent_s = run_of(locked, pinned, cdk, FakeStacks(lambda: wanted)).measure()
    assert (result, spent_s) == (wanted, 90.0)
    assert cdk.names == BOTH
    deploy, destroy = cdk.commands
    folder = pinned.loaded.path.parent.resolve()
    assert {f"endpoints={folder}", "environment=dev", f"environments={locked.environments.resolve()}"} <= set(deploy)
    assert {"--force", "--exclusively", str(folder / "cdk.out")} <= set(destroy)  # the trial service stays


def test_a_failed_deployment_is_deleted(locked: Locked, pinned: PinnedSpec) -> None:
    cdk = FakeCdk(deploy=lambda: ToolOutcome(1, "no capacity\n"))
    with pytest.raises(BenchError) as failed:
        run_of(locked, pinned, cdk, FakeStacks(no_result)).measure()
    assert [problem.rule for problem in failed.value.problems] == ["SEA525"]
    assert "no capacity" in str(failed.value)
    assert cdk.names == BOTH


def test_without_a_result_it_is_deleted(locked: Locked, pinned: PinnedSpec) -> None:
    cdk = FakeCdk()
    with pytest.raises(BenchError) as failed:
        run_of(locked, pinned, cdk, FakeStacks(no_result)).measure()
    assert [problem.rule for problem in failed.value.problems] == ["SEA507"]
    assert cdk.names == BOTH


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_deployment_is_deleted(locked: Locked, pinned: PinnedSpec, stop: type[BaseException]) -> None:
    def stopped() -> ToolOutcome:
        raise stop

    cdk = FakeCdk(deploy=stopped)
    with pytest.raises(stop):
        run_of(locked, pinned, cdk, FakeStacks(no_result)).measure()
    assert cdk.names == BOTH


def test_no_signal_interrupts_the_deletion(locked: Locked, pinned: PinnedSpec) -> None:
    def signalled() -> ToolOutcome:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        return DONE

    cdk, before = FakeCdk(destroy=signalled), signal.getsignal(signal.SIGINT)
    run_of(locked, pinned, cdk, FakeStacks(lambda: result_of(pinned))).measure()
    assert cdk.names == BOTH
    assert signal.getsignal(signal.SIGINT) == before


def test_signals_are_heard_again_after_a_failure() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(BenchError), uninterrupted():
        raise BenchError(())
    assert signal.getsignal(signal.SIGINT) == before


def test_before_the_synthesis_ended_there_is_no_stack(locked: Locked, pinned: PinnedSpec) -> None:
    cdk = FakeCdk(deploy=interrupt, synthesizes=False)
    with pytest.raises(SystemExit):
        run_of(locked, pinned, cdk, FakeStacks(no_result)).measure()
    assert cdk.names == BOTH[:1]


@pytest.mark.parametrize("deploy", [succeed, interrupt, lambda: ToolOutcome(1, "no capacity")])
def test_what_could_not_be_deleted_is_told_with_all_that_went_wrong(
    locked: Locked, pinned: PinnedSpec, deploy: Callable[[], ToolOutcome]
) -> None:
    cdk = FakeCdk(deploy=deploy, destroy=lambda: ToolOutcome(1, "DELETE_FAILED"))
    with pytest.raises(BenchError) as failed:
        run_of(locked, pinned, cdk, FakeStacks(lambda: result_of(pinned))).measure()
    last = failed.value.problems[-1]
    assert (last.rule, last.where) == ("SEA525", STACK)
    assert f"delete-stack --stack-name {STACK} --region us-east-1" in last.hint
    assert len(failed.value.problems) == (2 if deploy not in (succeed, interrupt) else 1)


def test_a_cdk_that_can_not_be_started_is_told(locked: Locked, pinned: PinnedSpec) -> None:
    def missing() -> ToolOutcome:
        raise FileNotFoundError(2, "No such file")

    with pytest.raises(BenchError, match="cdk destroy can't be started: No such file"):
        run_of(locked, pinned, FakeCdk(destroy=missing), FakeStacks(lambda: result_of(pinned))).measure()


def test_a_stack_that_is_there_is_left_alone(locked: Locked, pinned: PinnedSpec) -> None:
    cdk = FakeCdk()
    with pytest.raises(SeatrialError) as refused:
        run_of(locked, pinned, cdk, FakeStacks(no_result, there=True)).measure()
    assert [problem.rule for problem in refused.value.problems] == ["SEA525"]
    assert cdk.commands == []
