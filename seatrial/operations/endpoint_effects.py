"""What a change of an endpoint does to its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.component_effects import batch_size_effect, download
from seatrial.operations.effect import Effect
from seatrial.operations.serving_parts import ENDPOINT, at, others
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.template_diff import ResourceChange, TemplateDiff


def endpoint_effects(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    """Yield what becomes of the instances of one endpoint."""
    is_second = change.action == "replaced" or (change.action == "created" and bool(others(diff, ENDPOINT, "deleted")))
    instances = f"{counted(size.instance_count, 'instance')} of {size.instance_type}"
    if is_second:
        because = (
            f"{instances} start under another name; the old ones run until CloudFormation's clean-up deletes them."
        )
        yield Effect(
            kind="second_endpoint",
            because=because,
            instances=size.instance_count,
            most_instances=size.max_instances,
        )
    elif change.action == "created":
        because = f"{instances} start."
        yield Effect(kind="starts", because=because, instances=size.instance_count, most_instances=size.max_instances)
    elif change.action == "deleted":
        yield from _deleted(diff)
    elif change.changes("EndpointConfigName"):
        yield from _reconfigured(change, diff, size)
    else:
        yield Effect(kind="none", because="The instances stay as they are.")


def _deleted(diff: TemplateDiff) -> Iterator[Effect]:
    if others(diff, ENDPOINT, "created"):
        yield Effect(kind="none", because="Its instances stop in CloudFormation's clean-up, after the new ones serve.")
    else:
        yield Effect(kind="removed", because="Its instances stop; requests to it fail from then on.")


def _reconfigured(change: ResourceChange, diff: TemplateDiff, size: PlannedSize) -> Iterator[Effect]:
    deployment = diff.new.resources[change.logical_id].properties.get("DeploymentConfig")
    rolling = at(deployment, "RollingUpdatePolicy", "MaximumBatchSize")
    if rolling is None:
        manner = f"{at(deployment, 'BlueGreenUpdatePolicy', 'TrafficRoutingConfiguration', 'Type') or 'ALL_AT_ONCE'}"
        because = f"Its configuration is replaced: a second fleet starts beside the first (blue/green, {manner})."
        yield Effect(kind="doubled", because=because, instances=size.instance_count, most_instances=size.max_instances)
    else:
        planned, most = (batch_size_effect(rolling, whole) for whole in (size.instance_count, size.max_instances))
        because = f"Its configuration is replaced: {planned} of {counted(size.instance_count, 'instance')} at a time."
        yield Effect(kind="rolling_update", because=because, instances=planned, most_instances=most)
    yield download(size)
