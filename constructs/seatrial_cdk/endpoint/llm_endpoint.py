"""`LlmEndpoint`: a SageMaker endpoint that serves an LLM as an inference component, of arguments or of a spec."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeVar

from aws_cdk import Annotations, ArnFormat, Aws, CfnResource, Stack, Tags, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.endpoint_interface import (
    ComponentEndpoint,
    DefinedEndpoint,
    ILlmEndpoint,
    allow_bearers,
    allow_reading_alias,
    generations_of,
)
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions, allow_reading_alarms, serving_role
from seatrial_cdk.endpoint.inference_component import (
    ComponentCopies,
    component_update,
    define_component,
    define_model,
    specification_document,
)
from seatrial_cdk.endpoint.variant_instances import (
    VARIANT_NAME,
    VariantInstances,
    allow_debugging,
    endpoint_update,
    production_variant,
)
from seatrial_cdk.observability.endpoint_alarms import allow_alarms
from seatrial_cdk.place import StackPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import RemovalPolicy
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_sns as sns

    from seatrial.deployment.document import Deployment
    from seatrial_cdk.endpoint.endpoint_parts import EndpointParts
    from seatrial_cdk.endpoint.serving_container import ServingContainer
    from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint

LONGEST_ENDPOINT_NAME = 57  # characters: the component's name has 63, its suffix takes six


class SpecEndpoint(DefinedEndpoint):
    """An endpoint that a spec and its lock may define.

    What it needs for that is loaded by the first call: an endpoint made of arguments needs no planner's documents.

    Attributes:
        parts: What belongs to it; `None` where it was not made from a spec.
    """

    parts: EndpointParts | None = None
    hosting_kind: ClassVar[Literal["inference_component", "single_model"]]
    """The spec's `hosting.kind` that asks for this class."""

    @classmethod
    def from_spec(
        cls,
        scope: Construct,
        construct_id: str,
        spec: str | Path,
        *,
        environment: str,
        environments: str | Path | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        network: ContainerNetwork | None = None,
        key: kms.IKey | None = None,
        alarm_topic: sns.ITopic | None = None,
        trials: Literal["stack", "deployed"] = "stack",
        templates: str | Path | None = None,
    ) -> Self:
        """Define the endpoint of a spec and its lock, with its trial, scaling, alarms, alias and schedule in `parts`.

        A later generation of the plan has its number behind the construct ID.

        Args:
            spec: The endpoint's YAML file; its lock lies beside it.
            environment: Name of the environment.
            environments: Folder of environments; default: `environments` beside the spec, or beside its folder.
            vpc: The VPC of the containers; default: that of the environment's file.
            vpc_subnets: Its subnets; default: the private ones.
            security_groups: Security groups of the containers; default: a new one, in a VPC.
            network: The VPC by IDs, in place of `vpc`.
            key: Key of weights, volumes, answers and captures; default: that of the environment's file.
            alarm_topic: Is notified of alarms; default: that of the environment.
            trials: `stack` adds the environment's `TrialsStack` to the app, unless it is there; `deployed` takes the
                one that the account has already.
            templates: Folder of serving templates that override ours file by file; default: none.

        Raises:
            SpecError: With every problem of spec, environment and lock; SEA125 for a spec of the other kind.
            RenderError: When the plan can't be rendered.
        """
        if vpc is not None:
            home = Construct(scope, f"{construct_id}Network")
            network = ContainerNetwork.in_vpc(home, vpc, subnets=vpc_subnets, security_groups=security_groups)
        if alarm_topic is not None:
            allow_alarms(scope, alarm_topic)
        deployment = _load(Path(spec), environment, environments, templates)
        if deployment.endpoint.hosting.kind != cls.hosting_kind:
            needed = class_of(deployment).__name__
            message, hint = f"hosting.kind needs {needed}, not {cls.__name__}", f"use {needed}.from_spec"
            raise SpecError.of("SEA125", message, hint=hint, where=str(spec), field="hosting.kind")
        return _define_whole(
            cls,
            scope,
            construct_id,
            deployment,
            network=network,
            key=key,
            topic_arn=None if alarm_topic is None else alarm_topic.topic_arn,
            adds_trials_stack=trials == "stack",
        )

    def apply_removal_policy(self, policy: RemovalPolicy) -> None:
        """Keep or delete what serves, and the aliases that name it: see `DefinedEndpoint`."""
        super().apply_removal_policy(policy)
        for alias in () if self.parts is None else (self.parts.alias, *(each.alias for each in self.parts.guests)):
            alias.parameter.apply_removal_policy(policy)

    @classmethod
    def of_deployment(
        cls,
        scope: Construct,
        construct_id: str,
        deployment: Deployment,
        *,
        network: ContainerNetwork | None = None,
        key: kms.IKey | None = None,
    ) -> Self:
        """Define the endpoint of a deployment, without what belongs to it: see `define_endpoint`."""
        environment, metrics = deployment.environment, deployment.endpoint.hosting.metrics
        if key is None and environment.kms_key_arn is not None:
            key = kms.Key.from_key_arn(scope, f"{construct_id}Key", environment.kms_key_arn)
        endpoint = cls._planned(
            scope,
            construct_id,
            deployment,
            network=network or ContainerNetwork.of(environment.network),
            key=key,
            role_options=RoleOptions.of(scope, environment.security, f"{construct_id}Boundary"),
        )
        if metrics is not None:
            endpoint.publish_metrics(**dict(metrics))
        return endpoint

    @classmethod
    def _planned(
        cls,
        scope: Construct,
        construct_id: str,
        deployment: Deployment,
        *,
        network: ContainerNetwork,
        key: kms.IKey | None,
        role_options: RoleOptions,
    ) -> Self:
        """Define the endpoint as plan and spec have it."""
        raise NotImplementedError


class LlmEndpoint(ComponentEndpoint, SpecEndpoint):
    """Model, endpoint configuration, endpoint and inference component.

    Only the endpoint and the component have names of their own. Model and endpoint configuration can't be changed,
    only replaced, and a replacement under a fixed name collides with what it replaces. The component's change of
    model is an update in place.

    CopyCount is the count that is given. With a `CandidateTrial` an update carries the live count instead; without one
    it sets the given count again, and scaling goes on from there. New copies run beside the old ones meanwhile, so
    `instances.max_count` must have room for them.

    Another instance type, tensor parallel degree, AMI or volume is not safe in place: the service moves a live
    endpoint's instances and its components one after the other, and copies of the old size may not fit on what the new
    ones need. Give such a change another `construct_id` and `endpoint_name`: CloudFormation creates the new endpoint
    and component, and deletes the old ones in its clean-up. A plan counts such changes as its generation.

    Its resources carry the environment's name as a tag (`seatrial_base.tags`), where one is given.

    More models share the endpoint's instances as `AddedComponent`s.

    Args:
        instances: What it runs on.
        container: What a copy runs.
        copies: How many copies run, and what each takes of an instance.
        endpoint_name: The endpoint's name; the component is called the same with `-model` behind it. Default: a name
            made of the construct's path.
        base_name: The name of the first generation, which the later ones begin with; default: `endpoint_name`.
        environment: The environment of Seatrial whose trial service may try it; default: none.
        alias_name: Name of the SSM parameter that names the endpoint that serves (`EndpointAlias`); default: none.
        vpc: The VPC of the containers; default: the service's own network.
        vpc_subnets: Its subnets; default: the private ones.
        security_groups: Security groups of the containers; default: a new one, in a VPC.
        network: The VPC by IDs, in place of `vpc`.
        weights_key: Key that the weights are encrypted with; default: none.
        instance_role: The role of the instances, which may write logs and metrics then; default: a new one.
        model_role: The role of the containers, which may read the image and the model then; default: a new one.
        role_options: Path and permissions boundary of the new roles.
    """

    hosting_kind = "inference_component"

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        instances: VariantInstances,
        container: ServingContainer,
        copies: ComponentCopies,
        endpoint_name: str | None = None,
        base_name: str | None = None,
        environment: str | None = None,
        alias_name: str | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        network: ContainerNetwork | None = None,
        weights_key: kms.IKey | None = None,
        instance_role: iam.IRole | None = None,
        model_role: iam.IRole | None = None,
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            longest_name=LONGEST_ENDPOINT_NAME,
            base_name=base_name,
            environment=environment,
            alias_name=alias_name,
            vpc=vpc,
            vpc_subnets=vpc_subnets,
            security_groups=security_groups,
            network=network,
            values={"instances": instances, "container": container, "copies": copies},
        )
        self.component_name = f"{self.endpoint_name}{COMPONENT_SUFFIX}"
        self.inference_component_name = self.component_name
        self.instances, self.copies, self.weights_key = instances, copies, weights_key
        self.role_options = role_options
        self.siblings = ()
        self.instance_role, ready = serving_role(
            self,
            "InstanceRole",
            instance_role,
            name=self.base_name,
            sources=None,
            network=self.network,
            options=role_options,
        )
        self.model, self.model_role = define_model(
            self,
            container,
            self.network,
            name=self.base_name,
            role=model_role,
            weights_key=weights_key,
            role_options=role_options,
        )
        allow_debugging(self, instances, *self.roles_of_weights)
        self.config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            execution_role_arn=self.instance_role.role_arn,
            production_variants=[production_variant(instances)],
            enable_network_isolation=container.network_isolation,
            kms_key_id=instances.volume_key_arn,
            vpc_config=sagemaker.CfnEndpointConfig.VpcConfigProperty(
                subnets=list(self.network.subnet_ids), security_group_ids=list(self.network.security_group_ids)
            )
            if self.network.subnet_ids
            else None,
        )
        # A reference names the role alone; SageMaker uses its policies from the first instance on.
        self.config.node.add_dependency(ready)
        self.endpoint_config_name = self.config.attr_endpoint_config_name
        # The desired count is retained with the others, and not excluded: it belongs to managed instance scaling, which
        # the plan's count would cut back under load. A count outside new bounds is for managed scaling to correct.
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=self.endpoint_name,
            endpoint_config_name=self.endpoint_config_name,
            retain_all_variant_properties=True,
        )
        self.endpoint.add_resource_dependency(self.config)
        self.component = define_component(
            self, self.endpoint.attr_endpoint_name, self.model, self.component_name, copies
        )
        self.component.add_resource_dependency(self.endpoint)
        self.model_name = self.model.attr_model_name
        self.specification = specification_document(copies, self.model_name)
        if copies.copy_count < 1 and not Token.is_unresolved(copies.copy_count):
            message = "SEA443: SageMaker creates no component without copies. Set copy_count to 1 or more; with "
            Annotations.of(self).add_error(message + "min_capacity=0, CopyScaling scales it to zero afterwards.")

    @classmethod
    def _planned(
        cls,
        scope: Construct,
        construct_id: str,
        deployment: Deployment,
        *,
        network: ContainerNetwork,
        key: kms.IKey | None,
        role_options: RoleOptions,
    ) -> Self:
        from seatrial.deployment.alias import alias_name  # noqa: PLC0415 (see `SpecEndpoint`)
        from seatrial_cdk.endpoint import planned_endpoint as planned  # noqa: PLC0415

        spec, environment = deployment.endpoint, deployment.environment.name
        endpoint = cls(
            scope,
            construct_id,
            endpoint_name=deployment.endpoint_name,
            base_name=deployment.base_name,
            environment=environment,
            alias_name=alias_name(environment, spec.name),
            instances=planned.planned_instances(
                deployment.plan,
                spec.hosting,
                spec.scaling,
                volume_key_arn=None if deployment.has_local_nvme or key is None else key.key_arn,
                key=key,
                packing=deployment.packing,
                guests=[guest.plan for guest in deployment.guests],
            ),
            container=planned.optimized_container(scope, deployment),
            copies=planned.planned_copies(deployment.plan, spec.hosting),
            network=network,
            weights_key=key,
            role_options=role_options,
        )
        if (weights := planned.optimized_weights(scope, deployment)) is not None:
            # No instance starts before the artifacts are known to be there.
            endpoint.endpoint.node.add_dependency(weights)
        return endpoint

    @classmethod
    def from_endpoint_name(cls, scope: Construct, construct_id: str, endpoint_name: str) -> ILlmEndpoint:
        """Name an endpoint of this account and region that has the model in its only variant, `AllTraffic`."""
        return cls.from_attributes(scope, construct_id, endpoint_name=endpoint_name)

    @classmethod
    def from_endpoint_arn(
        cls, scope: Construct, construct_id: str, endpoint_arn: str, *, inference_component_name: str | None = None
    ) -> ILlmEndpoint:
        """Name an endpoint by its ARN, also of another account or Region; its names, rights and metrics are those.

        Args:
            endpoint_arn: It may be a token.
            inference_component_name: The component that serves; `None` when the variant `AllTraffic` has the model.

        Raises:
            SpecError: SEA439 when it is no ARN of an endpoint.
        """
        if not Token.is_unresolved(endpoint_arn) and not re.fullmatch(
            r"arn:[^:]+:sagemaker:[a-z0-9-]+:[0-9]{12}:endpoint/[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", f"{endpoint_arn}"
        ):
            hint = "write arn:PARTITION:sagemaker:REGION:ACCOUNT:endpoint/NAME"
            raise SpecError.of("SEA439", f"{endpoint_arn} is no ARN of an endpoint", where=construct_id, hint=hint)
        parts = Stack.of(scope).split_arn(endpoint_arn, ArnFormat.SLASH_RESOURCE_NAME)
        return ILlmEndpoint(
            scope,
            construct_id,
            endpoint_name=parts.resource_name or "",
            inference_component_name=inference_component_name,
            place=StackPlace(parts.partition or Aws.PARTITION, parts.region or "", parts.account or ""),
        )

    @classmethod
    def from_attributes(
        cls,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        inference_component_name: str | None = None,
        variant_name: str = VARIANT_NAME,
        is_asynchronous: bool = False,
    ) -> ILlmEndpoint:
        """Name an endpoint of this account and region that something else made.

        Args:
            inference_component_name: The component that serves; `None` when the variant has the model.
            variant_name: Its production variant.
            is_asynchronous: It takes requests by `InvokeEndpointAsync` alone.
        """
        return ILlmEndpoint(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            inference_component_name=inference_component_name,
            variant_name=variant_name,
            is_asynchronous=is_asynchronous,
        )

    @property
    def serving_resource(self) -> CfnResource:
        """The component, which scaling waits for."""
        return self.component

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update of the component or of the endpoint back when one of these alarms is raised meanwhile.

        The roles of the instances and of the containers may read the alarms, which SageMaker does with them.

        Args:
            alarm_names: One to ten alarms of this account and region; none of them may depend on this endpoint.
        """
        self.component.deployment_config = component_update(self.copies, alarm_names)
        self.endpoint.deployment_config = endpoint_update(self.instances, alarm_names)
        allow_reading_alarms(self, self.roles_of_weights, alarm_names)

    def grant_invoke(self, grantee: iam.IGrantable, *, openai: bool = False) -> iam.Grant:
        """Allow invoking each generation of this endpoint and its component, and reading the alias that names it.

        Further components that the alias splits requests over may be invoked too.

        The rights name no single generation, so that a caller keeps the old endpoint until the alias has moved. ARNs
        have names in lower case; a generation has up to three digits. Without an alias there is one generation.

        Args:
            openai: With a bearer token too, as OpenAI clients do.
        """
        if self.alias_name is None:
            return super().grant_invoke(grantee, openai=openai)
        names = generations_of(self.base_name)
        siblings = [name.removeprefix(self.endpoint_name).lower() for name in self.siblings]
        kinds = [("endpoint", ""), *(("inference-component", end) for end in (COMPONENT_SUFFIX, *siblings))]
        invoked = self._allow_invoking(grantee, [(kind, f"{name}{suffix}") for kind, suffix in kinds for name in names])
        reading = allow_reading_alias(self, grantee, self.alias_name)
        return (invoked.combine(allow_bearers(grantee)) if openai else invoked).combine(reading)


Kind = TypeVar("Kind", bound=SpecEndpoint)


def class_of(deployment: Deployment) -> type[LlmEndpoint | SingleModelEndpoint]:
    """Return the class of a deployment's endpoint."""
    from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint  # noqa: PLC0415 (seldom needed)

    return SingleModelEndpoint if deployment.endpoint.hosting.kind == SingleModelEndpoint.hosting_kind else LlmEndpoint


def define_endpoint(
    scope: Construct,
    construct_id: str,
    deployment: Deployment,
    *,
    network: ContainerNetwork | None = None,
    key: kms.IKey | None = None,
) -> LlmEndpoint | SingleModelEndpoint:
    """Define the endpoint of a deployment in the manner of its hosting, without what belongs to it.

    Args:
        network: The VPC of the containers; default: that of the environment.
        key: Key of weights and volumes; default: that of the environment.
    """
    return class_of(deployment).of_deployment(scope, construct_id, deployment, network=network, key=key)


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
    """Define the endpoint of a spec, of whatever hosting, with what belongs to it: see `LlmEndpoint.from_spec`."""
    deployment = _load(spec, environment, environments, templates)
    return _define_whole(
        class_of(deployment),
        scope,
        construct_id,
        deployment,
        network=network,
        key=key,
        topic_arn=alarm_topic_arn,
        adds_trials_stack=adds_trials_stack,
    )


def _load(spec: Path, environment: str, environments: str | Path | None, templates: str | Path | None) -> Deployment:
    from seatrial.deployment.load import load_deployment  # noqa: PLC0415 (see `SpecEndpoint`)
    from seatrial.specs.load import environments_of  # noqa: PLC0415

    folder = environments_of(spec) if environments is None else Path(environments)
    return load_deployment(spec, folder, environment, templates=None if templates is None else Path(templates))


def _define_whole(
    kind: type[Kind],
    scope: Construct,
    construct_id: str,
    deployment: Deployment,
    *,
    network: ContainerNetwork | None,
    key: kms.IKey | None,
    topic_arn: str | None,
    adds_trials_stack: bool,
) -> Kind:
    """Define an endpoint with its trial, scaling, alarms, alias, outputs and schedule."""
    from seatrial_cdk.endpoint.endpoint_parts import define_outputs, define_parts  # noqa: PLC0415 (see `SpecEndpoint`)
    from seatrial_cdk.jobs.optimization_job import add_jobs  # noqa: PLC0415
    from seatrial_cdk.trials.trials_stack import trials_stack  # noqa: PLC0415

    generation = deployment.plan.generation
    name = construct_id if generation == 1 else f"{construct_id}{generation}"
    endpoint = kind.of_deployment(scope, name, deployment, network=network, key=key)
    stack, environment = Stack.of(scope), deployment.environment
    for what, actual, expected in (
        ("region", stack.region, environment.region),
        ("account", stack.account, environment.account),
    ):
        # Names and prices would be those of another account or region.
        if expected is not None and not Token.is_unresolved(actual) and actual != expected:
            message = f"SEA441: the stack is in {what} {actual}, the environment {environment.name} in {expected}."
            Annotations.of(endpoint).add_error(f"{message} Give the stack env=Environment({what}={expected!r}).")
    add_jobs(stack, deployment)
    if adds_trials_stack and deployment.needs_trial_service:
        stack.add_stack_dependency(trials_stack(scope, environment))
    shared = Construct(scope, f"{construct_id}Names")  # what a later generation has too, by the same logical IDs
    endpoint.parts = define_parts(endpoint, endpoint, deployment, topic=topic_arn, alias_scope=shared)
    define_outputs(shared, endpoint, deployment, endpoint.parts.trial)
    for tag, value in {**environment.tags, **deployment.endpoint.tags}.items():
        Tags.of(endpoint).add(tag, value)
    return endpoint
