"""What a change of an inference component does to its copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.effect import Effect
from seatrial.operations.serving_parts import COMPONENT, SPECIFICATION, at, others
from seatrial_base.units import counted, gib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.template_diff import PropertyChange, ResourceChange, TemplateDiff


def component_effects(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    """Yield what becomes of the copies of one component."""
    if change.action == "created":
        yield from _started(diff, size)
    elif change.action == "deleted":
        yield from _stopped(diff)
    elif change.action == "replaced":
        yield _second(size)
        yield download(size)
    elif change.changes(*SPECIFICATION):
        yield from _moved(change, diff, size)
    elif change.changes("RuntimeConfig"):
        yield from _recounted(change)
    else:
        yield Effect(kind="none", because="The copies stay as they are; the next update follows it.")


def download(size: PlannedSize) -> Effect:
    """Return that the weights are read again, by each copy."""
    because = f"Each new copy reads about {gib(size.weights_bytes)} of weights: {_copies(size)}."
    return Effect(kind="download", because=because)


def _copies(size: PlannedSize) -> str:
    planned = counted(size.copy_count, "copy", "copies")
    return planned if size.max_copies <= size.copy_count else f"{planned} (up to {size.max_copies})"


def _started(diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    if others(diff, COMPONENT, "deleted"):
        yield _second(size)
    else:
        because = f"{counted(size.copy_count, 'copy', 'copies')} of a new component, which serves nobody yet."
        yield Effect(kind="starts", because=because)
    yield download(size)


def _second(size: PlannedSize) -> Effect:
    because = (
        f"{counted(size.copy_count, 'copy', 'copies')} of another component; the old ones serve until it is tried."
    )
    return Effect(kind="second_endpoint", because=because)


def _stopped(diff: TemplateDiff) -> Iterator[Effect]:
    if others(diff, COMPONENT, "created"):
        yield Effect(kind="none", because="Its copies stop in CloudFormation's clean-up, after the new ones serve.")
    else:
        yield Effect(kind="removed", because="Its copies stop; requests to it fail from then on.")


def _moved(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    reason = _reason(next(each for each in change.properties if each.name in SPECIFICATION))
    deployment = diff.new.resources[change.logical_id].properties.get("DeploymentConfig")
    batch = at(deployment, "RollingUpdatePolicy", "MaximumBatchSize")
    because = f"{reason} Replaced at a time: {_batch(batch)} of {_copies(size)}, new ones beside the old ones."
    if batch is None:
        because = f"{reason} Without a rolling update the service replaces all at once: {_copies(size)}."
    yield Effect(
        kind="all_at_once" if batch is None else "rolling_update",
        because=because,
        instances=size.surge(size.copy_count, batch_size_effect(batch, size.copy_count)),
        most_instances=size.surge(size.max_copies, batch_size_effect(batch, size.max_copies)),
    )
    yield download(size)


def batch_size_effect(batch: JsonValue, whole: int) -> int:
    """Return how many of some copies or instances are replaced at a time; all of them where no batch is set.

    Args:
        batch: `MaximumBatchSize` of a rolling update; a share is rounded up.
        whole: All of them.
    """
    value = at(batch, "Value")
    if not isinstance(value, int):
        return whole
    return min(whole, -(-whole * value // 100) if at(batch, "Type") == "CAPACITY_PERCENT" else value)


def _batch(batch: JsonValue) -> str:
    value = at(batch, "Value")
    return f"{value} %" if at(batch, "Type") == "CAPACITY_PERCENT" else f"{value}"


def _reason(change: PropertyChange) -> str:
    if change.follows:
        return f"{change.follows} is replaced, and the component moves to the new one."
    return f"{change.path} changes."


def _recounted(change: ResourceChange) -> Iterator[Effect]:
    found = next(each for each in change.properties if each.name == "RuntimeConfig")
    if found.follows or not isinstance(found.new, int):
        yield Effect(kind="none", because="The update carries the number of copies that run.")
        return
    because = f"The component is set to {counted(found.new, 'copy', 'copies')}, whatever autoscaling has started."
    yield Effect(kind="copies", because=because)
