"""How an inference component moves to another model, and an endpoint to another configuration; what rolls both back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker

from seatrial.planner.search.capacity import copies_replaced_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_cdk.inference_component import ComponentCopies
    from seatrial_cdk.variant_instances import VariantInstances

WAIT_S = 60  # for alarms, after each batch; they go on watching while the next one starts
ALARM_WAIT_S = 300  # for alarms, after all traffic has moved at once: as long as they look back
INSTANCE_START_S = 600  # an assumption, slow on purpose
MIN_EXECUTION_TIMEOUT_S, MAX_EXECUTION_TIMEOUT_S = 600, 28_800  # bounds of the API


def component_update(
    copies: ComponentCopies, alarm_names: Sequence[str] = ()
) -> sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty | None:
    """Define the update of a component in batches; `None` leaves it to the service, which replaces all copies at once.

    An update that takes longer than every batch may take, or that raises one of the alarms, is rolled back by the
    service, in batches of the same size. Without a rolling policy the API takes no alarms.

    Args:
        copies: How many, and how long each takes to start.
        alarm_names: Alarms of the component.
    """
    count = copies.replaced_at_once
    if not count:
        return None
    batch = sagemaker.CfnInferenceComponent.InferenceComponentCapacitySizeProperty(type="COPY_COUNT", value=count)
    each_s = copies.download_timeout_s + copies.startup_timeout_s + WAIT_S
    return sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty(
        rolling_update_policy=sagemaker.CfnInferenceComponent.InferenceComponentRollingUpdatePolicyProperty(
            maximum_batch_size=batch,
            rollback_maximum_batch_size=batch,
            wait_interval_in_seconds=WAIT_S,
            maximum_execution_timeout_in_seconds=timeout_s(copies.most, count, each_s),
        ),
        auto_rollback_configuration=sagemaker.CfnInferenceComponent.AutoRollbackConfigurationProperty(
            alarms=[sagemaker.CfnInferenceComponent.AlarmProperty(alarm_name=name) for name in alarm_names]
        )
        if alarm_names
        else None,
    )


def endpoint_update(
    instances: VariantInstances, alarm_names: Sequence[str]
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
    """Define how an endpoint moves to another configuration: some instances at a time, else all at once.

    A batch is 5 to 50 % of the instances (API reference, RollingUpdatePolicy), however many managed scaling runs; where
    no number is, as with one instance, the service starts a second fleet and moves all traffic in one step. One of the
    alarms rolls either back.

    Args:
        instances: How many, and how long each takes to start.
        alarm_names: Alarms of the component.
    """
    most = instances.most
    batch = batch_of(instances.initial_count, most)
    return sagemaker.CfnEndpoint.DeploymentConfigProperty(
        auto_rollback_configuration=sagemaker.CfnEndpoint.AutoRollbackConfigProperty(
            alarms=[sagemaker.CfnEndpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
        ),
        rolling_update_policy=None if batch is None else _some_instances_at_a_time(instances, batch),
        blue_green_update_policy=_all_at_once(instances) if batch is None else None,
    )


def _some_instances_at_a_time(
    instances: VariantInstances, batch: int
) -> sagemaker.CfnEndpoint.RollingUpdatePolicyProperty:
    size = sagemaker.CfnEndpoint.CapacitySizeProperty(type="INSTANCE_COUNT", value=batch)
    return sagemaker.CfnEndpoint.RollingUpdatePolicyProperty(
        maximum_batch_size=size,
        rollback_maximum_batch_size=size,
        wait_interval_in_seconds=WAIT_S,
        maximum_execution_timeout_in_seconds=timeout_s(instances.most, batch, start_s(instances) + WAIT_S),
    )


def _all_at_once(instances: VariantInstances) -> sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty:
    return sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
        traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type="ALL_AT_ONCE", wait_interval_in_seconds=WAIT_S
        ),
        termination_wait_in_seconds=ALARM_WAIT_S,
        maximum_execution_timeout_in_seconds=timeout_s(1, 1, start_s(instances) + WAIT_S + ALARM_WAIT_S),
    )


def batch_of(fewest: int, most: int) -> int | None:
    """Return how many of them an update replaces at a time; `None` for all, also where a number is a token.

    A token of a number is far below zero (`aws_cdk.Token.as_number`), where no count is.

    Args:
        fewest: Of copies or instances.
        most: Of them.
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
