"""A model with its role, and the inference components that run its copies: the endpoint's, further ones, adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import CfnTag
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from seatrial_base.bounds import INSTANCE_START_S
from seatrial_base.tags import CONFIG_TAG
from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint, allow_reading_alias
from seatrial_cdk.endpoint.execution_role import (
    NO_OPTIONS,
    ModelSources,
    RoleOptions,
    allow_reading_alarms,
    read_object,
    repository_of,
    serving_role,
)
from seatrial_cdk.endpoint.serving_container import ServingArtifact, ServingContainer, container_definition
from seatrial_cdk.endpoint.variant_instances import (
    DEFAULT_TIMEOUT_S,
    VARIANT_NAME,
    WAIT_S,
    allow_debugging,
    batch_of,
    timeout_s,
)
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import policy_document
from seatrial_cdk.value_checks import check_values, in_unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from aws_cdk import CfnResource, Duration, Size
    from aws_cdk import aws_kms as kms
    from constructs import Construct

    from seatrial_cdk.endpoint.container_network import ContainerNetwork
    from seatrial_cdk.endpoint.endpoint_interface import ComponentEndpoint


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
    memory_min_mb: int | Size
    cpu_cores: float | None = None
    memory_max_mb: int | Size | None = None
    copy_count: int = 1
    max_copies: int | None = None
    update_batch: int | Literal["derived"] | None = "derived"
    startup_timeout_s: int | Duration = DEFAULT_TIMEOUT_S
    download_timeout_s: int | Duration = DEFAULT_TIMEOUT_S
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
    container: ServingContainer,
    network: ContainerNetwork,
    *,
    name: str,
    role: iam.IRole | None,
    weights_key: kms.IKey | None,
    role_options: RoleOptions,
) -> tuple[sagemaker.CfnModel, iam.IRole]:
    """Define a model and the role that it reads with, which reads this image and these weights alone.

    The model has no name, because it can only be replaced.

    Args:
        name: The endpoint's name in its first generation, whose logs and metrics the role writes.
    """
    artifact = ServingArtifact(scope, "Artifact", files=container.files) if container.files else None
    sources = ModelSources(
        repository=repository_of(scope, container.image, container.image_repository),
        artifact=artifact,
        weights_s3_uri=container.readable_s3_uri or container.weights_s3_uri,
        kms_key_arn=weights_key.key_arn if weights_key else None,
        described=container.described,
    )
    role, before = serving_role(
        scope, "ModelRole", role, name=name, sources=sources, network=network, options=role_options
    )
    model = sagemaker.CfnModel(
        scope,
        "Model",
        execution_role_arn=role.role_arn,
        primary_container=container_definition(container, artifact),
        enable_network_isolation=container.network_isolation,
        tags=None if container.digest is None else [CfnTag(key=CONFIG_TAG, value=container.digest)],
        vpc_config=sagemaker.CfnModel.VpcConfigProperty(
            subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
        )
        if network.subnet_ids
        else None,
    )
    model.node.add_dependency(before)
    return model, role


def define_component(
    scope: Construct, endpoint_name: str, model: sagemaker.CfnModel, name: str, copies: ComponentCopies
) -> sagemaker.CfnInferenceComponent:
    """Define the component: how many copies of the model run, and what each takes of an instance."""
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
    # One document for the component and for its candidate (`specification_json`): a candidate that was made of other
    # properties than the component would prove nothing of it.
    component.add_property_override("Specification", specification_document(copies, model.attr_model_name))
    component.add_resource_dependency(model)
    return component


def specification_document(copies: ComponentCopies, model_name: str) -> dict[str, object]:
    """Return what a copy of the component is, by the names of the SageMaker API, which are CloudFormation's too."""
    required = {
        "NumberOfAcceleratorDevicesRequired": copies.accelerators,
        "NumberOfCpuCoresRequired": copies.cpu_cores,
        "MinMemoryRequiredInMb": in_unit(copies.memory_min_mb, "mb"),
        "MaxMemoryRequiredInMb": in_unit(copies.memory_max_mb, "mb"),
    }
    document: dict[str, object] = {
        "ModelName": model_name,
        "ComputeResourceRequirements": {name: value for name, value in required.items() if value is not None},
        "StartupParameters": {
            "ContainerStartupHealthCheckTimeoutInSeconds": in_unit(copies.startup_timeout_s, "s"),
            "ModelDataDownloadTimeoutInSeconds": in_unit(copies.download_timeout_s, "s"),
        },
    }
    if copies.data_cache:
        document["DataCacheConfig"] = {"EnableCaching": True}
    if copies.placement is not None:
        most = copies.placement.max_imbalance
        # CloudFormation's schema requires the balance, which SageMaker's API does not.
        document["SchedulingConfig"] = {
            "PlacementStrategy": copies.placement.strategy,
            "AvailabilityZoneBalance": {
                "EnforcementMode": "PERMISSIVE",
                **({} if most is None else {"MaxImbalance": most}),
            },
        }
    return document


def component_update(
    copies: ComponentCopies, alarm_names: Sequence[str] = ()
) -> sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty | None:
    """Define the update of a component in batches; `None` leaves it to the service, which replaces all copies at once.

    An update that takes longer than every batch may take, or that raises one of the alarms, is rolled back by the
    service, in batches of the same size. Without a rolling policy the API takes no alarms.
    """
    count = copies.replaced_at_once
    if not count:
        return None
    batch = sagemaker.CfnInferenceComponent.InferenceComponentCapacitySizeProperty(type="COPY_COUNT", value=count)
    # The copies of a batch may need an instance that is not there yet.
    each_s = (
        INSTANCE_START_S + in_unit(copies.download_timeout_s, "s") + in_unit(copies.startup_timeout_s, "s") + WAIT_S
    )
    return sagemaker.CfnInferenceComponent.InferenceComponentDeploymentConfigProperty(
        rolling_update_policy=sagemaker.CfnInferenceComponent.InferenceComponentRollingUpdatePolicyProperty(
            maximum_batch_size=batch,
            rollback_maximum_batch_size=batch,
            wait_interval_in_seconds=WAIT_S,
            maximum_execution_timeout_in_seconds=timeout_s(copies.most, count, each_s),
        ),
        auto_rollback_configuration=sagemaker.CfnInferenceComponent.AutoRollbackConfigurationProperty(
            alarms=[sagemaker.CfnInferenceComponent.AlarmProperty(alarm_name=name) for name in alarm_names]
        )
        if alarm_names
        else None,
    )


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
        self.model, self.role = define_model(
            self,
            container,
            endpoint.network,
            name=endpoint.base_name,
            role=model_role,
            weights_key=weights_key,
            role_options=role_options,
        )
        allow_debugging(self, endpoint.instances, self.role)
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
            openai: With a bearer token too, as OpenAI clients do.
        """
        invoked = super().grant_invoke(grantee, openai=openai)
        if self.alias_name is None:
            return invoked
        return invoked.combine(allow_reading_alias(self, grantee, self.alias_name))


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
