"""A model and the inference component that runs its copies, as CloudFormation resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_sagemaker as sagemaker

from seatrial_cdk.rolling_update import rolling_update

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from constructs import Construct

    from seatrial.plan.document import Plan
    from seatrial.serving.rendered import RenderedConfig
    from seatrial.spec.environment import Network

VARIANT_NAME = "AllTraffic"


def define_model(
    scope: Construct,
    role: iam.Role,
    container: sagemaker.CfnModel.ContainerDefinitionProperty,
    serving: RenderedConfig,
    network: Network,
) -> sagemaker.CfnModel:
    """Define the model: what the container reads and may do. It has no name, because it can only be replaced."""
    model = sagemaker.CfnModel(
        scope,
        "Model",
        execution_role_arn=role.role_arn,
        primary_container=container,
        enable_network_isolation=serving.isolated,
        vpc_config=sagemaker.CfnModel.VpcConfigProperty(
            subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
        )
        if network.subnet_ids
        else None,
    )
    model.node.add_dependency(role)
    return model


def define_component(
    scope: Construct, endpoint: sagemaker.CfnEndpoint, model: sagemaker.CfnModel, name: str, plan: Plan
) -> sagemaker.CfnInferenceComponent:
    """Define the component: how many copies of the model run, and what each takes of an instance."""
    component = sagemaker.CfnInferenceComponent(
        scope,
        "Component",
        endpoint_name=endpoint.attr_endpoint_name,
        inference_component_name=name,
        variant_name=VARIANT_NAME,
        runtime_config=sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(
            copy_count=plan.copy_count.value
        ),
        deployment_config=rolling_update(plan),
    )
    component.add_property_override("Specification", specification_document(plan, model.attr_model_name))
    component.add_resource_dependency(endpoint)
    component.add_resource_dependency(model)
    return component


def specification_document(plan: Plan, model_name: str) -> dict[str, object]:
    """Return what a copy of the component is, by the names of the SageMaker API, which are CloudFormation's too."""
    return {
        "ModelName": model_name,
        "ComputeResourceRequirements": {
            "NumberOfAcceleratorDevicesRequired": plan.tensor_parallel_degree.value,
            "NumberOfCpuCoresRequired": plan.cpu_cores_per_copy,
            "MinMemoryRequiredInMb": plan.memory_min_mb.value,
        },
        "StartupParameters": {
            "ContainerStartupHealthCheckTimeoutInSeconds": plan.startup_timeout_s.value,
            "ModelDataDownloadTimeoutInSeconds": plan.download_timeout_s.value,
        },
    }
