"""The instances of an endpoint, and the variants that run on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker

from seatrial_base.field_facts import made_of

if TYPE_CHECKING:
    from typing import Literal

    from aws_cdk import aws_iam as iam

    from seatrial_cdk.endpoint.serving_container import ServingContainer


VARIANT_NAME = "AllTraffic"
SHADOW_NAME = "Shadow"
ONE_PERCENT = 0.01
DEFAULT_TIMEOUT_S = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRouting:
    """How the endpoint chooses the copy that takes a request.

    Attributes:
        strategy: By load, at random, or to where the prompt's beginning was served before.
        prefix_length: Bytes of a request that count as its prefix, 1,024 to 65,536; for `PREFIX_AWARE` alone.
        concurrency_threshold: Requests in flight from which a copy gets no more by prefix, 1 to 1,024; likewise.
    """

    strategy: Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM", "PREFIX_AWARE"] = "LEAST_OUTSTANDING_REQUESTS"
    prefix_length: int | None = None
    concurrency_threshold: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceScaleIn:
    """How managed instance scaling removes instances.

    Attributes:
        strategy: Release idle ones, or move copies together first.
        cooldown_minutes: Time between two removals, 5 to 1,440 minutes; the service's default is 20.
        max_step: Most instances that are removed at a time, 1 to 100.
    """

    strategy: Literal["IDLE_RELEASE", "CONSOLIDATION"] = "IDLE_RELEASE"
    cooldown_minutes: int | None = None
    max_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantInstances:
    """The instances of an endpoint.

    Attributes:
        instance_type: As `ml.g6.2xlarge`; the first of the pools.
        pools: More instance types, in order of priority: the next is taken where one has no capacity.
        initial_count: Instances at the start.
        min_count: Fewest instances that managed instance scaling keeps; default: `initial_count`.
        max_count: Most instances that it starts, those of an update included; default: `initial_count`.
        inference_ami_version: Image of the instances; default: the service's, by instance type.
        volume_size_gb: Size of each volume, in GiB; not for types with local NVMe.
        volume_key_arn: KMS key of the volumes; not for types with local NVMe.
        startup_timeout_s: Time that a container may take to answer its first health check, 60 to 3,600 s.
        download_timeout_s: Time that a download of model data may take, 60 to 3,600 s.
        provision_timeout_s: Time to find capacity in all pools, 300 to 3,600 s; default: the service's.
        capacity_reservation_arn: Reserved capacity that alone is used; default: on demand.
        routing: How a copy is chosen.
        scale_in: How instances are removed; default: as the service does it.
    """

    instance_type: str
    pools: tuple[str, ...] = ()
    initial_count: int = 1
    min_count: int | None = None
    max_count: int | None = None
    inference_ami_version: str | None = None
    volume_size_gb: int | None = None
    volume_key_arn: str | None = None
    startup_timeout_s: int = DEFAULT_TIMEOUT_S
    download_timeout_s: int = DEFAULT_TIMEOUT_S
    provision_timeout_s: int | None = None
    capacity_reservation_arn: str | None = None
    routing: RequestRouting = RequestRouting()
    scale_in: InstanceScaleIn | None = None

    @property
    def fewest(self) -> int:
        """Fewest instances."""
        return self.initial_count if self.min_count is None else self.min_count

    @property
    def most(self) -> int:
        """Most instances."""
        return self.initial_count if self.max_count is None else self.max_count


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
        return made_of(ModelVariant, self, weight=production.weight if is_token else share)


def production_variant(
    instances: VariantInstances, *, name: str = VARIANT_NAME, model_name: str | None = None, weight: float | None = None
) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """Define a variant of an endpoint configuration.

    Args:
        model_name: Name of its model, or a token of it; default: none, for inference components, which name their own.
    """
    config = sagemaker.CfnEndpointConfig
    types, routing = (instances.instance_type, *instances.pools), instances.routing
    pool, reservation_arn = config.InstancePoolProperty, instances.capacity_reservation_arn
    # It follows copies of inference components. A variant with its model has none, and is scaled by `VariantScaling`.
    managed = config.ManagedInstanceScalingProperty(
        status="ENABLED",
        min_instance_count=instances.fewest,
        max_instance_count=instances.most,
        scale_in_policy=config.ScaleInPolicyProperty(
            strategy=instances.scale_in.strategy,
            cooldown_in_minutes=instances.scale_in.cooldown_minutes,
            maximum_step_size=instances.scale_in.max_step,
        )
        if instances.scale_in
        else None,
    )
    return config.ProductionVariantProperty(
        variant_name=name,
        model_name=model_name,
        initial_variant_weight=weight,
        instance_type=None if instances.pools else instances.instance_type,
        instance_pools=[pool(instance_type=each, priority=priority) for priority, each in enumerate(types, 1)]
        if instances.pools
        else None,
        variant_instance_provision_timeout_in_seconds=instances.provision_timeout_s,
        initial_instance_count=instances.initial_count,
        inference_ami_version=instances.inference_ami_version,
        volume_size_in_gb=instances.volume_size_gb,
        container_startup_health_check_timeout_in_seconds=instances.startup_timeout_s,
        model_data_download_timeout_in_seconds=instances.download_timeout_s,
        managed_instance_scaling=managed if model_name is None else None,
        capacity_reservation_config=config.CapacityReservationConfigProperty(
            capacity_reservation_preference="capacity-reservations-only", ml_reservation_arn=reservation_arn
        )
        if reservation_arn is not None
        else None,
        routing_config=config.RoutingConfigProperty(
            routing_strategy=routing.strategy,
            prefix_aware_routing_config=config.PrefixAwareRoutingConfigProperty(
                prefix_length=routing.prefix_length, concurrency_threshold=routing.concurrency_threshold
            )
            if routing.strategy == "PREFIX_AWARE"
            else None,
        ),
    )
