"""The instances of an endpoint, the variants that run on them, and the move to another configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from seatrial.specs.scaling import copies_replaced_at_once
from seatrial_base.bounds import INSTANCE_START_S, LONGEST_UPDATE_S
from seatrial_base.field_facts import made_of
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import acknowledge_wildcards, resources_of, unnamed_statement
from seatrial_cdk.value_checks import in_unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from aws_cdk import Duration, Size
    from constructs import Construct

    from seatrial_cdk.endpoint.output_location import OutputLocation
    from seatrial_cdk.endpoint.serving_container import ServingContainer


VARIANT_NAME = "AllTraffic"
SHADOW_NAME = "Shadow"
ONE_PERCENT = 0.01
DEFAULT_TIMEOUT_S = 1800

WAIT_S = 60  # for alarms, after each batch; they go on watching while the next one starts
ALARM_WAIT_S = 300  # for alarms, after all traffic has moved at once: as long as they look back
MIN_EXECUTION_TIMEOUT_S, MAX_EXECUTION_TIMEOUT_S = 600, LONGEST_UPDATE_S  # bounds of the API
HUNDRED_PERCENT = 100
SHELL_ACTIONS = tuple(f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data"))
DEBUGGING = "Channels of Session Manager have no resource level, and the keys of core dumps are below one prefix."


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
    cooldown_minutes: int | Duration | None = None
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
        ssm_access: Whether Session Manager may open a shell in the containers.
        core_dumps: Where core dumps of a container that crashes are written; default: nowhere.
        routing: How a copy is chosen.
        scale_in: How instances are removed; default: as the service does it.
    """

    instance_type: str
    pools: tuple[str, ...] = ()
    initial_count: int = 1
    min_count: int | None = None
    max_count: int | None = None
    inference_ami_version: str | None = None
    volume_size_gb: int | Size | None = None
    volume_key_arn: str | None = None
    startup_timeout_s: int | Duration = DEFAULT_TIMEOUT_S
    download_timeout_s: int | Duration = DEFAULT_TIMEOUT_S
    provision_timeout_s: int | Duration | None = None
    capacity_reservation_arn: str | None = None
    ssm_access: bool = False
    core_dumps: OutputLocation | None = None
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
            cooldown_in_minutes=in_unit(instances.scale_in.cooldown_minutes, "minutes"),
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
        variant_instance_provision_timeout_in_seconds=in_unit(instances.provision_timeout_s, "s"),
        initial_instance_count=instances.initial_count,
        inference_ami_version=instances.inference_ami_version,
        volume_size_in_gb=in_unit(instances.volume_size_gb, "gb"),
        container_startup_health_check_timeout_in_seconds=in_unit(instances.startup_timeout_s, "s"),
        model_data_download_timeout_in_seconds=in_unit(instances.download_timeout_s, "s"),
        managed_instance_scaling=managed if model_name is None else None,
        capacity_reservation_config=config.CapacityReservationConfigProperty(
            capacity_reservation_preference="capacity-reservations-only", ml_reservation_arn=reservation_arn
        )
        if reservation_arn is not None
        else None,
        enable_ssm_access=instances.ssm_access or None,
        core_dump_config=config.CoreDumpConfigProperty(
            destination_s3_uri=instances.core_dumps.s3_uri, kms_key_id=instances.core_dumps.key_arn
        )
        if instances.core_dumps
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


def allow_debugging(scope: Construct, instances: VariantInstances, *roles: iam.IRole) -> None:
    """Let roles do what SageMaker does with them for shells in containers and core dumps.

    The agent of Systems Manager uses "the execution role that the endpoint runs under" (developer guide, "Access
    containers through SSM"). Which one it is of an endpoint with components is not documented, nor with which a dump is
    written, so that of the configuration and those of the models may.
    """
    statements = [unnamed_statement(*SHELL_ACTIONS)] if instances.ssm_access else []
    if instances.core_dumps is not None:
        statements += instances.core_dumps.writing(StackPlace.of(scope))
    for role in roles if statements else ():
        for statement in statements:
            role.add_to_principal_policy(iam.PolicyStatement.from_json(statement))
        acknowledge_wildcards(role, resources_of(statements), DEBUGGING)


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
    return INSTANCE_START_S + in_unit(instances.download_timeout_s, "s") + in_unit(instances.startup_timeout_s, "s")


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
    wait_s: int | Duration = WAIT_S
    termination_wait_s: int | Duration = ALARM_WAIT_S


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
    slowest_s, wait_s = max(start_s(each) for each in instances), in_unit(shift.wait_s, "s")
    return endpoint.DeploymentConfigProperty(
        auto_rollback_configuration=endpoint.AutoRollbackConfigProperty(
            alarms=[endpoint.AlarmProperty(alarm_name=name) for name in alarm_names]
        )
        if alarm_names
        else None,
        rolling_update_policy=_rolling(
            _share(shift.percent),
            wait_s=wait_s,
            longest_s=timeout_s(HUNDRED_PERCENT, shift.percent, slowest_s + wait_s),
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
    wait_s, termination_wait_s = in_unit(shift.wait_s, "s"), in_unit(shift.termination_wait_s, "s")
    steps = {"all_at_once": 1, "canary": 2, "linear": -(-HUNDRED_PERCENT // shift.percent)}[shift.kind]
    return sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
        traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
            type=shift.kind.upper(),
            wait_interval_in_seconds=wait_s,
            canary_size=_share(shift.percent) if shift.kind == "canary" else None,
            linear_step_size=_share(shift.percent) if shift.kind == "linear" else None,
        ),
        termination_wait_in_seconds=termination_wait_s,
        maximum_execution_timeout_in_seconds=timeout_s(1, 1, slowest_s + steps * wait_s + termination_wait_s),
    )


def _share(percent: int) -> sagemaker.CfnEndpoint.CapacitySizeProperty:
    return sagemaker.CfnEndpoint.CapacitySizeProperty(type="CAPACITY_PERCENT", value=percent)
