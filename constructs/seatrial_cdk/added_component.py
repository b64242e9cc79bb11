"""One more model on an endpoint that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs import Construct

from seatrial_cdk.execution_role import NO_OPTIONS, ExecutionRole, ModelSources, RoleOptions
from seatrial_cdk.image_repository import repository_of
from seatrial_cdk.inference_component import ComponentCopies, define_component, define_model
from seatrial_cdk.serving_artifact import ServingArtifact
from seatrial_cdk.serving_container import ServingContainer, container_definition

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms

    from seatrial_cdk.llm_endpoint import LlmEndpoint


class AddedComponent(Construct):
    """A model with a role, artifact and inference component of its own, on the instances of an endpoint.

    The endpoint's own instances need room for this component's copies.

    Args:
        endpoint: The endpoint, of the instance type that this component was sized for.
        name: The component is called the endpoint's name with this behind it.
        container: What a copy runs.
        copies: How many copies run, and what each takes of an instance.
        weights_key: Key that the weights are encrypted with; default: none.
        model_role: The role of the containers; default: a new one that reads the image and the model alone.
        role_options: Path and permissions boundary of the new role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        name: str,
        container: ServingContainer,
        copies: ComponentCopies,
        weights_key: kms.IKey | None = None,
        model_role: iam.IRole | None = None,
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(scope, construct_id)
        self.inference_component_name = f"{endpoint.endpoint_name}-{name}"
        artifact = ServingArtifact(self, "Artifact", files=container.files) if container.files else None
        sources = ModelSources(
            repository=repository_of(self, container.image, container.image_repository),
            artifact=artifact,
            weights_s3_uri=container.readable_s3_uri or container.weights_s3_uri,
            kms_key_arn=weights_key.key_arn if weights_key else None,
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
            self, self.role, definition, endpoint.network, network_isolation=container.network_isolation
        )
        self.component = define_component(
            self, endpoint.endpoint.attr_endpoint_name, self.model, self.inference_component_name, copies
        )
        self.component.add_resource_dependency(endpoint.endpoint)
