"""The scaling of copies rests while a trial measures: the policy of before must not change the copies under its load.

What was before is written down first, so that it is restored by `is_complete` when the runner is killed.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial_cdk.smoke_benchmark.runtime.trial_store import pause_key

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """Return what of the scaling is suspended; `None` when there is no scalable target."""
        answer = self.client.describe_scalable_targets(
            ServiceNamespace=NAMESPACE, ResourceIds=[_resource(component)], ScalableDimension=DIMENSION
        )
        return next((target.get("SuspendedState", {}) for target in answer["ScalableTargets"]), None)

    def suspend(self, component: str, state: SuspendedStateTypeDef) -> None:
        """Suspend exactly this; the target's bounds stay as they are."""
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


@contextmanager
def paused(scaling: CopyScaling, store: TrialStore, properties: TrialProperties, request_id: str) -> Iterator[None]:
    """Suspend the scaling of copies inside the block; a component that nothing scales, as on Create, needs none."""
    component, key = properties.inference_component_name, pause_key(properties, request_id)
    before = scaling.suspended(component)
    if before is None:
        yield
        return
    store.write(key, json.dumps(before))
    try:
        scaling.suspend(component, ALL_SUSPENDED)
        yield
    finally:
        scaling.suspend(component, before)
        store.write(key, json.dumps(None))


def resume(scaling: CopyScaling, store: TrialStore, properties: TrialProperties, request_id: str) -> None:
    """Restore what was before the trial, unless the runner has done so or had nothing to suspend."""
    before = json.loads(store.read(pause_key(properties, request_id)) or "null")
    if before is not None:
        scaling.suspend(properties.inference_component_name, before)


def _resource(component: str) -> str:
    return f"inference-component/{component}"
