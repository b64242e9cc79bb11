"""What an update means: what users notice of each change, what it needs meanwhile, and what can't be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.operations.component_effects import component_effects
from seatrial.operations.effect import BY_RISK, MOVES_COPIES, NOTICED, Effect
from seatrial.operations.endpoint_effects import endpoint_effects
from seatrial.operations.refusals import consequence_refusals
from seatrial.operations.serving_parts import COMPONENT, ENDPOINT, moves_component
from seatrial.operations.side_effects import (
    alias_effects,
    custom_effects,
    model_effects,
    policy_effects,
    role_effects,
    scaling_effects,
)
from seatrial_base.catalog import resource_types as replacement
from seatrial_base.catalog.resource_types import find_replacement_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.operations.effect import EffectKind, PlannedSize
    from seatrial.operations.template_diff import ResourceChange, TemplateDiff
    from seatrial_base.findings import Finding


CDK_METADATA = "AWS::CDK::Metadata"
"""Names the CDK's version; it is no resource of the account."""


@dataclass(frozen=True, slots=True)
class ChangeWithEffects:
    """A change of a resource with what it means; an unchanged one has no effects."""

    change: ResourceChange
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Consequences:
    """What an update does.

    Attributes:
        diff: What CloudFormation does.
        rows: Every resource with its effects, in the order of `diff`.
        refused: What can't be done this way, and how to mend it.
        size: What the endpoint is planned with.
    """

    diff: TemplateDiff
    rows: tuple[ChangeWithEffects, ...]
    refused: tuple[Finding, ...]
    size: PlannedSize

    @property
    def touches_copies(self) -> bool:
        """Whether a copy that serves is started, stopped or moved, or may be."""
        return any(effect.kind in MOVES_COPIES for effect in self._effects)

    @property
    def instances(self) -> int:
        """The most instances that are needed at once beside those that serve at the planned number of copies."""
        return max((effect.instances for effect in self._effects), default=0)

    @property
    def most_instances(self) -> int:
        """The same where as many copies serve as autoscaling may start."""
        return max((effect.most_instances for effect in self._effects), default=0)

    @property
    def risk(self) -> EffectKind:
        """The effect that users may notice most; `none` when nothing changes."""
        return min((effect.kind for effect in self._effects), key=BY_RISK.index, default="none")

    @property
    def noticed(self) -> tuple[EffectKind, ...]:
        """Every effect that users may notice, the greatest first; the greatest at all where they notice none."""
        kinds = {effect.kind for effect in self._effects} & NOTICED
        return tuple(sorted(kinds, key=BY_RISK.index)) or (self.risk,)

    @property
    def _effects(self) -> tuple[Effect, ...]:
        return tuple(effect for row in self.rows for effect in row.effects)


def consequences(diff: TemplateDiff, size: PlannedSize) -> Consequences:
    """Say what an update means, resource by resource."""
    moves = moves_component(diff)

    def effects_of(change: ResourceChange) -> tuple[Effect, ...]:
        return () if change.action == "unchanged" else tuple(_effects(change, diff, size, moves=moves))

    rows = tuple(ChangeWithEffects(change, effects_of(change)) for change in diff.changes)
    return Consequences(diff, rows, tuple(consequence_refusals(diff)), size)


def _effects(change: ResourceChange, diff: TemplateDiff, size: PlannedSize, *, moves: bool) -> Iterator[Effect]:
    if change.resource_type == COMPONENT:
        yield from component_effects(change, diff, size)
    elif change.resource_type == ENDPOINT:
        yield from endpoint_effects(change, diff, size)
    elif change.resource_type.startswith(("Custom::", replacement.CUSTOM)):
        yield from custom_effects(change, diff, moves=moves)
    elif view := _OTHERS.get(change.resource_type):
        yield from view(change, diff)
    elif find_replacement_rule(change.resource_type) is None and change.resource_type != CDK_METADATA:
        yield Effect(kind="unknown", because=f"Seatrial has no replacement rules for {change.resource_type}.")
    else:
        yield Effect(kind="none", because="No copy depends on it.")


_OTHERS: dict[str, Callable[[ResourceChange, TemplateDiff], Iterator[Effect]]] = {
    "AWS::SageMaker::Model": model_effects,
    "AWS::SageMaker::EndpointConfig": model_effects,
    "AWS::IAM::Role": role_effects,
    "AWS::ApplicationAutoScaling::ScalableTarget": scaling_effects,
    "AWS::ApplicationAutoScaling::ScalingPolicy": policy_effects,
    "AWS::SSM::Parameter": alias_effects,
}
