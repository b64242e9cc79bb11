"""A SageMaker endpoint that serves an LLM as an inference component, and has room for more of them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aws_cdk import Annotations, CfnResource, Names, Stack, Tags, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial_base.errors import SpecError
from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_cdk.endpoint.container_network import ContainerNetwork, refuse_parts_of_no_vpc
from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint, generations_of
from seatrial_cdk.endpoint.endpoint_update import component_update, endpoint_update
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, ExecutionRole, ModelSources, RoleOptions, repository_of
from seatrial_cdk.endpoint.inference_component import (
    ComponentCopies,
    define_component,
    define_model,
    specification_document,
)
from seatrial_cdk.endpoint.serving_container import ServingArtifact, ServingContainer, container_definition
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME, VariantInstances, component_variant
from seatrial_cdk.observability.endpoint_alarms import allow_alarms
from seatrial_cdk.place import StackPlace
from seatrial_cdk.value_checks import check_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sns as sns

    from seatrial_cdk.endpoint.deployed_endpoint import EndpointParts

LONGEST_ENDPOINT_NAME = 57  # characters: the component's name has 63, its suffix takes six


class LlmEndpoint(ILlmEndpoint):
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
        instance_role: The role of the instances; default: a new one that writes logs and metrics.
        model_role: The role of the containers; default: a new one that reads the image and the model alone.
        role_options: Path and permissions boundary of the new roles.
    """

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
        super().__init__(scope, construct_id, endpoint_name=endpoint_name or "")
        check_values(self, {"instances": instances, "container": container, "copies": copies})
        if endpoint_name is None:
            self.endpoint_name = Names.unique_resource_name(self, max_length=LONGEST_ENDPOINT_NAME, separator="-")
        self.component_name = f"{self.endpoint_name}{COMPONENT_SUFFIX}"
        self.inference_component_name = self.component_name
        self.base_name = base_name or self.endpoint_name
        self.alias_name = alias_name
        self.instances, self.copies, self.weights_key = instances, copies, weights_key
        self.role_options = role_options
        self.parts: EndpointParts | None = None
        self.siblings: tuple[str, ...] = ()
        self.network = network or ContainerNetwork()
        if vpc is not None:
            self.network = ContainerNetwork.in_vpc(self, vpc, subnets=vpc_subnets, security_groups=security_groups)
        artifact = ServingArtifact(self, "Artifact", files=container.files) if container.files else None
        self.instance_role = instance_role or self._role("InstanceRole", None, role_options)
        sources = ModelSources(
            repository=repository_of(self, container.image, container.image_repository),
            artifact=artifact,
            weights_s3_uri=container.readable_s3_uri or container.weights_s3_uri,
            kms_key_arn=weights_key.key_arn if weights_key else None,
            described=container.described,
        )
        self.model_role = model_role or self._role("ModelRole", sources, role_options)
        self.model = define_model(
            self,
            self.model_role,
            container_definition(container, artifact),
            self.network,
            network_isolation=container.network_isolation,
        )
        self.config = _config(self, network_isolation=container.network_isolation)
        self.endpoint_config_name = self.config.attr_endpoint_config_name
        self.endpoint = _endpoint(self)
        self.component = define_component(
            self, self.endpoint.attr_endpoint_name, self.model, self.component_name, copies
        )
        self.component.add_resource_dependency(self.endpoint)
        self.model_name = self.model.attr_model_name
        self.specification = specification_document(copies, self.model_name)
        if environment is not None:
            Tags.of(self).add(ENVIRONMENT_TAG, environment)
        if copies.copy_count < 1 and not Token.is_unresolved(copies.copy_count):
            message = "SEA443: SageMaker creates no component without copies. Set copy_count to 1 or more; with "
            Annotations.of(self).add_error(message + "min_capacity=0, CopyScaling scales it to zero afterwards.")
        refuse_parts_of_no_vpc(self, vpc, vpc_subnets, security_groups)

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
        key: kms.IKey | None = None,
        alarm_topic: sns.ITopic | None = None,
        trials: Literal["stack", "deployed"] = "stack",
        templates: str | Path | None = None,
    ) -> LlmEndpoint:
        """Define the endpoint of a spec and its lock, with its trial, scaling, alarms, alias and schedule in `parts`.

        A later generation of the plan has its number behind the construct ID.

        Args:
            scope: What it belongs to.
            construct_id: Its construct ID.
            spec: The endpoint's YAML file; its lock lies beside it.
            environment: Name of the environment.
            environments: Folder of environments; default: `environments` beside the spec, or beside its folder.
            vpc: The VPC of the containers; default: that of the environment's file.
            vpc_subnets: Its subnets; default: the private ones.
            security_groups: Security groups of the containers; default: a new one, in a VPC.
            key: Key of weights and volumes; default: that of the environment's file.
            alarm_topic: Is told of alarms; default: that of the environment.
            trials: `stack` adds the environment's `TrialsStack` to the app, unless it is there; `deployed` takes the
                one that the account has already.
            templates: Folder of serving templates that override ours file by file; default: none.

        Raises:
            SpecError: With every problem of spec, environment and lock.
            RenderError: When the plan can't be rendered.
        """
        from seatrial_cdk.endpoint.deployed_endpoint import endpoint_from_spec  # noqa: PLC0415 (it defines this class)

        network = None
        if vpc is not None:
            home = Construct(scope, f"{construct_id}Network")
            network = ContainerNetwork.in_vpc(home, vpc, subnets=vpc_subnets, security_groups=security_groups)
        if alarm_topic is not None:
            allow_alarms(scope, alarm_topic)
        endpoint = endpoint_from_spec(
            scope,
            construct_id,
            Path(spec),
            environment,
            environments=None if environments is None else Path(environments),
            network=network,
            key=key,
            alarm_topic_arn=None if alarm_topic is None else alarm_topic.topic_arn,
            adds_trials_stack=trials == "stack",
            templates=None if templates is None else Path(templates),
        )
        if not isinstance(endpoint, LlmEndpoint):
            message, hint = "hosting.kind is single_model", "use SingleModelEndpoint.from_spec"
            raise SpecError.of("SEA125", message, hint=hint, where=str(spec), field="hosting.kind")
        return endpoint

    @classmethod
    def from_endpoint_name(cls, scope: Construct, construct_id: str, endpoint_name: str) -> ILlmEndpoint:
        """Name an endpoint of this account and region that has the model in its only variant, `AllTraffic`.

        Args:
            scope: What it belongs to.
            construct_id: Its construct ID.
            endpoint_name: Its name.
        """
        return cls.from_attributes(scope, construct_id, endpoint_name=endpoint_name)

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
            scope: What it belongs to.
            construct_id: Its construct ID.
            endpoint_name: Its name.
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

    @property
    def fewest_instances(self) -> int:
        """Fewest instances that the endpoint keeps without copies."""
        return self.instances.fewest

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update of the component or of the endpoint back when one of these alarms is raised meanwhile.

        Args:
            alarm_names: One to ten alarms of this account and region; none of them may depend on this endpoint.
        """
        self.component.deployment_config = component_update(self.copies, alarm_names)
        self.endpoint.deployment_config = endpoint_update(self.instances, alarm_names)

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow invoking each generation of this endpoint and its component, and reading the alias that names it.

        Further components that the alias splits requests over may be invoked too.

        The rights name no single generation, so that a caller keeps the old endpoint until the alias has moved. ARNs
        have names in lower case; a generation has up to three digits. Without an alias there is one generation.
        """
        if self.alias_name is None:
            return super().grant_invoke(grantee)
        names = generations_of(self.base_name)
        siblings = [name.removeprefix(self.endpoint_name).lower() for name in self.siblings]
        kinds = [("endpoint", ""), *(("inference-component", end) for end in (COMPONENT_SUFFIX, *siblings))]
        invoked = self._allow_invoking(grantee, [(kind, f"{name}{suffix}") for kind, suffix in kinds for name in names])
        alias = StackPlace.of(self).arn("ssm", f"parameter{self.alias_name}")
        reading = iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameter"], resource_arns=[alias])
        return invoked.combine(reading)

    @property
    def roles_of_weights(self) -> tuple[iam.IRole, ...]:
        """The roles that may load model data: that of the containers and that of the instances."""
        return self.model_role, self.instance_role

    @cached_property
    def specification_json(self) -> str:
        """What a copy of the component is, as JSON with tokens."""
        return Stack.of(self).to_json_string(self.specification)

    def _role(self, construct_id: str, sources: ModelSources | None, options: RoleOptions) -> iam.IRole:
        return ExecutionRole(
            self, construct_id, name=self.base_name, sources=sources, network=self.network, options=options
        ).role


def _config(scope: LlmEndpoint, *, network_isolation: bool) -> sagemaker.CfnEndpointConfig:
    network = scope.network
    config = sagemaker.CfnEndpointConfig(
        scope,
        "Config",
        execution_role_arn=scope.instance_role.role_arn,
        production_variants=[component_variant(scope.instances)],
        enable_network_isolation=network_isolation,
        kms_key_id=scope.instances.volume_key_arn,
        vpc_config=sagemaker.CfnEndpointConfig.VpcConfigProperty(
            subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
        )
        if network.subnet_ids
        else None,
    )
    config.node.add_dependency(scope.instance_role)
    return config


def _endpoint(scope: LlmEndpoint) -> sagemaker.CfnEndpoint:
    """Define the endpoint; an update keeps the instance count that managed scaling has reached.

    The desired count is retained too, and not excluded: it belongs to managed instance scaling, which the plan's count
    would cut back under load. A count outside new bounds is for managed scaling to mend.
    """
    endpoint = sagemaker.CfnEndpoint(
        scope,
        "Resource",
        endpoint_name=scope.endpoint_name,
        endpoint_config_name=scope.endpoint_config_name,
        retain_all_variant_properties=True,
    )
    endpoint.add_resource_dependency(scope.config)
    return endpoint
