from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from botocore import exceptions

from seatrial_load.decode.failure import Failure
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.trial.dependencies import ShouldStop, go_on
from seatrial_load.trial.preflight import Woken, wake

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

NO_CAPACITY = Failure("not_ready", "HTTP 400 ValidationError: no capacity")
DENIED = exceptions.ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Op")


@dataclass
class World:
    """A component that gets its copy `wakes_after_s` after the first knock or order; time passes by sleeping."""

    copies: int = 0
    wakes_after_s: float | None = None
    fails: bool = False
    unknown: bool = False
    may_not_scale: bool = False
    serves_later_s: float = 0.0
    now_s: float = 1000.0
    knocks: int = 0
    orders: list[object] = field(default_factory=list)
    asked_s: float | None = None

    def describe_inference_component(self, **_name: str) -> dict[str, object]:
        if self.unknown:
            raise DENIED
        if self.fails:
            return {"InferenceComponentStatus": "Failed", "FailureReason": "no instance of this type is left"}
        return {"InferenceComponentStatus": "InService", "RuntimeConfig": {"CurrentCopyCount": self.running()}}

    def update_inference_component_runtime_config(self, **order: object) -> None:
        if self.may_not_scale:
            raise DENIED
        self.orders.append(order)
        self.asked_s = self.now_s

    def knock(self) -> Failure | None:
        self.knocks += 1
        if self.asked_s is None:
            self.asked_s = self.now_s
        serving = self.running() and (self.copies or self.now_s >= self.awake_s() + self.serves_later_s)
        return None if serving else NO_CAPACITY

    def running(self) -> int:
        return self.copies or int(self.asked_s is not None and self.now_s >= self.awake_s())

    def awake_s(self) -> float:
        return float("inf") if self.wakes_after_s is None else (self.asked_s or 0.0) + self.wakes_after_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def wake(
        self,
        *,
        may_scale: bool = False,
        timeout_s: float = 600.0,
        should_stop: ShouldStop = go_on,
    ) -> Woken:
        return wake(
            "chat-copy",
            sagemaker=cast("SageMakerClient", self),
            knock=self.knock,
            may_scale=may_scale,
            timeout_s=timeout_s,
            should_stop=should_stop,
            clock=lambda: self.now_s,
            sleep=self.sleep,
        )


def test_a_component_that_serves_is_left_alone() -> None:
    world = World(copies=2)
    assert world.wake(may_scale=True) == Woken(slept=False, waited_s=0.0, because="2 copies are in service")
    assert (world.knocks, world.orders) == (1, [])


def test_requests_wake_it_by_the_scaling_alarm() -> None:
    world = World(wakes_after_s=300)
    assert world.wake() == Woken(
        slept=True, waited_s=300.0, because="it scaled from zero in 300 s: its requests trigger the "
        "scaling alarm"
    )  # fmt: skip
    assert world.knocks == 21
    assert world.orders == []


def test_it_is_scaled_to_one_copy_where_that_is_allowed() -> None:
    world = World(wakes_after_s=120)
    assert world.wake(may_scale=True) == Woken(
        slept=True, waited_s=120.0, because="it scaled from zero in 120 s: it was scaled to one copy"
    )
    assert world.orders == [{"InferenceComponentName": "chat-copy", "DesiredRuntimeConfig": {"CopyCount": 1}}]


def test_where_scaling_is_refused_the_alarm_remains() -> None:
    world = World(wakes_after_s=120, may_not_scale=True)
    woken = world.wake(may_scale=True)
    assert woken.failure is None
    assert woken.because == (
        "it scaled from zero in 120 s: it could not be scaled to one copy (An error occurred (AccessDeniedException) "
        "when calling the Op operation: no); its requests trigger the scaling alarm"
    )


def test_a_copy_that_is_counted_but_refuses_for_capacity_does_not_serve_yet() -> None:
    assert World(wakes_after_s=60, serves_later_s=30).wake().waited_s == 90.0


def test_copies_that_are_counted_while_requests_are_refused_for_capacity_are_asleep() -> None:
    world = World(copies=1)
    world.knock = lambda: NO_CAPACITY  # type: ignore[method-assign]  # a manner of this test only
    woken = world.wake(timeout_s=30)
    assert (woken.reason, woken.slept) == (StopReason.AT_ZERO, True)


def test_a_component_that_has_copies_is_never_set_to_one() -> None:
    """Three copies that refuse for a moment, as in a rolling update, must stay three."""
    world = World(copies=3)
    refused = iter([NO_CAPACITY, NO_CAPACITY, None])
    world.knock = lambda: next(refused)  # type: ignore[method-assign]  # a manner of this test only
    assert world.wake(may_scale=True) == Woken(slept=True, waited_s=15.0, because="its copies responded after 15 s")
    assert world.orders == []


def test_another_failure_is_the_trials_to_see() -> None:
    world = World(copies=1)
    world.knock = lambda: Failure("model_error", "HTTP 424")  # type: ignore[method-assign]  # likewise
    assert world.wake().failure is None


def test_a_component_that_stays_at_zero_is_not_verified() -> None:
    world = World()
    assert world.wake(timeout_s=60) == Woken(
        reason=StopReason.AT_ZERO,
        slept=True,
        waited_s=60.0,
        because="not verified: at zero: no copy was in service within 60 s: its requests trigger the scaling alarm; "
        "last: "
        "HTTP 400 ValidationError: no capacity",
    )


def test_a_component_that_failed_is_not_waited_for() -> None:
    assert World(fails=True).wake() == Woken(
        reason=StopReason.COMPONENT_FAILED,
        slept=True,
        waited_s=0.0,
        because="the component failed: no instance of this type is left",
    )


@pytest.mark.parametrize("may_scale", [True, False])
def test_a_component_that_cannot_be_described(*, may_scale: bool) -> None:
    woken = World(unknown=True).wake(may_scale=may_scale)
    assert woken == Woken(
        reason=StopReason.UNKNOWN_STATE,
        slept=False,
        waited_s=0.0,
        because="not verified: chat-copy can't be described: An error occurred "
        "(AccessDeniedException) when calling the Op operation: no",
    )


DELETED = Stop(reason=StopReason.CANCELLED, because="the stack is deleted")


def test_whoever_waits_is_told_to_stop() -> None:
    world = World()
    woken = world.wake(should_stop=lambda: DELETED if world.now_s > 1020 else None)
    assert (woken.reason, woken.waited_s) == (StopReason.AT_ZERO, 30.0)
    assert woken.because == "not verified: at zero: the stack is deleted"
