"""One more model on an endpoint that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs import Construct

from seatrial.errors import SpecError
from seatrial_cdk.execution_role import ExecutionRole, ModelSources
from seatrial_cdk.inference_component import define_component, define_model
from seatrial_cdk.model_container import model_container
from seatrial_cdk.serving_artifact import ServingArtifact

if TYPE_CHECKING:
    from seatrial.plan.document import Plan
    from seatrial.serving.rendered import RenderedConfig
    from seatrial.spec.environment import Network
    from seatrial_cdk.llm_endpoint import LlmEndpoint


class AddedComponent(Construct):
    """A model with a role, artifact and inference component of its own, on the instances of an endpoint.

    The endpoint's own plan sets instance type and counts: plan it with room for this component's copies.

    Args:
        endpoint: The endpoint, of the instance type that this component was planned for.
        name: The component is called the endpoint's name with this behind it.
        plan: Degree, copies and timeouts of this model.
        serving: What its container will read.
        network: The VPC of its containers.
        accept_eula: The user has accepted the licence of the mounted weights.
        kms_key_arn: Key of the weights; default: none.

    Raises:
        SpecError: SEA404 when the component was planned for another instance type than the endpoint's.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        name: str,
        plan: Plan,
        serving: RenderedConfig,
        network: Network,
        accept_eula: bool = False,
        kms_key_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if plan.instance_type.value != endpoint.instance_type:
            message = (
                f"{name} was planned for {plan.instance_type.value}, but the endpoint has {endpoint.instance_type}"
            )
            raise SpecError.of(
                "SEA404", message, hint=f"set serving.instance_types: [{endpoint.instance_type}] in its spec"
            )
        self.inference_component_name = f"{endpoint.endpoint_name}-{name}"
        artifact = ServingArtifact(self, "Artifact", files=serving.files) if serving.files else None
        self.role = ExecutionRole(
            self,
            "ModelRole",
            name=endpoint.base_name,
            sources=ModelSources(
                image=serving.image,
                artifact=artifact,
                weights_s3_uri=serving.weights_s3_uri,
                kms_key_arn=kms_key_arn,
            ),
            network=network,
        ).role
        container = model_container(serving, artifact=artifact, accept_eula=accept_eula)
        self.model = define_model(self, self.role, container, serving, network)
        self.component = define_component(self, endpoint.endpoint, self.model, self.inference_component_name, plan)
