"""How an update of an endpoint with models in its variants moves traffic to the new instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import aws_sagemaker as sagemaker

from seatrial_cdk.rolling_update import ALARM_WAIT_S, WAIT_S, endpoint_update, start_s, timeout_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_cdk.variant_instances import VariantInstances

HUNDRED_PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficShift:
    """How traffic moves to new instances.

    Attributes:
        kind: All of it at once, a canary and then the rest, in equal steps, or with some instances at a time. All but
            `rolling` run a second fleet beside the first one meanwhile.
        percent: Share of the capacity that is the canary (at most 50), a step (10 to 50) or a batch (5 to 50).
        wait_s: Time to watch the alarms after each step, 0 to 3,600 s.
        termination_wait_s: Time until the old fleet goes, 0 to 3,600 s; not for `rolling`.
    """

    kind: Literal["all_at_once", "canary", "linear", "rolling"]
    percent: int = 10
    wait_s: int = WAIT_S
    termination_wait_s: int = ALARM_WAIT_S


def variants_update(
    shift: TrafficShift | None, instances: Sequence[VariantInstances], alarm_names: Sequence[str]
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty | None:
    """Define how an endpoint moves to another configuration; `None` leaves it to the service.

    Args:
        shift: How; default: some instances at a time where all variants have a valid number, else all at once.
        instances: The instances of each variant.
        alarm_names: Alarms that roll it back.
    """
    if shift is None:
        return endpoint_update(_alike(instances), alarm_names) if alarm_names else None
    endpoint = sagemaker.CfnEndpoint
    slowest_s = max(start_s(each) for each in instances)
    return endpoint.DeploymentConfigProperty(
        auto_rollback_configuration=endpoint.AutoRollbackConfigProperty(
            alarms=[endpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
        )
        if alarm_names
        else None,
        rolling_update_policy=_rolling(shift, slowest_s) if shift.kind == "rolling" else None,
        blue_green_update_policy=None if shift.kind == "rolling" else _blue_green(shift, slowest_s),
    )


def _alike(instances: Sequence[VariantInstances]) -> VariantInstances:
    """Return the variant with the fewest instances: what is all at once for it is so for all."""
    return min(instances, key=lambda each: (each.initial_count, -each.most))


def _rolling(shift: TrafficShift, slowest_s: int) -> sagemaker.CfnEndpoint.RollingUpdatePolicyProperty:
    size = _share(shift.percent)
    return sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
        maximum_batch_size=size,
        rollback_maximum_batch_size=size,
        wait_interval_in_seconds=shift.wait_s,
        maximum_execution_timeout_in_seconds=timeout_s(HUNDRED_PERCENT, shift.percent, slowest_s + shift.wait_s),
    )


def _blue_green(shift: TrafficShift, slowest_s: int) -> sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty:
    steps = {"all_at_once": 1, "canary": 2, "linear": -(-HUNDRED_PERCENT // shift.percent)}[shift.kind]
    return sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
        traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type=shift.kind.upper(),
            wait_interval_in_seconds=shift.wait_s,
            canary_size=_share(shift.percent) if shift.kind == "canary" else None,
            linear_step_size=_share(shift.percent) if shift.kind == "linear" else None,
        ),
        termination_wait_in_seconds=shift.termination_wait_s,
        maximum_execution_timeout_in_seconds=timeout_s(
            1, 1, slowest_s + steps * shift.wait_s + shift.termination_wait_s
        ),
    )


def _share(percent: int) -> sagemaker.CfnEndpoint.CapacitySizeProperty:
    return sagemaker.CfnEndpoint.CapacitySizeProperty(type="CAPACITY_PERCENT", value=percent)
