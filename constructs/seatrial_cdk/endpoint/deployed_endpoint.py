"""One deployment as constructs: the endpoint, and its trial, scaling, alarms, alias and schedule around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aws_cdk import Annotations, Stack, Tags, Token
from aws_cdk import aws_kms as kms
from constructs import Construct

from seatrial.deployment.alias import alias_name
from seatrial.deployment.load import load_deployment
from seatrial.specs.environment import Security
from seatrial.specs.load import environments_of
from seatrial_base.bounds import IMAGE_PULL_S, INSTANCE_START_S
from seatrial_base.catalog.instances import find_instance
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.endpoint_outputs import EndpointAlias, EndpointOutputs, endpoint_values
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions
from seatrial_cdk.endpoint.guest_models import define_adapters, define_guests, traffic_shares
from seatrial_cdk.endpoint.llm_endpoint import LlmEndpoint
from seatrial_cdk.endpoint.planned_endpoint import (
    optimized_container,
    optimized_weights,
    own_variant,
    planned_asynchronous,
    planned_capture,
    planned_copies,
    planned_instances,
    planned_shadow,
    planned_variant,
)
from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint
from seatrial_cdk.endpoint.traffic_router import TrafficRouter
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME
from seatrial_cdk.jobs.optimizations_stack import add_jobs
from seatrial_cdk.observability.container_alarms import ContainerAlarms
from seatrial_cdk.observability.endpoint_alarms import EndpointAlarms, rollback_alarms_are_off, topic_arn
from seatrial_cdk.observability.planned import define_endpoint_dashboard
from seatrial_cdk.place import shared_stack
from seatrial_cdk.scaling.planned_scaling import define_scaling, start_minutes
from seatrial_cdk.trials.endpoint_trial import CandidateTrial, SmokeBenchmark, TrialSettings
from seatrial_cdk.trials.trial_schedule import TrialSchedule
from seatrial_cdk.trials.trial_service import service_name
from seatrial_cdk.trials.trials_stack import TrialsStack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_cdk.endpoint.added_component import AdapterComponent, AddedComponent
    from seatrial_cdk.endpoint.component_endpoint import ComponentEndpoint
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.endpoint.guest_models import GuestParts
    from seatrial_cdk.scaling.planned_scaling import EndpointScaling


INFO_METADATA = "aws:cdk:info"
RELEASE_S = 300
"""AWS says "a few minutes" (SageMaker API reference, DeleteEndpoint)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointParts:
    """What belongs to an endpoint.

    Attributes:
        alarms: Its alarms.
        candidate: The trial before an update; `None` without trials.
        trial: The trial of what is deployed; `None` without trials.
        scaling: The scaling of its copies or instances; `None` when their number is fixed.
        alias: The SSM parameter that names it.
        schedule: The schedule of its trials; `None` without one.
        guests: The further models on its instances.
        adapters: The adapters of its model.
        router: The function that splits requests for callers without the client; `None` without one.
    """

    alarms: EndpointAlarms
    candidate: CandidateTrial | None
    trial: SmokeBenchmark | None
    scaling: EndpointScaling | None
    alias: EndpointAlias
    schedule: TrialSchedule | None
    guests: tuple[GuestParts, ...] = ()
    adapters: tuple[AdapterComponent, ...] = ()
    router: TrafficRouter | None = None


def define_endpoint(
    scope: Construct,
    construct_id: str,
    deployment: Deployment,
    *,
    network: ContainerNetwork | None = None,
    key: kms.IKey | None = None,
) -> LlmEndpoint | SingleModelEndpoint:
    """Define the endpoint of a deployment, without what belongs to it.

    Args:
        scope: What it belongs to.
        construct_id: Its construct ID.
        deployment: What to deploy.
        network: The VPC of the containers; default: that of the environment.
        key: Key of weights and volumes; default: that of the environment.
    """
    endpoint = _define_endpoint(scope, construct_id, deployment, network=network, key=key)
    if (asked := deployment.endpoint.hosting.metrics) is not None:
        endpoint.publish_metrics(detailed=asked.detailed, enhanced=asked.enhanced, frequency_s=asked.frequency_s)
    return endpoint


def _define_endpoint(
    scope: Construct,
    construct_id: str,
    deployment: Deployment,
    *,
    network: ContainerNetwork | None,
    key: kms.IKey | None,
) -> LlmEndpoint | SingleModelEndpoint:
    """Define the endpoint of a deployment in the manner of its hosting.

    Args:
        scope: What it belongs to.
        construct_id: Its construct ID.
        deployment: What to deploy.
        network: The VPC of the containers; default: that of the environment.
        key: Key of weights and volumes; default: that of the environment.
    """
    environment, spec = deployment.environment, deployment.endpoint
    key_arn = key.key_arn if key else environment.kms_key_arn
    if key is None and key_arn is not None:
        key = kms.Key.from_key_arn(scope, f"{construct_id}Key", key_arn)
    if spec.hosting.kind == "single_model":
        options = _role_options(scope, construct_id, environment.security)
        return _define_single_model(scope, construct_id, deployment, network=network, key=key, role_options=options)
    endpoint = LlmEndpoint(
        scope,
        construct_id,
        endpoint_name=deployment.endpoint_name,
        base_name=deployment.base_name,
        environment=environment.name,
        alias_name=alias_name(environment.name, spec.name),
        instances=planned_instances(
            deployment.plan,
            spec.hosting,
            spec.scaling,
            volume_key_arn=None if deployment.has_local_nvme else key_arn,
            packing=deployment.packing,
        ),
        container=optimized_container(scope, deployment),
        copies=planned_copies(deployment.plan, spec.hosting),
        network=network or ContainerNetwork.of(environment.network),
        weights_key=key,
        role_options=_role_options(scope, construct_id, environment.security),
    )
    if (weights := optimized_weights(scope, deployment)) is not None:
        endpoint.endpoint.node.add_dependency(weights)  # no instance starts before the artifacts are known to be there
    return endpoint


def _define_single_model(
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
    variants = [planned_variant(scope, deployment, each, key) for each in hosting.variants or ()]
    requests = hosting.asynchronous
    return SingleModelEndpoint(
        scope,
        construct_id,
        endpoint_name=deployment.endpoint_name,
        base_name=deployment.base_name,
        environment=environment.name,
        alias_name=alias_name(environment.name, deployment.endpoint.name),
        variants=variants or [own_variant(scope, deployment, VARIANT_NAME, key)],
        shadow=planned_shadow(scope, deployment, hosting.shadow, key) if hosting.shadow else None,
        asynchronous=planned_asynchronous(scope, construct_id, requests, key) if requests else None,
        data_capture=planned_capture(hosting.data_capture, key) if hosting.data_capture else None,
        network=network or ContainerNetwork.of(environment.network),
        weights_key=key,
        role_options=role_options,
    )


def _role_options(scope: Construct, construct_id: str, security: Security) -> RoleOptions:
    """Return what an environment asks of roles."""
    return NO_OPTIONS if security == Security() else RoleOptions.of(Construct(scope, f"{construct_id}Roles"), security)


def endpoint_from_spec(
    scope: Construct,
    construct_id: str,
    spec: Path,
    environment: str,
    *,
    environments: Path | None,
    network: ContainerNetwork | None,
    key: kms.IKey | None,
    alarm_topic_arn: str | None,
    adds_trials_stack: bool,
    templates: Path | None,
) -> LlmEndpoint | SingleModelEndpoint:
    """Define the endpoint of a spec with what belongs to it: see `LlmEndpoint.from_spec`."""
    deployment = load_deployment(spec, environments or environments_of(spec), environment, templates=templates)
    generation = deployment.plan.generation
    name = construct_id if generation == 1 else f"{construct_id}{generation}"
    endpoint = define_endpoint(scope, name, deployment, network=network, key=key)
    _check_place(endpoint, deployment)
    add_jobs(Stack.of(scope), deployment)
    if adds_trials_stack and deployment.endpoint.trial.mode != "off":
        Stack.of(scope).add_stack_dependency(trials_stack(scope, deployment.environment))
    shared = Construct(scope, f"{construct_id}Names")  # what a later generation has too, by the same logical IDs
    endpoint.parts = define_parts(endpoint, endpoint, deployment, topic=alarm_topic_arn, alias_scope=shared)
    define_outputs(shared, endpoint, deployment, endpoint.parts.trial)
    for tag, value in {**deployment.environment.tags, **deployment.endpoint.tags}.items():
        Tags.of(endpoint).add(tag, value)
    return endpoint


def _check_place(endpoint: ILlmEndpoint, deployment: Deployment) -> None:
    """Report a stack in another account or region than the environment's: names and prices would be of another one."""
    stack, environment = Stack.of(endpoint), deployment.environment
    for what, found, asked in (
        ("region", stack.region, environment.region),
        ("account", stack.account, environment.account),
    ):
        if asked is not None and not Token.is_unresolved(found) and found != asked:
            message = f"SEA441: the stack is in {what} {found}, the environment {environment.name} in {asked}."
            Annotations.of(endpoint).add_error(f"{message} Give the stack env=Environment({what}={asked!r}).")


def trials_stack(scope: Construct, environment: EnvironmentSpec) -> TrialsStack:
    """Return the stack of an environment's trials in the stage or app of a construct; it is added when it is not there.

    Args:
        scope: A construct of the stage or app.
        environment: The environment.
    """
    name = service_name(environment.name)
    return shared_stack(
        scope, name, TrialsStack, lambda root: TrialsStack(root, environment=environment, any_stack=True)
    )


def define_parts(
    scope: Construct,
    endpoint: LlmEndpoint | SingleModelEndpoint,
    deployment: Deployment,
    *,
    suffix: str = "",
    topic: str | None = None,
    alias_scope: Construct | None = None,
) -> EndpointParts:
    """Define what belongs to the endpoint of a deployment.

    Args:
        scope: What it belongs to.
        endpoint: The endpoint.
        deployment: What to deploy.
        suffix: Behind each construct ID but the alias's; a later generation has resources of its own.
        topic: ARN of the topic of the alarms; default: that of the environment.
        alias_scope: What the alias belongs to, which stays in each generation; default: `scope`.
    """
    spec = deployment.endpoint
    alarms = EndpointAlarms(
        scope,
        f"Alarms{suffix}",
        endpoint=endpoint,
        slo=spec.slo,
        output_tokens=spec.workload.output_tokens,
        topic_arn=topic or _topic_arn(scope, deployment),
        start_minutes=start_minutes(deployment),
    )
    _alarms_of_variants(scope, f"Alarms{suffix}", endpoint, deployment, topic or _topic_arn(scope, deployment))
    watched = _container_alarms(scope, f"ContainerAlarms{suffix}", endpoint, deployment, topic)
    candidate = trial = None
    if isinstance(endpoint, LlmEndpoint) and spec.trial.mode != "off":
        settings = trial_settings(deployment, alarms)
        candidate = CandidateTrial(scope, f"Candidate{suffix}", endpoint=endpoint, settings=settings)
        trial = SmokeBenchmark(scope, f"Trial{suffix}", endpoint=endpoint, settings=settings)
        alarms.tell_after(trial)
        if watched is not None:
            watched.node.add_dependency(trial)
        follow = f"seatrial trial watch {spec.name} -e {deployment.environment.name}"
        # As `Annotations.add_info` writes it, without its stack trace: that has the folders of this machine.
        told = f"CloudFormation tells nothing of a trial while it runs; follow it: {follow}"
        trial.node.add_metadata(INFO_METADATA, told)
    scaling = define_scaling(scope, f"Scaling{suffix}", endpoint, deployment, trial)
    awaited = [each for each in (trial, scaling) if each is not None]
    resources = _GuestResources()
    if isinstance(endpoint, LlmEndpoint):
        resources = _define_guest_resources(scope, endpoint, deployment, suffix, topic, alias_scope or scope)
    alias = EndpointAlias(
        alias_scope or scope,
        "Alias",
        endpoint=endpoint,
        after=[*awaited, *(each for each in resources.weights if each is not endpoint)],
        weights={each.component_name: weight for each, weight in resources.weights.items()},
    )
    define_endpoint_dashboard(scope, f"Dashboard{suffix}", endpoint, deployment, trial, container_alarms=watched)
    schedule = _schedule(scope, f"Schedule{suffix}", endpoint, deployment) if trial is not None else None
    return EndpointParts(
        alarms=alarms,
        candidate=candidate,
        trial=trial,
        scaling=scaling,
        alias=alias,
        schedule=schedule,
        guests=resources.guests,
        adapters=resources.adapters,
        router=resources.router,
    )


def _schedule(
    scope: Construct, construct_id: str, endpoint: LlmEndpoint | SingleModelEndpoint, deployment: Deployment
) -> TrialSchedule | None:
    environment = deployment.environment
    if environment.trial_schedule is None or not isinstance(endpoint, LlmEndpoint):
        return None
    return TrialSchedule(
        scope,
        construct_id,
        endpoint=endpoint,
        environment=environment.name,
        expression=environment.trial_schedule,
        window_minutes=environment.trial_window_minutes,
        role_path=environment.security.role_path,
    )


@dataclass(frozen=True, slots=True)
class _GuestResources:
    """What stands beside the model of an endpoint: further models, adapters, and how requests are split."""

    guests: tuple[GuestParts, ...] = ()
    adapters: tuple[AdapterComponent, ...] = ()
    weights: Mapping[ComponentEndpoint | AddedComponent, float] = field(default_factory=dict)
    router: TrafficRouter | None = None


def _define_guest_resources(  # noqa: PLR0917 (private)
    scope: Construct,
    endpoint: LlmEndpoint,
    deployment: Deployment,
    suffix: str,
    topic: str | None,
    alias_scope: Construct,
) -> _GuestResources:
    guests: tuple[GuestParts, ...] = ()
    if deployment.guests:
        topic_arn = topic or _topic_arn(scope, deployment)
        guests = define_guests(scope, endpoint, deployment, topic_arn=topic_arn, alias_scope=alias_scope)
    weights = traffic_shares(endpoint, guests, deployment)
    endpoint.siblings = tuple(each.component_name for each in weights if each is not endpoint)
    router = None
    if deployment.endpoint.hosting.router:
        router = TrafficRouter(
            scope,
            f"Router{suffix}",
            endpoint_name=endpoint.endpoint_name,
            components=[*weights.items()],
            role_options=endpoint.role_options,
        )
    return _GuestResources(guests, define_adapters(endpoint, endpoint, deployment), weights, router)


def _container_alarms(
    scope: Construct,
    construct_id: str,
    endpoint: LlmEndpoint | SingleModelEndpoint,
    deployment: Deployment,
    topic: str | None,
) -> ContainerAlarms | None:
    """Define the alarms on what containers tell where the spec asks for it; the embedded AWS has no PromQL alarms."""
    asked = deployment.endpoint.hosting.metrics
    if asked is None or not asked.detailed or deployment.environment.is_embedded:
        return None
    return ContainerAlarms(scope, construct_id, endpoint=endpoint, topic_arn=topic or _topic_arn(scope, deployment))


def _alarms_of_variants(
    scope: Construct,
    construct_id: str,
    endpoint: LlmEndpoint | SingleModelEndpoint,
    deployment: Deployment,
    topic: str | None,
) -> None:
    """Define the alarms of each production variant but the first, whose alarms are those of the endpoint."""
    spec = deployment.endpoint
    if isinstance(endpoint, LlmEndpoint):
        return
    for variant in endpoint.variants[1:]:
        EndpointAlarms(
            scope,
            f"{construct_id}{variant.name}",
            endpoint=endpoint.variant(variant.name),
            slo=spec.slo,
            output_tokens=spec.workload.output_tokens,
            topic_arn=topic,
        )


def define_outputs(
    scope: Construct,
    endpoint: LlmEndpoint | SingleModelEndpoint,
    deployment: Deployment,
    trial: SmokeBenchmark | None,
    *,
    stack_wide: bool = False,
) -> EndpointOutputs:
    """Define what a stack tells of the endpoint of a deployment, as the environment's `outputs` says.

    Args:
        scope: What it belongs to; it stays in each generation, as the names of SSM parameters do.
        endpoint: The endpoint.
        deployment: What is deployed.
        trial: Its trial.
        stack_wide: The stack has this endpoint alone.
    """
    environment = deployment.environment
    alias = alias_name(environment.name, deployment.endpoint.name)
    return EndpointOutputs(
        scope,
        "Outputs",
        values=endpoint_values(endpoint, plan_digest=deployment.plan.digest, trial=trial),
        stack_wide=stack_wide,
        parameters=alias.rpartition("/")[0] if environment.outputs == "both" else None,
    )


def _release_s(environment: EnvironmentSpec) -> int:
    """Return how long grants and network interfaces may stay behind a deleted endpoint, in seconds."""
    return RELEASE_S if environment.kms_key_arn is not None or environment.network.subnet_ids else 0


def _accelerators(deployment: Deployment) -> int:
    """Return the accelerators of one instance; 0 where instances of several types may run, or the type is unknown."""
    found = find_instance(deployment.plan.instance_type.value)
    return 0 if found is None or deployment.endpoint.hosting.instance_pools else found.accelerator_count


def trial_settings(deployment: Deployment, alarms: EndpointAlarms) -> TrialSettings:
    """Return how a deployment is tried.

    Args:
        deployment: What is deployed; its trial is not off.
        alarms: Stop a load beside users.
    """
    trial, plan = deployment.endpoint.trial, deployment.plan
    return TrialSettings(
        environment=deployment.environment.name,
        trial_request=deployment.trial_request,
        plan_digest=plan.digest,
        mode="report" if trial.mode == "report" else "rollback",
        update=trial.update,
        budget_minutes=trial.budget_minutes,
        start_s=plan.download_timeout_s.value + plan.startup_timeout_s.value,
        instance_s=max(INSTANCE_START_S, deployment.endpoint.hosting.provision_timeout_s or 0) + IMAGE_PULL_S,
        accelerators=_accelerators(deployment),
        copy_count=plan.copy_count.value,
        most_copies=max(plan.copy_count.value, deployment.endpoint.scaling.max_copies),
        fallback_target=plan.target_concurrency_per_copy.value,
        release_s=_release_s(deployment.environment),
        removal=deployment.environment.removal,
        alarms=alarms.rollback_names,
        rolls_back=not rollback_alarms_are_off(alarms),
        replaces=list(deployment.former_components),
        is_embedded=deployment.environment.is_embedded,
    )


def _topic_arn(scope: Construct, deployment: Deployment) -> str | None:
    """Return the topic of the alarms: the environment's own, else the one beside the trial service, if any is."""
    environment = deployment.environment
    if environment.alarms.topic_arn is not None or deployment.endpoint.trial.mode == "off":
        return environment.alarms.topic_arn
    return topic_arn(Stack.of(scope), environment.name)
