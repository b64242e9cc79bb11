"""The scaling of copies rests while a trial measures: the policy of before must not change the copies under its load.

What was before is written down first, so that the trial's next run and `is_complete` can restore it when a runner dies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial_cdk.smoke_benchmark.runtime.trial_store import pause_key
from seatrial_cdk.smoke_benchmark.runtime.unavailable import calling

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

NAMESPACE: Literal["sagemaker"] = "sagemaker"
DIMENSION: Literal["sagemaker:inference-component:DesiredCopyCount"] = "sagemaker:inference-component:DesiredCopyCount"
ALL_SUSPENDED: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": True,
    "DynamicScalingOutSuspended": True,
    "ScheduledScalingSuspended": True,
}

NONE_SUSPENDED: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": False,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}


class CopyScaling(Protocol):
    """The scaling of an inference component's copies."""

    def suspended(self, component: str) -> SuspendedStateTypeDef | None:
        """Return what of the scaling is suspended; `None` when nothing scales the copies."""

    def suspend(self, component: str, state: SuspendedStateTypeDef) -> None:
        """Suspend exactly this; resume the rest."""


@dataclass(frozen=True, slots=True)
class AwsCopyScaling:
    """The scaling of copies by Application Auto Scaling."""

    client: ApplicationAutoScalingClient

    def suspended(self, component: str) -> SuspendedStateTypeDef | None:
        """Return what of the scaling is suspended; `None` when there is no scalable target.

        Raises:
            UnavailableError: It can't be told.
        """
        with calling(f"asking what scales {component}"):
            answer = self.client.describe_scalable_targets(
                ServiceNamespace=NAMESPACE, ResourceIds=[_resource(component)], ScalableDimension=DIMENSION
            )
        return next((target.get("SuspendedState", {}) for target in answer["ScalableTargets"]), None)

    def suspend(self, component: str, state: SuspendedStateTypeDef) -> None:
        """Suspend exactly this; the target's bounds stay as they are.

        Raises:
            UnavailableError: It may not have been suspended or resumed.
        """
        with calling(f"suspending or resuming the scaling of {component}"):
            self.client.register_scalable_target(
                ServiceNamespace=NAMESPACE,
                ResourceId=_resource(component),
                ScalableDimension=DIMENSION,
                SuspendedState={**NONE_SUSPENDED, **state},
            )


def aws_copy_scaling() -> AwsCopyScaling:
    """Return the scaling of this function's region."""
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    return AwsCopyScaling(boto3.client("application-autoscaling"))


def rest(scaling: CopyScaling, store: TrialStore, properties: TrialProperties, request_id: str) -> None:
    """Suspend the scaling of copies for a trial; a component that nothing scales, as on Create, needs none.

    Where a trial has suspended it already, an earlier run of this one or one whose function died, what was before that
    trial stays what is to be restored.
    """
    component = properties.inference_component_name
    before = _noted(store, properties.endpoint_name).before
    if before is None:
        before = scaling.suspended(component)
    if before is None:
        return
    _note(store, properties.endpoint_name, _Note(request_id, before))
    scaling.suspend(component, ALL_SUSPENDED)


def resume(scaling: CopyScaling, store: TrialStore, properties: TrialProperties, request_id: str) -> None:
    """Restore what was before the trial, unless that is done, was not needed, or is another trial's to do."""
    noted = _noted(store, properties.endpoint_name)
    if noted.before is not None and noted.request_id == request_id:
        scaling.suspend(properties.inference_component_name, noted.before)
        _note(store, properties.endpoint_name, _Note(request_id, None))


def restore(scaling: CopyScaling, store: TrialStore, endpoint_name: str, component: str) -> None:
    """Restore what was before whichever trial suspended it: the endpoint's last trial was stopped."""
    noted = _noted(store, endpoint_name)
    if noted.before is not None:
        scaling.suspend(component, noted.before)
        _note(store, endpoint_name, _Note(noted.request_id, None))


@dataclass(frozen=True, slots=True)
class _Note:
    """What scaling was before a trial suspended it; `None` when it is not suspended by a trial."""

    request_id: str
    before: SuspendedStateTypeDef | None


def _noted(store: TrialStore, endpoint_name: str) -> _Note:
    text = store.read(pause_key(endpoint_name))
    return _Note("", None) if text is None else _Note(**json.loads(text))


def _note(store: TrialStore, endpoint_name: str, note: _Note) -> None:
    store.write(pause_key(endpoint_name), json.dumps(asdict(note)))


def _resource(component: str) -> str:
    return f"inference-component/{component}"
