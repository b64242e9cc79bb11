"""Constructs of endpoints that serve LLMs on SageMaker: `from seatrial_cdk import LlmEndpoint`.

A name is loaded when it is first used, with what it needs and nothing else; its type is in `__init__.pyi`.
"""

from importlib import import_module

_NAMES = {
    "delivery.delivery_pipeline": "DeliveryPipeline",
    "delivery.hosting_checks": "HostingChecks",
    "delivery.plain_errors": "plain_errors",
    "endpoint.container_network": "ContainerNetwork HostingVpcEndpoints",
    "endpoint.endpoint_interface": "ILlmEndpoint",
    "endpoint.endpoint_parts": (
        "EndpointAlias EndpointOutputs endpoint_values TrafficRouter GuestParts EndpointParts define_parts "
        "define_outputs"
    ),
    "endpoint.execution_role": "ImageRepository ModelSources RoleOptions ExecutionRole",
    "endpoint.inference_component": "CopyPlacement ComponentCopies AddedComponent AdapterComponent",
    "endpoint.llm_endpoint": "LlmEndpoint define_endpoint endpoint_from_spec",
    "endpoint.output_location": "OutputLocation OutputBucket DataCapture AsynchronousInference AsynchronousLocations",
    "endpoint.serving_container": "ServingArtifact ServingContainer",
    "endpoint.single_model_endpoint": "SingleModelEndpoint",
    "endpoint.variant_instances": (
        "RequestRouting InstanceScaleIn VariantInstances ModelVariant ShadowVariant TrafficShift"
    ),
    "jobs.optimization_job": "OptimizationJob OptimizationsStack optimizations_stack add_jobs OptimizedWeights",
    "jobs.optimization_service": "OptimizationService",
    "observability.endpoint_alarms": (
        "topic_name topic_arn OnCall AlarmTopic allow_alarms EndpointAlarms longest_latency_ms ContainerAlarms "
        "ReservationAlarm"
    ),
    "observability.endpoint_dashboard": "DashboardInstances DashboardTrials EndpointDashboard",
    "observability.environment_dashboard": "ShownEndpoint EnvironmentDashboard EnvironmentBudget",
    "observability.on_call": "OnCallTopics on_call_of",
    "scaling.endpoint_scaling": "CopyScaling VariantScaling BacklogScaling ScheduledCapacity ScalingLimits",
    "trials.endpoint_trial": "TrialSettings CandidateTrial SmokeBenchmark ModelRecord ExistingEndpointTrial",
    "trials.trial_service": "service_name function_arn TrialService TrialResults",
    "trials.trials_stack": "TrialsStack trials_stack TrialScheduleGroup TrialSchedule schedule_name",
    "policy": "acknowledge acknowledge_wildcards",
    "value_checks": "NumberBounds",
    "vending.launch_role": "LaunchRole",
    "vending.product_portfolio": "Offer ProductPortfolio ProjectTemplates",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = [*_MODULES]  # noqa: PLE0604 (names, of which a type checker reads `__init__.pyi`)


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    loaded: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = loaded
    return loaded


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *_MODULES})
