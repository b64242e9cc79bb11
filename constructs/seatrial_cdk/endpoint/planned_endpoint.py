"""The endpoint of a deployment: container, copies, instances and variants as plan and spec have them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput
from aws_cdk import aws_sns as sns

from seatrial.specs.hosting import HostingSpec
from seatrial.specs.scaling import InstanceScaleInSpec, ScalingSpec
from seatrial_base.catalog.images import ami_cuda
from seatrial_base.catalog.instances import find_instance
from seatrial_base.field_facts import made_of
from seatrial_cdk.endpoint.inference_component import ComponentCopies, CopyPlacement
from seatrial_cdk.endpoint.output_location import AsynchronousInference, DataCapture, OutputLocation
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_cdk.endpoint.variant_instances import (
    InstanceScaleIn,
    ModelVariant,
    RequestRouting,
    ShadowVariant,
    VariantInstances,
)
from seatrial_cdk.jobs.optimization_job import OptimizedWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.packing import Packing
    from seatrial.documents.plan import Plan
    from seatrial.specs.hosting import AsynchronousSpec, DataCaptureSpec, ShadowSpec, VariantSpec

AS_PLANNED, AS_SCALED = HostingSpec(), ScalingSpec()


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
    """Return the container of a deployment's model, with the artifacts of its optimization job where it has one."""
    container, weights = planned_container(deployment), optimized_weights(scope, deployment)
    return container if weights is None else weights.mounted(container)


def optimized_weights(scope: Construct, deployment: Deployment) -> OptimizedWeights | None:
    """Return the artifacts of a deployment's optimization job, each once in a scope; `None` without a job."""
    request = deployment.optimization_job
    if request is None:
        return None
    construct_id = f"Weights{request.digest.upper()}"
    child = scope.node.try_find_child(construct_id)
    if isinstance(child, OptimizedWeights):
        return child
    made = OptimizedWeights(scope, construct_id, request=request, endpoint=deployment.endpoint.name)
    CfnOutput(made, "RecommendedImage", value=made.image_advice)
    return made


def planned_copies(plan: Plan, hosting: HostingSpec = AS_PLANNED) -> ComponentCopies:
    """Return the copies of a plan."""
    placement = hosting.placement
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
        placement=made_of(CopyPlacement, placement, strategy=placement.strategy.upper()) if placement else None,
    )


def planned_instances(
    plan: Plan,
    hosting: HostingSpec = AS_PLANNED,
    scaling: ScalingSpec = AS_SCALED,
    *,
    volume_key_arn: str | None = None,
    key: kms.IKey | None = None,
    packing: Packing | None = None,
    guests: Sequence[Plan] = (),
) -> VariantInstances:
    """Return the instances of a plan.

    Args:
        volume_key_arn: Key of the volumes; `None` where the instance type has local NVMe; a pool's is looked up.
        key: Key of core dumps.
        packing: Where the copies of all models run; `None` for one model.
        guests: The plans of the other models.
    """
    # The driver of a newer AMI runs the CUDA of an older one: the instances are the newest that a model asks for.
    amis = (each.inference_ami_version.value for each in (plan, *guests))
    ami = max(amis, key=lambda version: (version and ami_cuda(version)) or (0, 0))
    pools, scale_in, routing = hosting.instance_pools or (), scaling.instance_scale_in, hosting.routing
    has_volumes = not any(instance.nvme_gb for instance in map(find_instance, pools) if instance)
    return made_of(
        VariantInstances,
        hosting,
        min_count=0 if scaling.goes_to_zero else None,
        scale_in=None
        if scale_in == InstanceScaleInSpec()
        else made_of(InstanceScaleIn, scale_in, strategy=(scale_in.strategy or "idle_release").upper()),
        instance_type=plan.instance_type.value,
        pools=tuple(name for name in pools if name != plan.instance_type.value),
        initial_count=packing.instance_count if packing else plan.instance_count.value,
        max_count=packing.max_instances if packing else plan.max_instances + plan.surge_instances.value,
        inference_ami_version=ami,
        volume_size_gb=plan.volume_size_gb.value if plan.volume_size_gb and has_volumes else None,
        volume_key_arn=volume_key_arn if has_volumes else None,
        startup_timeout_s=plan.startup_timeout_s.value,
        download_timeout_s=plan.download_timeout_s.value,
        core_dumps=None
        if hosting.core_dump_s3_uri is None
        else OutputLocation.of_uri(hosting.core_dump_s3_uri, key=key),
        routing=made_of(RequestRouting, routing, strategy=routing.strategy.upper())
        if routing.strategy == "prefix_aware"
        else RequestRouting(strategy="RANDOM" if routing.strategy == "random" else "LEAST_OUTSTANDING_REQUESTS"),
    )


def own_variant(scope: Construct, deployment: Deployment, name: str, key: kms.IKey | None) -> ModelVariant:
    """Return a variant that runs what a deployment's plan says."""
    spec, key_arn = deployment.endpoint, key.key_arn if key else None
    instances = planned_instances(
        deployment.plan, spec.hosting, volume_key_arn=None if deployment.has_local_nvme else key_arn, key=key
    )
    return ModelVariant(name=name, container=optimized_container(scope, deployment), instances=instances)


def _of_spec(
    scope: Construct, deployment: Deployment, spec: VariantSpec | ShadowSpec, key: kms.IKey | None
) -> ModelVariant:
    """Return a variant of another spec, of another image, or of the endpoint's own plan."""
    source = deployment if spec.spec is None else deployment.variant_of(spec.spec)
    variant = own_variant(scope, source, spec.name, key)
    if spec.image is not None:
        variant = replace(variant, container=replace(variant.container, image=spec.image))
    if spec.instance_count is not None:
        most = max(spec.instance_count, variant.instances.most)
        counted = replace(variant.instances, initial_count=spec.instance_count, max_count=most)
        variant = replace(variant, instances=counted)
    return variant


def planned_variant(scope: Construct, deployment: Deployment, spec: VariantSpec, key: kms.IKey | None) -> ModelVariant:
    """Return one production variant as the spec names it, with its weight."""
    return replace(_of_spec(scope, deployment, spec, key), weight=spec.weight)


def planned_shadow(scope: Construct, deployment: Deployment, spec: ShadowSpec, key: kms.IKey | None) -> ShadowVariant:
    """Return the shadow variant of a spec."""
    return made_of(ShadowVariant, spec, _of_spec(scope, deployment, spec, key))


def planned_asynchronous(
    scope: Construct, construct_id: str, spec: AsynchronousSpec, key: kms.IKey | None
) -> AsynchronousInference:
    """Return asynchronous inference: requests are put below the prefix of the answers too."""
    failures = spec.failure_s3_uri
    return AsynchronousInference(
        answers=OutputLocation.of_uri(spec.output_s3_uri, key=key),
        failures=None if failures is None else OutputLocation.of_uri(failures, key=key),
        success_topic=_topic(scope, f"{construct_id}Success", spec.success_topic_arn),
        error_topic=_topic(scope, f"{construct_id}Error", spec.error_topic_arn),
        max_concurrent_invocations=spec.max_concurrent_invocations_per_instance,
    )


def _topic(scope: Construct, construct_id: str, arn: str | None) -> sns.ITopic | None:
    return None if arn is None else sns.Topic.from_topic_arn(scope, construct_id, arn)


def planned_capture(spec: DataCaptureSpec, key: kms.IKey | None) -> DataCapture:
    """Return what a spec keeps of requests and answers."""
    return made_of(DataCapture, spec, destination=OutputLocation.of_uri(spec.s3_uri, key=key))
