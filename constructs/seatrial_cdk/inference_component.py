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
        specification=_specification(plan, model.attr_model_name),
        deployment_config=rolling_update(plan),
    )
    component.add_resource_dependency(endpoint)
    component.add_resource_dependency(model)
    return component


def specification_document(plan: Plan, model_name: str) -> dict[str, object]:
    """Return what a copy of the component is, by the names of the SageMaker API."""
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


def _specification(
    plan: Plan, model_name: str
) -> sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty:
    return sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty(
        model_name=model_name,
        compute_resource_requirements=sagemaker.CfnInferenceComponent.InferenceComponentComputeResourceRequirementsProperty(
            number_of_accelerator_devices_required=plan.tensor_parallel_degree.value,
            number_of_cpu_cores_required=plan.cpu_cores_per_copy,
            min_memory_required_in_mb=plan.memory_min_mb.value,
        ),
        startup_parameters=sagemaker.CfnInferenceComponent.InferenceComponentStartupParametersProperty(
            container_startup_health_check_timeout_in_seconds=plan.startup_timeout_s.value,
            model_data_download_timeout_in_seconds=plan.download_timeout_s.value,
        ),
    )
