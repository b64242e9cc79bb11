"""The container and the copies of a model, as its plan and spec have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput

from seatrial_cdk.inference_component import ComponentCopies, CopyPlacement
from seatrial_cdk.optimization_job.optimized_weights import OptimizedWeights
from seatrial_cdk.planned_instances import AS_PLANNED
from seatrial_cdk.serving_container import ServingContainer

if TYPE_CHECKING:
    from typing import Literal

    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.planner.document import Plan
    from seatrial.specs.hosting import HostingSpec, PlacementSpec


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


def optimized_container(scope: Construct, deployment: Deployment) -> ServingContainer:
    """Return the container of a deployment's model, with the artifacts of its optimization job where it has one.

    Args:
        scope: What the artifacts belong to.
        deployment: What to deploy.
    """
    container, weights = planned_container(deployment), optimized_weights(scope, deployment)
    return container if weights is None else weights.mounted(container)


def optimized_weights(scope: Construct, deployment: Deployment) -> OptimizedWeights | None:
    """Return the artifacts of a deployment's optimization job, each once in a scope; `None` without a job.

    Args:
        scope: What they belong to.
        deployment: What to deploy.
    """
    request = deployment.optimization_job
    if request is None:
        return None
    construct_id = f"Weights{request.digest.upper()}"
    found = scope.node.try_find_child(construct_id)
    if isinstance(found, OptimizedWeights):
        return found
    made = OptimizedWeights(scope, construct_id, request=request, endpoint=deployment.endpoint.name)
    CfnOutput(made, "RecommendedImage", value=made.image_advice)
    return made


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
