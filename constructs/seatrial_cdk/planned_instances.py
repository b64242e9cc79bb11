"""The instances of a plan, as its spec hosts and scales them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.specs.hosting import HostingSpec
from seatrial.specs.scaling import ScalingSpec
from seatrial_base.catalog.instances import find_instance
from seatrial_cdk.planned_scaling import instance_scale_in
from seatrial_cdk.variant_instances import RequestRouting, VariantInstances

if TYPE_CHECKING:
    from seatrial.planner.document import Plan
    from seatrial.planner.packing import Packing
    from seatrial.specs.hosting import RoutingSpec

AS_PLANNED, AS_SCALED = HostingSpec(), ScalingSpec()


def planned_instances(
    plan: Plan,
    hosting: HostingSpec = AS_PLANNED,
    scaling: ScalingSpec = AS_SCALED,
    *,
    volume_key_arn: str | None = None,
    packing: Packing | None = None,
) -> VariantInstances:
    """Return the instances of a plan.

    Args:
        plan: The plan.
        hosting: How they are hosted.
        scaling: Whether the copies go to zero, and how instances are removed.
        volume_key_arn: Key of the volumes; `None` where the instance type has local NVMe; a pool's is looked up.
        packing: Where the copies of all models run; `None` for one model.
    """
    pools = hosting.instance_pools or ()
    has_volumes = not any(found.nvme_gb for found in map(find_instance, pools) if found)
    return VariantInstances(
        min_count=0 if scaling.goes_to_zero else None,
        scale_in=instance_scale_in(scaling),
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
