"""What the control plane says of a live endpoint, held against what its lock says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from seatrial.account.response import count, mapping, rows, text_at
from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.operations.drift.report import drift_finding
from seatrial_base.catalog.images import image_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.deployment.document import Deployment
    from seatrial.documents.live_stack import LiveStack
    from seatrial_base.findings import Finding, Severity

HINT = "find out who changed it; set it back with `cdk deploy --revert-drift`, or take it over into the spec"
ONLY_VARIANT = "AllTraffic"  # the name of a variant that nobody named, as our constructs give it
SECRET = "(secret)"  # what is shown in place of a value  # noqa: S105 (no password)


class LiveEndpoints(Protocol):
    """The calls of SageMaker that a drift check makes: all of them only read."""

    def describe_endpoint(self, *, EndpointName: str) -> Mapping[str, object]:  # noqa: N803 (the service's words)
        """Return an endpoint."""

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> Mapping[str, object]:  # noqa: N803
        """Return an endpoint configuration."""

    def describe_inference_component(self, *, InferenceComponentName: str) -> Mapping[str, object]:  # noqa: N803
        """Return an inference component."""

    def describe_model(self, *, ModelName: str) -> Mapping[str, object]:  # noqa: N803
        """Return a model."""

    def list_endpoints(self, **asked: str) -> Mapping[str, object]:
        """Return a page of the endpoints."""

    def list_tags(self, **asked: str) -> Mapping[str, object]:
        """Return a page of the tags of a resource."""


Compared = dict[str, tuple[str, str]]
"""What the lock says and what is live, by what was compared."""


def live_findings(deployment: Deployment, stack: LiveStack, sagemaker: LiveEndpoints) -> Iterator[Finding]:
    """Yield each field in which a live endpoint is not what was deployed.

    Args:
        deployment: What the lock says; its plan is the deployed one.
        stack: The endpoint's stack.
        sagemaker: A client of the environment's region.

    Raises:
        ClientError: SageMaker knows no such endpoint, component or model, or refuses.
    """
    endpoint = sagemaker.describe_endpoint(EndpointName=deployment.endpoint_name)
    if deployment.endpoint.hosting.kind == "single_model":
        yield from _single_model(deployment, stack, endpoint, sagemaker)
        return
    component = sagemaker.describe_inference_component(
        InferenceComponentName=f"{deployment.endpoint_name}{COMPONENT_SUFFIX}"
    )
    config = sagemaker.describe_endpoint_config(EndpointConfigName=text_at(endpoint, "EndpointConfigName"))
    model_name = text_at(mapping(component, "Specification"), "ModelName")
    model = sagemaker.describe_model(ModelName=model_name)
    compared = _endpoint(stack, endpoint) | _config(deployment, config) | _component(deployment, stack, component)
    compared |= _container(deployment, mapping(model, "PrimaryContainer"))
    yield from _differences(compared)
    yield from _statuses(
        {
            "endpoint status": text_at(endpoint, "EndpointStatus"),
            "component status": text_at(component, "InferenceComponentStatus"),
        }
    )
    yield from _copies(deployment, "copies", count(mapping(component, "RuntimeConfig"), "CurrentCopyCount"))


def _single_model(
    deployment: Deployment, stack: LiveStack, endpoint: Mapping[str, object], sagemaker: LiveEndpoints
) -> Iterator[Finding]:
    """Yield what differs where the model is in a production variant: that of the endpoint's own plan."""
    name = own_variant(deployment)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=text_at(endpoint, "EndpointConfigName"))
    variant = next((each for each in rows(config, "ProductionVariants") if text_at(each, "VariantName") == name), {})
    compared = _endpoint(stack, endpoint)
    if not deployment.endpoint.hosting.instance_pools:
        compared["instance type"] = (deployment.plan.instance_type.value, text_at(variant, "InstanceType"))
    model_name = text_at(variant, "ModelName")
    if model_name:
        model = sagemaker.describe_model(ModelName=model_name)
        compared |= _container(deployment, mapping(model, "PrimaryContainer"))
    else:
        compared["variant"] = (name, "")
    yield from _differences(compared)
    yield from _statuses({"endpoint status": text_at(endpoint, "EndpointStatus")})
    live = next((each for each in rows(endpoint, "ProductionVariants") if text_at(each, "VariantName") == name), {})
    yield from _copies(deployment, "instances", count(live, "CurrentInstanceCount"))


def own_variant(deployment: Deployment) -> str:
    """Return the name of the variant that runs the endpoint's own plan and image."""
    own = (each.name for each in deployment.endpoint.hosting.variants or () if not (each.spec or each.image))
    return next(own, ONLY_VARIANT)


def _differences(compared: Compared) -> Iterator[Finding]:
    for what, (expected, live) in compared.items():
        if expected != live:
            yield drift_finding(
                rule="SEA432", severity="warning", what=what, expected=expected, live=live or "absent", hint=HINT
            )


def _endpoint(stack: LiveStack, endpoint: Mapping[str, object]) -> Compared:
    deployed = stack.outputs.get("EndpointConfigName", "")
    return {"endpoint configuration": (deployed, text_at(endpoint, "EndpointConfigName"))}


def _config(deployment: Deployment, config: Mapping[str, object]) -> Compared:
    plan, variant = deployment.plan, next(rows(config, "ProductionVariants"), {})
    scaling = mapping(variant, "ManagedInstanceScaling")
    pools = deployment.endpoint.hosting.instance_pools
    live = [text_at(pool, "InstanceType") for pool in rows(variant, "InstancePools")] or [
        text_at(variant, "InstanceType")
    ]
    fewest = 0 if deployment.endpoint.scaling.goes_to_zero else deployment.instance_count
    compared = {
        "instance type": (", ".join(pools or (plan.instance_type.value,)), ", ".join(live)),
        "least instances": (f"{fewest}", _number(scaling, "MinInstanceCount")),
        "most instances": (f"{deployment.most_instances}", _number(scaling, "MaxInstanceCount")),
    }
    ami = plan.inference_ami_version.value
    return compared if ami is None else compared | {"inference AMI": (ami, text_at(variant, "InferenceAmiVersion"))}


def _component(deployment: Deployment, stack: LiveStack, component: Mapping[str, object]) -> Compared:
    plan, specification = deployment.plan, mapping(component, "Specification")
    needed, startup = mapping(specification, "ComputeResourceRequirements"), mapping(specification, "StartupParameters")
    compared = {
        "model": (stack.outputs.get("ModelName", ""), text_at(specification, "ModelName")),
        "accelerators per copy": (
            f"{plan.accelerators_per_copy}",
            _number(needed, "NumberOfAcceleratorDevicesRequired"),
        ),
        "CPU cores per copy": (f"{plan.cpu_cores_per_copy:g}", _number(needed, "NumberOfCpuCoresRequired")),
        "memory per copy (MiB)": (f"{plan.memory_min_mb.value}", _number(needed, "MinMemoryRequiredInMb")),
        "start-up timeout (s)": (
            f"{plan.startup_timeout_s.value}",
            _number(startup, "ContainerStartupHealthCheckTimeoutInSeconds"),
        ),
        "download timeout (s)": (
            f"{plan.download_timeout_s.value}",
            _number(startup, "ModelDataDownloadTimeoutInSeconds"),
        ),
    }
    resolved = image_digest(text_at(mapping(mapping(specification, "Container"), "DeployedImage"), "ResolvedImage"))
    pinned = image_digest(plan.image.value.uri)
    if resolved is not None and pinned is not None:
        compared["image digest"] = (pinned, resolved)
    return compared


def _number(document: Mapping[str, object], name: str) -> str:
    """Return a number of an answer as it is written; empty where there is none."""
    found = document.get(name)
    return f"{found:g}" if isinstance(found, int | float) else ""


def _container(deployment: Deployment, container: Mapping[str, object]) -> Compared:
    """Compare image and variables; of a secret only whether there is one is told, never a value."""
    serving, live = deployment.serving, mapping(container, "Environment")
    compared = {"image": (serving.image, text_at(container, "Image"))}
    for name in sorted({*serving.container_env, *serving.secret_env, *live}):
        what = f"environment variable {name}"
        if name in serving.secret_env:
            compared[what] = (SECRET, SECRET if live.get(name) else "")
        elif name in serving.container_env:
            compared[what] = (serving.container_env[name], text_at(live, name))
        else:
            compared[what] = ("absent", "present")
    return compared


def _statuses(found: Mapping[str, str]) -> Iterator[Finding]:
    for what, status in found.items():
        if status != "InService":
            hint = "read its failure reason in the SageMaker console; deploy again"
            severity: Severity = "error" if status in {"Failed", "OutOfService"} else "note"
            yield drift_finding(
                rule="SEA432", severity=severity, what=what, expected="InService", live=status, hint=hint
            )


def _copies(deployment: Deployment, what: str, live: int) -> Iterator[Finding]:
    """Yield copies or instances outside of what scaling, or without scaling the plan, allows."""
    scaling, planned = deployment.endpoint.scaling, deployment.plan.copy_count.value
    fixed = scaling.is_fixed
    least, most = (planned, planned) if fixed else (scaling.fewest_copies, max(scaling.max_copies, planned))
    if not least <= live <= most:
        expected = f"{least}" if fixed else f"{least} to {most}"
        yield drift_finding(
            rule="SEA432",
            severity="error" if live < least else "warning",
            what=what,
            expected=expected,
            live=f"{live}",
            hint="set the copies, or the bounds of scaling, as the spec says: `cdk deploy --revert-drift`",
        )
