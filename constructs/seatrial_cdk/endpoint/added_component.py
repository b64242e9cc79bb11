"""More on an endpoint that is there: further models, and LoRA adapters of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
from seatrial_cdk.endpoint.endpoint_update import component_update
from seatrial_cdk.endpoint.execution_role import (
    NO_OPTIONS,
    ExecutionRole,
    ModelSources,
    RoleOptions,
    allow_reading_alarms,
    read_object,
    repository_of,
)
from seatrial_cdk.endpoint.inference_component import ComponentCopies, define_component, define_model
from seatrial_cdk.endpoint.serving_container import ServingArtifact, ServingContainer, container_definition
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import policy_document
from seatrial_cdk.value_checks import check_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import CfnResource
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from seatrial_cdk.endpoint.component_endpoint import ComponentEndpoint


class AddedComponent(ILlmEndpoint):
    """A model with a role, artifact and inference component of its own, on the instances of an endpoint.

    The endpoint's own instances need room for this component's copies. `EndpointAlarms`, `CopyScaling` and
    `EndpointAlias` take it as they take an endpoint.

    Args:
        endpoint: The endpoint, of the instance type that this component was sized for.
        name: The component is called the endpoint's name with this behind it.
        container: What a copy runs.
        copies: How many copies run, and what each takes of an instance.
        alias_name: Name of the SSM parameter that names the component (`EndpointAlias`); default: none.
        weights_key: Key that the weights are encrypted with; default: none.
        model_role: The role of the containers; default: a new one that reads the image and the model alone.
        role_options: Path and permissions boundary of the new role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ComponentEndpoint,
        name: str,
        container: ServingContainer,
        copies: ComponentCopies,
        alias_name: str | None = None,
        weights_key: kms.IKey | None = None,
        model_role: iam.IRole | None = None,
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        component_name = f"{endpoint.endpoint_name}-{name}"
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint.endpoint_name,
            inference_component_name=component_name,
            variant_name=endpoint.variant_name,
        )
        check_values(self, {"container": container, "copies": copies})
        self.component_name = component_name
        self._instance_role, self._fewest_instances = endpoint.instance_role, endpoint.fewest_instances
        self.base_name, self.alias_name, self.copies = self.component_name, alias_name, copies
        self.environment = endpoint.environment
        self.rolls_back = component_update(copies) is not None
        artifact = ServingArtifact(self, "Artifact", files=container.files) if container.files else None
        sources = ModelSources(
            repository=repository_of(self, container.image, container.image_repository),
            artifact=artifact,
            weights_s3_uri=container.readable_s3_uri or container.weights_s3_uri,
            kms_key_arn=weights_key.key_arn if weights_key else None,
            described=container.described,
        )
        self.role = (
            model_role
            or ExecutionRole(
                self,
                "ModelRole",
                name=endpoint.base_name,
                sources=sources,
                network=endpoint.network,
                options=role_options,
            ).role
        )
        definition = container_definition(container, artifact)
        self.model = define_model(
            self,
            self.role,
            definition,
            endpoint.network,
            network_isolation=container.network_isolation,
            digest=container.digest,
        )
        self.component = define_component(
            self, endpoint.endpoint.attr_endpoint_name, self.model, self.component_name, copies
        )
        self.component.add_resource_dependency(endpoint.endpoint)

    @property
    def serving_resource(self) -> CfnResource:
        """The component, which scaling waits for."""
        return self.component

    @property
    def fewest_instances(self) -> int:
        """Fewest instances that the endpoint keeps without copies."""
        return self._fewest_instances

    @property
    def roles_of_weights(self) -> tuple[iam.IRole, ...]:
        """The roles that may load model data: that of the containers and that of the instances."""
        return self.role, self._instance_role

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update of the component back when one of these alarms is raised meanwhile.

        SageMaker takes alarms for an update in batches alone. It reads them with the roles of the instances and of the
        containers, which may do so from here.

        Args:
            alarm_names: One to ten alarms of this account and region; none of them may depend on this component.
        """
        self.component.deployment_config = component_update(self.copies, alarm_names)
        if self.rolls_back:
            allow_reading_alarms(self, self.roles_of_weights, alarm_names)

    def grant_invoke(self, grantee: iam.IGrantable, *, openai: bool = False) -> iam.Grant:
        """Allow invoking the component on its endpoint, and reading the alias that names it.

        Args:
            grantee: Who may.
            openai: With a bearer token too, as OpenAI clients do.
        """
        invoked = super().grant_invoke(grantee, openai=openai)
        if self.alias_name is None:
            return invoked
        alias = StackPlace.of(self).arn("ssm", f"parameter{self.alias_name}")
        reading = iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameter"], resource_arns=[alias])
        return invoked.combine(reading)


class AdapterComponent(ILlmEndpoint):
    """A LoRA adapter that requests name as an inference component; it uses the copies of the base component.

    It has no accelerators, copies or scaling of its own. The engine of the base must have LoRA on. The roles that the
    base runs with may read the adapter's archive.

    Args:
        base: The endpoint, or the further model on one, whose component has the base model.
        name: The component is called the endpoint's name with `-adapter-` and this behind it.
        artifact_s3_uri: S3 URI of the adapter's files as a `.tar.gz`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        base: ComponentEndpoint | AddedComponent,
        name: str,
        artifact_s3_uri: str,
    ) -> None:
        component_name = f"{base.endpoint_name}-adapter-{name}"
        super().__init__(
            scope,
            construct_id,
            endpoint_name=base.endpoint_name,
            inference_component_name=component_name,
            variant_name=base.variant_name,
        )
        self.component_name = component_name
        reading = iam.Policy(
            self,
            "Read",
            document=policy_document(read_object(StackPlace.of(self), artifact_s3_uri)),
            roles=[*base.roles_of_weights],
        )
        self.component = sagemaker.CfnInferenceComponent(
            self,
            "Component",
            endpoint_name=base.endpoint_name,
            inference_component_name=component_name,
            specification=sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty(
                base_inference_component_name=base.component_name,
                container=sagemaker.CfnInferenceComponent.InferenceComponentContainerSpecificationProperty(
                    artifact_url=artifact_s3_uri
                ),
            ),
        )
        self.component.add_resource_dependency(base.component)
        self.component.node.add_dependency(reading)
