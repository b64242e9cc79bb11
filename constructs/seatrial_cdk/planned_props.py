"""The props of the constructs, as a plan has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog import instances
from seatrial.spec.hosting import HostingSpec
from seatrial.spec.scaling import InstanceScaleInSpec
from seatrial_cdk.inference_component import ComponentCopies, CopyPlacement
from seatrial_cdk.scaling_limits import ScalingLimits, ScheduledCapacity
from seatrial_cdk.serving_container import ServingContainer
from seatrial_cdk.variant_instances import InstanceScaleIn, RequestRouting, VariantInstances

if TYPE_CHECKING:
    from typing import Literal

    from seatrial.deployment.document import Deployment
    from seatrial.plan.document import Plan
    from seatrial.plan.packing import Packing
    from seatrial.spec.hosting import PlacementSpec, RoutingSpec
    from seatrial.spec.scaling import ScalingSpec

AS_PLANNED = HostingSpec()


def planned_container(deployment: Deployment) -> ServingContainer:
    """Return the container of a deployment's model."""
    model = deployment.endpoint.model
    return ServingContainer.of(
        deployment.serving,
        readable_s3_uri=model.s3_uri,
        accept_eula=model.accept_eula,
        model_package_arn=model.model_package_arn,
        hub_content_arn=model.hub_content_arn,
    )


def planned_instances(
    plan: Plan,
    hosting: HostingSpec = AS_PLANNED,
    *,
    volume_key_arn: str | None = None,
    scaling: ScalingSpec | None = None,
    packing: Packing | None = None,
) -> VariantInstances:
    """Return the instances of a plan.

    Args:
        plan: The plan.
        hosting: How they are hosted.
        volume_key_arn: Key of the volumes; `None` where the instance type has local NVMe; a pool's is looked up.
        scaling: Whether the copies go to zero, and how instances are removed; default: as the service does it.
        packing: Where the copies of all models run; `None` for one model.
    """
    pools = hosting.instance_pools or ()
    has_volumes = not any(found.nvme_gb for found in map(instances.find, pools) if found)
    to_zero = scaling is not None and scaling.goes_to_zero
    return VariantInstances(
        min_count=0 if to_zero else None,
        scale_in=_instance_scale_in(scaling) if scaling else None,
        instance_type=plan.instance_type.value,
        pools=tuple(name for name in pools if name != plan.instance_type.value),
        initial_count=packing.instance_count if packing else plan.instance_count.value,
        max_count=packing.max_instances if packing else plan.max_instances + plan.surge_instances.value,
        inference_ami_version=plan.inference_ami_version.value,
        volume_size_gb=plan.volume_size_gb.value if plan.volume_size_gb and has_volumes else None,
        volume_key_arn=volume_key_arn if has_volumes else None,
        startup_timeout_s=plan.startup_timeout_s.value,
        download_timeout_s=plan.download_timeout_s.value,
        provision_timeout_s=hosting.provision_timeout_s,
        capacity_reservation_arn=hosting.capacity_reservation_arn,
        routing=_routing(hosting.routing),
    )


def _routing(routing: RoutingSpec) -> RequestRouting:
    if routing.strategy == "random":
        return RequestRouting(strategy="RANDOM")
    if routing.strategy == "least_outstanding_requests":
        return RequestRouting()
    return RequestRouting(
        strategy="PREFIX_AWARE",
        prefix_length=routing.prefix_length,
        concurrency_threshold=routing.concurrency_threshold,
    )


def _instance_scale_in(scaling: ScalingSpec) -> InstanceScaleIn | None:
    asked = scaling.instance_scale_in
    if asked == InstanceScaleInSpec():
        return None
    return InstanceScaleIn(
        strategy="CONSOLIDATION" if asked.strategy == "consolidation" else "IDLE_RELEASE",
        cooldown_minutes=asked.cooldown_minutes,
        max_step=asked.max_step,
    )


def scaling_limits(scaling: ScalingSpec) -> ScalingLimits:
    """Return the limits of a spec's scaling."""
    return ScalingLimits(
        min_capacity=scaling.min_copies,
        max_capacity=scaling.max_copies,
        scale_out_cooldown_s=scaling.scale_out_cooldown_s,
        scale_in_cooldown_s=scaling.scale_in_cooldown_s,
        schedules=tuple(
            ScheduledCapacity(
                name=each.name,
                schedule=each.schedule,
                timezone=each.timezone,
                min_capacity=each.min_copies,
                max_capacity=each.max_copies,
            )
            for each in scaling.schedules
        ),
        scale_in_protection=scaling.scale_in_protection,
    )


def planned_copies(plan: Plan, hosting: HostingSpec = AS_PLANNED) -> ComponentCopies:
    """Return the copies of a plan.

    Args:
        plan: The plan.
        hosting: How they are hosted.
    """
    return ComponentCopies(
        accelerators=plan.accelerators_per_copy,
        cpu_cores=plan.cpu_cores_per_copy,
        memory_min_mb=plan.memory_min_mb.value,
        copy_count=plan.copy_count.value,
        max_copies=plan.max_copies,
        update_batch=plan.copies_replaced_at_once,
        startup_timeout_s=plan.startup_timeout_s.value,
        download_timeout_s=plan.download_timeout_s.value,
        data_cache=hosting.data_cache,
        placement=_placement(hosting.placement),
    )


def _placement(placement: PlacementSpec | None) -> CopyPlacement | None:
    if placement is None:
        return None
    strategy: Literal["SPREAD", "BINPACK"] = "SPREAD" if placement.strategy == "spread" else "BINPACK"
    return CopyPlacement(strategy=strategy, max_imbalance=placement.max_imbalance)
