"""Production and shadow variants that have their model, and how an update moves traffic to new instances of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker

from seatrial_cdk.variant_instances import VARIANT_NAME, instance_pools, request_routing, reserved_capacity

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam

    from seatrial_cdk.serving_container import ServingContainer
    from seatrial_cdk.variant_instances import VariantInstances

SHADOW_NAME = "Shadow"
ONE_PERCENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVariant:
    """A production variant that has its model; the model takes each instance whole.

    Attributes:
        container: What runs on each instance.
        instances: What it runs on; managed instance scaling is for inference components only.
        name: Name of the variant.
        weight: Share of the traffic, relative to the other variants.
        model_role: The role of the container; default: a new one that reads the image and the model alone.
    """

    container: ServingContainer
    instances: VariantInstances
    name: str = VARIANT_NAME
    weight: float = 1.0
    model_role: iam.IRole | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowVariant:
    """A variant that gets copies of requests; its answers are not returned.

    Attributes:
        container: What runs on each instance.
        instances: What it runs on.
        name: Name of the variant.
        sampling_percentage: Share of the requests that are copied, 1 to 100 percent.
        model_role: The role of the container; default: a new one that reads the image and the model alone.
    """

    container: ServingContainer
    instances: VariantInstances
    name: str = SHADOW_NAME
    sampling_percentage: float = 100.0
    model_role: iam.IRole | None = None

    def beside(self, production: ModelVariant) -> ModelVariant:
        """Return it as a variant whose weight makes the share, relative to the production variant's.

        CloudFormation can't multiply: a token gives the production variant's weight, which is the whole share.
        """
        is_token = min(production.weight, self.sampling_percentage) < 0
        share = production.weight * self.sampling_percentage * ONE_PERCENT
        return ModelVariant(
            container=self.container,
            instances=self.instances,
            name=self.name,
            weight=production.weight if is_token else share,
            model_role=self.model_role,
        )


def model_variant(variant: ModelVariant, model_name: str) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """Define a variant with its model.

    Args:
        variant: The variant.
        model_name: Name of the model, or a token of it.
    """
    instances = variant.instances
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=variant.name,
        model_name=model_name,
        initial_variant_weight=variant.weight,
        instance_type=None if instances.pools else instances.instance_type,
        instance_pools=instance_pools(instances),
        variant_instance_provision_timeout_in_seconds=instances.provision_timeout_s,
        initial_instance_count=instances.initial_count,
        inference_ami_version=instances.inference_ami_version,
        volume_size_in_gb=instances.volume_size_gb,
        container_startup_health_check_timeout_in_seconds=instances.startup_timeout_s,
        model_data_download_timeout_in_seconds=instances.download_timeout_s,
        capacity_reservation_config=reserved_capacity(instances),
        routing_config=request_routing(instances.routing),
    )
