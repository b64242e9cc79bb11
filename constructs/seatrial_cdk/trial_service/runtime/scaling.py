"""The scaling of copies rests while a trial measures: the policy of before must not change the copies under its load.

What was before is written down first, so that a later step can restore it when a function dies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial_cdk.trial_service.runtime.store import UnavailableError, calling, pause_key

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial_cdk.trial_service.runtime.custom_resource import TrialProperties
    from seatrial_cdk.trial_service.runtime.ownership import Ownership
    from seatrial_cdk.trial_service.runtime.store import TrialStore, Versioned

MOST_WRITES = 5
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


class ComponentScaling(Protocol):
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


def rest(scaling: ComponentScaling, store: TrialStore, properties: TrialProperties, ownership: Ownership) -> None:
    """Suspend the scaling of copies for a trial; a component that nothing scales, as on Create, needs none.

    Where a trial has suspended it already, an earlier step of this one or one whose functions died, what was before
    that trial stays what is to be restored. The note is written on the condition that no other trial wrote one
    meanwhile; a trial that lost its endpoint suspends nothing.

    Raises:
        UnavailableError: It may not have been suspended.
    """
    component, key = properties.inference_component_name, pause_key(properties.endpoint_name)
    for _ in range(MOST_WRITES):
        found = store.read_versioned(key)
        before = _Note.read(found).before
        if before is None:
            before = scaling.suspended(component)
        if before is None or ownership.check():
            return
        text = _Note(ownership.request_id, before).to_json()
        if store.create(key, text) if found is None else store.replace(key, text, found.version):
            scaling.suspend(component, ALL_SUSPENDED)
            return
    raise UnavailableError(f"writing {store.uri(key)}: {MOST_WRITES} concurrent writes")


def resume(scaling: ComponentScaling, store: TrialStore, properties: TrialProperties, request_id: str) -> None:
    """Restore what was before the trial, unless that is done, was not needed, or is another trial's to do."""
    noted = _Note.read(store.read_versioned(pause_key(properties.endpoint_name)))
    if noted.before is not None and noted.request_id == request_id:
        scaling.suspend(properties.inference_component_name, noted.before)
        store.write(pause_key(properties.endpoint_name), _Note(request_id, None).to_json())


def restore(scaling: ComponentScaling, store: TrialStore, endpoint_name: str, component: str) -> None:
    """Restore what was before whichever trial suspended it: the endpoint's last trial was stopped."""
    noted = _Note.read(store.read_versioned(pause_key(endpoint_name)))
    if noted.before is not None:
        scaling.suspend(component, noted.before)
        store.write(pause_key(endpoint_name), _Note(noted.request_id, None).to_json())


@dataclass(frozen=True, slots=True)
class _Note:
    """What scaling was before a trial suspended it; `None` when it is not suspended by a trial."""

    request_id: str
    before: SuspendedStateTypeDef | None

    @classmethod
    def read(cls, found: Versioned | None) -> _Note:
        return cls("", None) if found is None else cls(**json.loads(found.text))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def _resource(component: str) -> str:
    return f"inference-component/{component}"
