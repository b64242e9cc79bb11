"""Model, endpoint configuration, endpoint and inference component as resources."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from aws_cdk import Annotations, CfnResource, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial_cdk.endpoint.endpoint_interface import DefinedEndpoint, ILlmEndpoint, allow_bearers, generations_of
from seatrial_cdk.endpoint.endpoint_update import component_update, endpoint_update
from seatrial_cdk.endpoint.execution_role import (
    NO_OPTIONS,
    ExecutionRole,
    ModelSources,
    RoleOptions,
    allow_reading_alarms,
    repository_of,
)
from seatrial_cdk.endpoint.inference_component import (
    ComponentCopies,
    define_component,
    define_model,
    specification_document,
)
from seatrial_cdk.endpoint.serving_container import ServingArtifact, ServingContainer, container_definition
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME, VariantInstances, component_variant
from seatrial_cdk.place import StackPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from seatrial_cdk.endpoint.container_network import ContainerNetwork


LONGEST_ENDPOINT_NAME = 57  # characters: the component's name has 63, its suffix takes six


class ComponentEndpoint(DefinedEndpoint):
    """What `LlmEndpoint` is, however it was made: see there."""

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
        self.siblings: tuple[str, ...] = ()
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
            digest=container.digest,
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
        if copies.copy_count < 1 and not Token.is_unresolved(copies.copy_count):
            message = "SEA443: SageMaker creates no component without copies. Set copy_count to 1 or more; with "
            Annotations.of(self).add_error(message + "min_capacity=0, CopyScaling scales it to zero afterwards.")

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
            grantee: Who may.
            openai: With a bearer token too, as OpenAI clients do.
        """
        if self.alias_name is None:
            return super().grant_invoke(grantee, openai=openai)
        names = generations_of(self.base_name)
        siblings = [name.removeprefix(self.endpoint_name).lower() for name in self.siblings]
        kinds = [("endpoint", ""), *(("inference-component", end) for end in (COMPONENT_SUFFIX, *siblings))]
        invoked = self._allow_invoking(grantee, [(kind, f"{name}{suffix}") for kind, suffix in kinds for name in names])
        alias = StackPlace.of(self).arn("ssm", f"parameter{self.alias_name}")
        reading = iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameter"], resource_arns=[alias])
        return (invoked.combine(allow_bearers(grantee)) if openai else invoked).combine(reading)

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


def _config(scope: ComponentEndpoint, *, network_isolation: bool) -> sagemaker.CfnEndpointConfig:
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


def _endpoint(scope: ComponentEndpoint) -> sagemaker.CfnEndpoint:
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
