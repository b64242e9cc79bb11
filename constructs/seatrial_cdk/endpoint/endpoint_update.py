"""The move of an endpoint to another configuration: steps that the service accepts, and alarms that roll it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import aws_sagemaker as sagemaker

from seatrial.specs.scaling import copies_replaced_at_once
from seatrial_base.bounds import INSTANCE_START_S, LONGEST_UPDATE_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_cdk.endpoint.variant_instances import VariantInstances


WAIT_S = 60  # for alarms, after each batch; they go on watching while the next one starts
ALARM_WAIT_S = 300  # for alarms, after all traffic has moved at once: as long as they look back
MIN_EXECUTION_TIMEOUT_S, MAX_EXECUTION_TIMEOUT_S = 600, LONGEST_UPDATE_S  # bounds of the API
HUNDRED_PERCENT = 100


def endpoint_update(
    instances: VariantInstances, alarm_names: Sequence[str]
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
    """Define how an endpoint moves to another configuration: some instances at a time, else all at once.

    A batch is 5 to 50 % of the instances (API reference, RollingUpdatePolicy), however many managed scaling runs; where
    no number is, as with one instance, the service starts a second fleet and moves all traffic in one step. One of the
    alarms rolls either back.
    """
    endpoint, batch = sagemaker.CfnEndpoint, batch_of(instances.initial_count, instances.most)
    each_s = start_s(instances)
    return endpoint.DeploymentConfigProperty(
        auto_rollback_configuration=endpoint.AutoRollbackConfigProperty(
            alarms=[endpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
        ),
        rolling_update_policy=None
        if batch is None
        else _rolling(
            endpoint.CapacitySizeProperty(type="INSTANCE_COUNT", value=batch),
            wait_s=WAIT_S,
            longest_s=timeout_s(instances.most, batch, each_s + WAIT_S),
        ),
        blue_green_update_policy=_blue_green(TrafficShift(kind="all_at_once"), each_s) if batch is None else None,
    )


def batch_of(fewest: int, most: int) -> int | None:
    """Return how many of them an update replaces at a time; `None` for all, also where a number is a token.

    A token of a number is far below zero (`aws_cdk.Token.as_number`), where no count is.
    """
    return None if min(fewest, most) < 0 else copies_replaced_at_once(fewest, most)


def start_s(instances: VariantInstances) -> int:
    """Return the time that an instance with its copies may take to start, in seconds."""
    return INSTANCE_START_S + instances.download_timeout_s + instances.startup_timeout_s


def timeout_s(count: int, batch: int, each_s: int) -> int:
    """Return the time that all batches may take one after the other, within the API's bounds.

    A token, which is far below zero, has the longest.
    """
    if min(count, batch, each_s) < 0:
        return MAX_EXECUTION_TIMEOUT_S
    return sorted((MIN_EXECUTION_TIMEOUT_S, -(-count // batch) * each_s, MAX_EXECUTION_TIMEOUT_S))[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficShift:
    """How traffic moves to new instances.

    Attributes:
        kind: All of it at once, a canary and then the rest, in equal steps, or with some instances at a time. All but
            `rolling` run a second fleet beside the first one meanwhile. `rolling` is for one variant alone.
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
        shift: How; default: one variant some instances at a time, several by a canary, where they have a valid number;
            else all at once. SageMaker rolls no endpoint of several variants: it would move all traffic at once, and no
            alarm would roll that back (developer guide, deployment guardrails, exclusions).
    """
    if shift is None:
        if not alarm_names:
            return None
        # What is all at once for the variant with the fewest instances is so for all.
        fewest = min(instances, key=lambda each: (each.initial_count, -each.most))
        if len(instances) == 1 or batch_of(fewest.initial_count, fewest.most) is None:
            return endpoint_update(fewest, alarm_names)
        shift = TrafficShift(kind="canary")
    endpoint = sagemaker.CfnEndpoint
    slowest_s = max(start_s(each) for each in instances)
    return endpoint.DeploymentConfigProperty(
        auto_rollback_configuration=endpoint.AutoRollbackConfigProperty(
            alarms=[endpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
        )
        if alarm_names
        else None,
        rolling_update_policy=_rolling(
            _share(shift.percent),
            wait_s=shift.wait_s,
            longest_s=timeout_s(HUNDRED_PERCENT, shift.percent, slowest_s + shift.wait_s),
        )
        if shift.kind == "rolling"
        else None,
        blue_green_update_policy=None if shift.kind == "rolling" else _blue_green(shift, slowest_s),
    )


def _rolling(
    batch: sagemaker.CfnEndpoint.CapacitySizeProperty, *, wait_s: int, longest_s: int
) -> sagemaker.CfnEndpoint.RollingUpdatePolicyProperty:
    return sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
        maximum_batch_size=batch,
        rollback_maximum_batch_size=batch,
        wait_interval_in_seconds=wait_s,
        maximum_execution_timeout_in_seconds=longest_s,
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
