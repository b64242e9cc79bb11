"""An inference component scaled to zero: wake it before the trial, or say that nothing was verified.

Facts (AWS documentation, "Scale an endpoint to zero instances"; the runtime API's errors): a component without copies
refuses requests with a validation error that speaks of capacity; each refusal counts in `NoCapacityInvocationFailures`,
whose alarm adds a copy by a step policy. That takes minutes: an instance starts, the model loads.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import DescribeInferenceComponentOutputTypeDef

    from seatrial_load.decode.failure import Failure


POLL_S = 15.0
Knock: TypeAlias = "Callable[[], Failure | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """How it went.

    Attributes:
        slept: Whether there was none at first.
        waited_s: How long it took, or was waited for.
        because: What was seen, in a sentence.
        reason: Why nothing is measured: no copy serves, nobody knows, or the component failed; None when one serves.
    """

    slept: bool
    waited_s: float
    because: str
    reason: StopReason | None = None

    @property
    def failure(self) -> Stop | None:
        """Why the trial measures nothing; None when a copy serves."""
        return None if self.reason is None else Stop(reason=self.reason, because=self.because)


def wake(
    component: str,
    *,
    sagemaker: SageMakerClient,
    knock: Knock,
    may_scale: bool,
    timeout_s: float,
    waited_s: float = 0.0,
    should_stop: Callable[[], Stop | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Woken:
    """Make sure that a copy of the component serves.

    It is asleep when the control plane counts no copy, or when a request is refused for lack of one. Requests go on
    knocking until one gets through: they are what the scaling alarm counts.

    Args:
        component: The inference component's name.
        sagemaker: The control plane's client.
        knock: Sends one small request; returns why it failed, None when it was answered.
        may_scale: Whether the number of copies may be set to one, which doesn't wait for the alarm; one that has copies
            already is left alone.
        timeout_s: Longest wait.
        waited_s: How much of it has passed before this call.
        should_stop: Says why nobody is to wait any longer; asked before each knock.
        clock: Monotonic seconds.
        sleep: Waits.
    """
    waking = _Waking(component, sagemaker, knock, should_stop, clock, sleep, clock() - waited_s)
    return waking.run(timeout_s, may_scale=may_scale)


@dataclass(slots=True)
class _Waking:
    component: str
    sagemaker: SageMakerClient
    knock: Knock
    should_stop: Callable[[], Stop | None]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    started_s: float
    refusal: str = ""

    def run(self, timeout_s: float, *, may_scale: bool) -> Woken:
        described, unknown = self._described()
        if described is None:
            return self._unknown(unknown, slept=False)
        copies = _copies(described)
        if copies and not self._refused():
            return Woken(slept=False, waited_s=0.0, because=f"{copies} copies are in service")
        if copies:
            return self._wait("", timeout_s)
        how = self._scale() if may_scale else "its requests trigger the scaling alarm"
        return self._wait(how, timeout_s)

    def _wait(self, how: str, timeout_s: float) -> Woken:
        while True:
            if (stop := self.should_stop()) is not None:
                return self._gave_up(stop.because)
            described, unknown = self._described()
            if described is None:
                return self._unknown(unknown, slept=True)
            if described["InferenceComponentStatus"] == "Failed":
                because = f"the component failed: {described.get('FailureReason', 'without a reason')}"
                return self._not_awake(StopReason.COMPONENT_FAILED, because)
            if not self._refused() and _copies(described):
                waited = f"{self._waited_s():.0f} s"
                because = f"it scaled from zero in {waited}: {how}" if how else f"its copies answered after {waited}"
                return Woken(slept=True, waited_s=self._waited_s(), because=because)
            if self._waited_s() + POLL_S > timeout_s:
                last = f"; last: {self.refusal}" if self.refusal else ""
                helped = f": {how}" if how else ""
                return self._gave_up(f"no copy was in service within {timeout_s:g} s{helped}{last}")
            self.sleep(POLL_S)

    def _refused(self) -> bool:
        """Knock; only a refusal for lack of a copy says that none serves, any other failure is the trial's to see."""
        failure = self.knock()
        self.refusal = "" if failure is None else failure.detail
        return failure is not None and failure.error == "not_ready"

    def _scale(self) -> str:
        from botocore import exceptions  # noqa: PLC0415 (loaded already: the client is botocore's)

        wanted = {"CopyCount": 1}
        try:
            self.sagemaker.update_inference_component_runtime_config(
                InferenceComponentName=self.component,
                DesiredRuntimeConfig=wanted,  # type: ignore[arg-type]  # boto3-stubs wants its own TypedDict
            )
        except (exceptions.BotoCoreError, exceptions.ClientError) as refused:
            return f"it could not be scaled to one copy ({refused}); its requests trigger the scaling alarm"
        return "it was scaled to one copy"

    def _described(self) -> tuple[DescribeInferenceComponentOutputTypeDef | None, str]:
        from botocore import exceptions  # noqa: PLC0415 (likewise)

        try:
            return self.sagemaker.describe_inference_component(InferenceComponentName=self.component), ""
        except (exceptions.BotoCoreError, exceptions.ClientError) as refused:
            return None, f"{self.component} can't be described: {refused}"

    def _gave_up(self, why: str) -> Woken:
        return self._not_awake(StopReason.AT_ZERO, f"not verified: at zero: {why}")

    def _unknown(self, why: str, *, slept: bool) -> Woken:
        return self._not_awake(StopReason.UNKNOWN_STATE, f"not verified: {why}", slept=slept)

    def _not_awake(self, reason: StopReason, because: str, *, slept: bool = True) -> Woken:
        return Woken(slept=slept, waited_s=self._waited_s(), because=because, reason=reason)

    def _waited_s(self) -> float:
        return self.clock() - self.started_s


def _copies(described: DescribeInferenceComponentOutputTypeDef) -> int:
    return described.get("RuntimeConfig", {}).get("CurrentCopyCount", 0)
