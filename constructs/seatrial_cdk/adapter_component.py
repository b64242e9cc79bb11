"""A LoRA adapter as an inference component on the copies of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from seatrial_cdk.execution_role import read_object
from seatrial_cdk.llm_endpoint_interface import ILlmEndpoint
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import policy_document

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial_cdk.added_component import AddedComponent
    from seatrial_cdk.llm_endpoint import LlmEndpoint


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
        base: LlmEndpoint | AddedComponent,
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
