"""How an inference component moves to another model: some copies at a time, where there are several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker

if TYPE_CHECKING:
    from seatrial.plan.document import Plan

WAIT_S = 60  # for alarms, between two batches
MIN_EXECUTION_TIMEOUT_S, MAX_EXECUTION_TIMEOUT_S = 600, 28_800  # bounds of the API


def rolling_update(plan: Plan) -> sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty | None:
    """Define the update of a component in batches; `None` leaves it to the service, which replaces all copies at once.

    An update that takes longer than every batch may take is rolled back by the service, in batches of the same size.
    """
    if plan.copies_replaced_at_once is None:
        return None
    batch = sagemaker.CfnInferenceComponent.InferenceComponentCapacitySizeProperty(
        type="COPY_COUNT", value=plan.copies_replaced_at_once
    )
    return sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty(
        rolling_update_policy=sagemaker.CfnInferenceComponent.InferenceComponentRollingUpdatePolicyProperty(
            maximum_batch_size=batch,
            rollback_maximum_batch_size=batch,
            wait_interval_in_seconds=WAIT_S,
            maximum_execution_timeout_in_seconds=_execution_timeout_s(plan, plan.copies_replaced_at_once),
        )
    )


def _execution_timeout_s(plan: Plan, batch: int) -> int:
    """Return the time that all batches may take one after the other, within the API's bounds."""
    batches = -(-plan.max_copies // batch)
    whole_s = batches * (plan.download_timeout_s.value + plan.startup_timeout_s.value + WAIT_S)
    return sorted((MIN_EXECUTION_TIMEOUT_S, whole_s, MAX_EXECUTION_TIMEOUT_S))[1]
