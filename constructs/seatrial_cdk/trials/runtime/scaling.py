"""Scale-in is suspended from before a component is updated until the update is proven; scale-out never is.

What was before is written down first, with the copies that were live: whoever ends the update restores both, the
sweep too, when the functions that suspended it died.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial_cdk.trials.runtime.log_groups import log
from seatrial_cdk.trials.runtime.store import HELD, UnavailableError, calling, held_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_application_autoscaling.type_defs import ScalableTargetTypeDef, SuspendedStateTypeDef

    from seatrial_cdk.trials.runtime.components import Components
    from seatrial_cdk.trials.runtime.ownership import Ownership
    from seatrial_cdk.trials.runtime.store import TrialStore, Versioned

MOST_WRITES = 5
NAMESPACE: Literal["sagemaker"] = "sagemaker"
DIMENSION: Literal["sagemaker:inference-component:DesiredCopyCount"] = "sagemaker:inference-component:DesiredCopyCount"
NONE_SUSPENDED: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": False,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}


class ComponentScaling(Protocol):
    """The scaling of an inference component's copies."""

    def suspended(self, component: str) -> SuspendedStateTypeDef | None:
        """Return what of the scaling is suspended; `None` when nothing scales the copies."""

    def most_copies(self, component: str) -> int | None:
        """Return how many copies the scaling allows; `None` when nothing scales them."""

    def suspend(self, component: str, state: SuspendedStateTypeDef) -> None:
        """Suspend exactly this; resume the rest."""


@dataclass(frozen=True, slots=True)
class AwsCopyScaling:
    """The scaling of copies by Application Auto Scaling."""

    client: ApplicationAutoScalingClient

    def suspended(self, component: str) -> SuspendedStateTypeDef | None:
        """Return what of the scaling is suspended; `None` when there is no scalable target."""
        target = self._target(component)
        return None if target is None else target.get("SuspendedState", {})

    def most_copies(self, component: str) -> int | None:
        """Return how many copies the scaling allows; `None` when there is no scalable target."""
        target = self._target(component)
        return None if target is None else target["MaxCapacity"]

    def _target(self, component: str) -> ScalableTargetTypeDef | None:
        with calling(f"asking what scales {component}"):
            answer = self.client.describe_scalable_targets(
                ServiceNamespace=NAMESPACE, ResourceIds=[_resource(component)], ScalableDimension=DIMENSION
            )
        return next(iter(answer["ScalableTargets"]), None)

    def suspend(self, component: str, state: SuspendedStateTypeDef) -> None:
        """Suspend exactly this; the target's bounds stay as they are."""
        with calling(f"suspending or resuming the scaling of {component}"):
            self.client.register_scalable_target(
                ServiceNamespace=NAMESPACE,
                ResourceId=_resource(component),
                ScalableDimension=DIMENSION,
                SuspendedState={**NONE_SUSPENDED, **state},
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldScaling:
    """What the scaling of a component was before its scale-in was suspended.

    Attributes:
        request_id: The request that is to restore it.
        copies: The most copies that were live, which the update must not take away.
        before: What was suspended before; None when it is restored.
    """

    endpoint_name: str
    component: str
    request_id: str
    stack_id: str
    copies: int
    before: SuspendedStateTypeDef | None

    def to_json(self) -> str:
        """Write it as JSON."""
        return json.dumps(asdict(self))


def read_held(store: TrialStore, endpoint_name: str) -> HeldScaling | None:
    """Return what is suspended for an endpoint; `None` when nothing is."""
    return _held(store.read_versioned(held_key(endpoint_name)))


def held_scalings(store: TrialStore) -> Iterator[HeldScaling]:
    """Return what is suspended for every endpoint."""
    for key in store.keys(f"{HELD}/"):
        if (held := _held(store.read_versioned(key))) is not None:
            yield held


def _held(versioned: Versioned | None) -> HeldScaling | None:
    held = None if versioned is None else HeldScaling(**json.loads(versioned.text))
    return None if held is None or held.before is None else held


def suspend_scale_in(
    scaling: ComponentScaling,
    store: TrialStore,
    ownership: Ownership,
    *,
    component: str,
    stack_id: str,
    copies: int,
) -> None:
    """Suspend the scale-in of a component; one that nothing scales, as on Create, needs none.

    Where an earlier request suspended it already, the candidate's or one whose functions died, what was before that
    stays what is to be restored. The note is written on the condition that no other request wrote one meanwhile; a
    request that lost its endpoint suspends nothing.
    """
    endpoint_name, key = ownership.endpoint_name, held_key(ownership.endpoint_name)
    for _ in range(MOST_WRITES):
        versioned = store.read_versioned(key)
        held = _held(versioned)
        before = scaling.suspended(component) if held is None else held.before
        if before is None or ownership.check():
            return
        note = HeldScaling(
            endpoint_name=endpoint_name,
            component=component,
            request_id=ownership.request_id,
            stack_id=stack_id,
            copies=copies if held is None else max(copies, held.copies),
            before=before,
        ).to_json()
        # The note is first: a suspension without one would never end; a note without one restores what is there.
        if store.create(key, note) if versioned is None else store.replace(key, note, versioned.version):
            scaling.suspend(component, {**before, "DynamicScalingInSuspended": True})
            return
    raise UnavailableError(f"writing {store.uri(key)}: {MOST_WRITES} concurrent writes")


def resume_scaling(scaling: ComponentScaling, store: TrialStore, components: Components, ownership: Ownership) -> bool:
    """Restore what was before, unless that is done, was not needed, or is another request's to do.

    Returns:
        Whether it is done; not while SageMaker refuses to give back the copies that the update took away.
    """
    held = read_held(store, ownership.endpoint_name)
    return held is None or held.request_id != ownership.request_id or restore_scaling(scaling, store, components, held)


def restore_scaling(scaling: ComponentScaling, store: TrialStore, components: Components, held: HeldScaling) -> bool:
    """Restore the copies and the scaling of a component, whichever request suspended it.

    Returns:
        Whether it is done; not while SageMaker refuses to give back the copies that the update took away.
    """
    if not _copies_are_kept(scaling, components, held):
        return False
    if held.before is not None and scaling.suspended(held.component) is not None:
        scaling.suspend(held.component, held.before)
    store.write(held_key(held.endpoint_name), replace(held, before=None).to_json())
    return True


def note_copies(store: TrialStore, components: Components, held: HeldScaling) -> None:
    """Note the copies that scaling has started since, which an update carries only as the number of before.

    While scale-in is suspended they only become more. Those of a component in transit count for nothing: SageMaker may
    have new ones beside the old ones.
    """
    live, versioned = components.describe(held.component), store.read_versioned(held_key(held.endpoint_name))
    if versioned is None or _held(versioned) != held or live is None or live.status != "InService":
        return
    if live.desired_copies > held.copies:
        note = replace(held, copies=live.desired_copies).to_json()
        store.replace(held_key(held.endpoint_name), note, versioned.version)  # a later request's own note stays


def _copies_are_kept(scaling: ComponentScaling, components: Components, held: HeldScaling) -> bool:
    """Give back the copies that a rollback of CloudFormation took away; return whether none is missing."""
    live, most = components.describe(held.component), scaling.most_copies(held.component)
    wanted = held.copies if most is None else min(held.copies, most)
    if live is None or live.copies >= wanted or live.status == "Failed":
        return True
    if not live.in_transit:
        log(f"{held.component} has {live.copies} copies: set to {wanted} again, as before the update")
        components.set_copies(held.component, wanted)
    return False


def _resource(component: str) -> str:
    return f"inference-component/{component}"
