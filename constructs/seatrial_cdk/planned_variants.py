"""A deployment whose model is in a production variant, as its spec's `hosting` says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import aws_sns as sns

from seatrial.deployment.alias import alias_name
from seatrial_cdk.asynchronous_inference import AsynchronousInference
from seatrial_cdk.container_network import ContainerNetwork
from seatrial_cdk.data_capture import DataCapture
from seatrial_cdk.model_variant import ModelVariant, ShadowVariant
from seatrial_cdk.output_location import OutputLocation
from seatrial_cdk.planned_instances import planned_instances
from seatrial_cdk.planned_props import optimized_container
from seatrial_cdk.single_model_endpoint import SingleModelEndpoint
from seatrial_cdk.variant_instances import VARIANT_NAME

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.specs.hosting import AsynchronousSpec, DataCaptureSpec, ShadowSpec, VariantSpec
    from seatrial_cdk.execution_role import RoleOptions


def define_single_model(
    scope: Construct,
    construct_id: str,
    deployment: Deployment,
    *,
    network: ContainerNetwork | None,
    key: kms.IKey | None,
    role_options: RoleOptions,
) -> SingleModelEndpoint:
    """Define the endpoint of a deployment whose model is in a production variant.

    Args:
        scope: What it belongs to.
        construct_id: Its construct ID.
        deployment: What to deploy.
        network: The VPC of the containers; default: that of the environment.
        key: Key of weights, volumes, answers and captures; default: none.
        role_options: Path and permissions boundary of the new roles.
    """
    environment, hosting = deployment.environment, deployment.endpoint.hosting
    variants = [_variant(scope, deployment, each, key) for each in hosting.variants or ()]
    return SingleModelEndpoint(
        scope,
        construct_id,
        endpoint_name=deployment.endpoint_name,
        base_name=deployment.base_name,
        environment=environment.name,
        alias_name=alias_name(environment.name, deployment.endpoint.name),
        variants=variants or [_planned(scope, deployment, VARIANT_NAME, key)],
        shadow=_shadow(scope, deployment, hosting.shadow, key) if hosting.shadow else None,
        asynchronous=_asynchronous(scope, construct_id, hosting.asynchronous, key) if hosting.asynchronous else None,
        data_capture=_capture(hosting.data_capture, key) if hosting.data_capture else None,
        network=network or ContainerNetwork.of(environment.network),
        weights_key=key,
        role_options=role_options,
    )


def _planned(scope: Construct, deployment: Deployment, name: str, key: kms.IKey | None) -> ModelVariant:
    """Return a variant that runs what a deployment's plan says."""
    spec, key_arn = deployment.endpoint, key.key_arn if key else None
    instances = planned_instances(
        deployment.plan, spec.hosting, volume_key_arn=None if deployment.has_local_nvme else key_arn
    )
    return ModelVariant(name=name, container=optimized_container(scope, deployment), instances=instances)


def _of_spec(
    scope: Construct, deployment: Deployment, asked: VariantSpec | ShadowSpec, key: kms.IKey | None
) -> ModelVariant:
    """Return a variant of another spec, of another image, or of the endpoint's own plan."""
    source = deployment if asked.spec is None else deployment.variant_of(asked.spec)
    variant = _planned(scope, source, asked.name, key)
    if asked.image is not None:
        variant = replace(variant, container=replace(variant.container, image=asked.image))
    if asked.instance_count is not None:
        most = max(asked.instance_count, variant.instances.most)
        counted = replace(variant.instances, initial_count=asked.instance_count, max_count=most)
        variant = replace(variant, instances=counted)
    return variant


def _variant(scope: Construct, deployment: Deployment, asked: VariantSpec, key: kms.IKey | None) -> ModelVariant:
    return replace(_of_spec(scope, deployment, asked, key), weight=asked.weight)


def _shadow(scope: Construct, deployment: Deployment, asked: ShadowSpec, key: kms.IKey | None) -> ShadowVariant:
    variant = _of_spec(scope, deployment, asked, key)
    return ShadowVariant(
        name=asked.name,
        container=variant.container,
        instances=variant.instances,
        sampling_percentage=asked.sampling_percentage,
    )


def _asynchronous(
    scope: Construct, construct_id: str, asked: AsynchronousSpec, key: kms.IKey | None
) -> AsynchronousInference:
    """Return asynchronous inference: requests are put below the prefix of the answers too."""
    failures = asked.failure_s3_uri
    return AsynchronousInference(
        answers=OutputLocation.of_uri(asked.output_s3_uri, key=key),
        failures=None if failures is None else OutputLocation.of_uri(failures, key=key),
        success_topic=_topic(scope, f"{construct_id}Success", asked.success_topic_arn),
        error_topic=_topic(scope, f"{construct_id}Error", asked.error_topic_arn),
        max_concurrent_invocations=asked.max_concurrent_invocations_per_instance,
    )


def _topic(scope: Construct, construct_id: str, arn: str | None) -> sns.ITopic | None:
    return None if arn is None else sns.Topic.from_topic_arn(scope, construct_id, arn)


def _capture(asked: DataCaptureSpec, key: kms.IKey | None) -> DataCapture:
    return DataCapture(
        destination=OutputLocation.of_uri(asked.s3_uri, key=key),
        sampling_percentage=asked.sampling_percentage,
        capture=asked.capture,
    )
