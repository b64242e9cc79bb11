"""A model and the inference component that runs its copies, as CloudFormation resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import CfnTag
from aws_cdk import aws_sagemaker as sagemaker

from seatrial_base.tags import CONFIG_TAG
from seatrial_cdk.endpoint.endpoint_update import batch_of, component_update
from seatrial_cdk.endpoint.variant_instances import DEFAULT_TIMEOUT_S, VARIANT_NAME

if TYPE_CHECKING:
    from typing import Literal

    from aws_cdk import aws_iam as iam
    from constructs import Construct

    from seatrial_cdk.endpoint.container_network import ContainerNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlacement:
    """How the copies of a component are placed on instances.

    Attributes:
        strategy: One copy on each instance as far as there are some, or as many copies on an instance as fit.
        max_imbalance: Most copies that one availability zone may have more than another, 0 to 100; default: not
            balanced.
    """

    strategy: Literal["SPREAD", "BINPACK"] = "SPREAD"
    max_imbalance: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCopies:
    """How many copies of a model run, and what each takes of an instance.

    Attributes:
        accelerators: GPUs or Neuron devices of a copy.
        memory_min_mb: Host memory that is reserved for a copy, in MiB (the API's `...InMb`).
        cpu_cores: vCPUs that are reserved for a copy; default: none.
        memory_max_mb: Most host memory of a copy, in MiB; default: no limit.
        copy_count: Copies at creation.
        max_copies: Most copies; default: `copy_count`.
        update_batch: Copies that an update replaces at a time; `None` for all at once; `derived` for the smallest
            number that is 5 to 50 % of the copies however many run, else all at once.
        startup_timeout_s: Time that a copy may take to answer its first health check, 60 to 3,600 s.
        download_timeout_s: Time that the download of its model data may take, 60 to 3,600 s.
        data_cache: Instances keep model data and image for the next copy.
        placement: Where copies are placed; default: as the service does it.
    """

    accelerators: int
    memory_min_mb: int
    cpu_cores: float | None = None
    memory_max_mb: int | None = None
    copy_count: int = 1
    max_copies: int | None = None
    update_batch: int | Literal["derived"] | None = "derived"
    startup_timeout_s: int = DEFAULT_TIMEOUT_S
    download_timeout_s: int = DEFAULT_TIMEOUT_S
    data_cache: bool = False
    placement: CopyPlacement | None = None

    @property
    def most(self) -> int:
        """Most copies."""
        return self.copy_count if self.max_copies is None else self.max_copies

    @property
    def replaced_at_once(self) -> int | None:
        """Copies that an update replaces at a time; `None` when it replaces all of them at once."""
        if self.update_batch != "derived":
            return self.update_batch
        return batch_of(self.copy_count, self.most)


def define_model(
    scope: Construct,
    role: iam.IRole,
    container: sagemaker.CfnModel.ContainerDefinitionProperty,
    network: ContainerNetwork,
    *,
    network_isolation: bool,
    digest: str | None = None,
) -> sagemaker.CfnModel:
    """Define the model: what the container reads and may do. It has no name, because it can only be replaced.

    Args:
        scope: What it belongs to.
        role: What SageMaker reads with.
        container: Image, environment, artifacts.
        network: The VPC of the containers.
        network_isolation: The container makes no connection.
        digest: Of what the container reads, as a tag; default: no tag.
    """
    model = sagemaker.CfnModel(
        scope,
        "Model",
        execution_role_arn=role.role_arn,
        primary_container=container,
        enable_network_isolation=network_isolation,
        tags=None if digest is None else [CfnTag(key=CONFIG_TAG, value=digest)],
        vpc_config=sagemaker.CfnModel.VpcConfigProperty(
            subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
        )
        if network.subnet_ids
        else None,
    )
    model.node.add_dependency(role)
    return model


def define_component(
    scope: Construct, endpoint_name: str, model: sagemaker.CfnModel, name: str, copies: ComponentCopies
) -> sagemaker.CfnInferenceComponent:
    """Define the component: how many copies of the model run, and what each takes of an instance.

    Args:
        scope: What it belongs to.
        endpoint_name: Name of the endpoint, or a token of it.
        model: What runs.
        name: Name of the component.
        copies: How many, and how large.
    """
    component = sagemaker.CfnInferenceComponent(
        scope,
        "Component",
        endpoint_name=endpoint_name,
        inference_component_name=name,
        variant_name=VARIANT_NAME,
        runtime_config=sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(
            copy_count=copies.copy_count
        ),
        deployment_config=component_update(copies),
    )
    component.add_property_override("Specification", specification_document(copies, model.attr_model_name))
    component.add_resource_dependency(model)
    return component


def specification_document(copies: ComponentCopies, model_name: str) -> dict[str, object]:
    """Return what a copy of the component is, by the names of the SageMaker API, which are CloudFormation's too."""
    required = {
        "NumberOfAcceleratorDevicesRequired": copies.accelerators,
        "NumberOfCpuCoresRequired": copies.cpu_cores,
        "MinMemoryRequiredInMb": copies.memory_min_mb,
        "MaxMemoryRequiredInMb": copies.memory_max_mb,
    }
    document: dict[str, object] = {
        "ModelName": model_name,
        "ComputeResourceRequirements": {name: value for name, value in required.items() if value is not None},
        "StartupParameters": {
            "ContainerStartupHealthCheckTimeoutInSeconds": copies.startup_timeout_s,
            "ModelDataDownloadTimeoutInSeconds": copies.download_timeout_s,
        },
    }
    if copies.data_cache:
        document["DataCacheConfig"] = {"EnableCaching": True}
    if copies.placement is not None:
        document["SchedulingConfig"] = _scheduling(copies.placement)
    return document


def _scheduling(placement: CopyPlacement) -> dict[str, object]:
    strategy = {"PlacementStrategy": placement.strategy}
    if placement.max_imbalance is None:
        return {**strategy}
    balance = {"EnforcementMode": "PERMISSIVE", "MaxImbalance": placement.max_imbalance}
    return {**strategy, "AvailabilityZoneBalance": balance}
