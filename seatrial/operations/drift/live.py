"""What the control plane says of a live endpoint, held against what its lock says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.account.live_endpoint import read_component, read_endpoint, read_tags
from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.documents.live_endpoint import LiveVariant
from seatrial.operations.drift.report import drift_finding
from seatrial_base.catalog.images import image_digest
from seatrial_base.tags import CONFIG_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.account.reader import AwsReader
    from seatrial.deployment.document import Deployment
    from seatrial.documents.live_endpoint import LiveComponent, LiveEndpoint
    from seatrial.documents.live_stack import LiveStack
    from seatrial_base.findings import Finding, Severity

HINT = "find out who changed it; set it back with `cdk deploy --revert-drift`, or take it over into the spec"
ONLY_VARIANT = "AllTraffic"  # the name of a variant that nobody named, as our constructs give it


Compared = dict[str, tuple[str, str]]
"""What the lock says and what is live, by what was compared."""


def live_findings(deployment: Deployment, stack: LiveStack, reader: AwsReader) -> Iterator[Finding]:
    """Yield each field in which a live endpoint is not what was deployed.

    Args:
        deployment: What the lock says; its plan is the deployed one.
        stack: The endpoint's stack.
        reader: A strict reader of the environment's account and region.

    Raises:
        BenchError: As `aws_failures`.
        ClientError: SageMaker refuses.
    """
    endpoint = read_endpoint(deployment.endpoint_name, reader, with_tags=False)
    if endpoint.existence == "absent":
        yield _absent("endpoint", deployment.endpoint_name)
    elif deployment.endpoint.hosting.kind == "single_model":
        yield from _single_model(deployment, stack, endpoint, reader)
    else:
        yield from _with_component(deployment, stack, endpoint, reader)


def _with_component(
    deployment: Deployment, stack: LiveStack, endpoint: LiveEndpoint, reader: AwsReader
) -> Iterator[Finding]:
    """Yield what differs where the model is an inference component."""
    name = f"{deployment.endpoint_name}{COMPONENT_SUFFIX}"
    component = read_component(name, reader)
    if component is None:
        yield _absent("inference component", name)
        return
    compared = _endpoint(stack, endpoint) | _config(deployment, endpoint) | _component(deployment, stack, component)
    yield from _differences(compared)
    yield from _container(deployment, endpoint, component.model, reader)
    yield from _statuses({"endpoint status": endpoint.status, "component status": component.status})
    yield from _copies(deployment, "copies", component.copies)


def _single_model(
    deployment: Deployment, stack: LiveStack, endpoint: LiveEndpoint, reader: AwsReader
) -> Iterator[Finding]:
    """Yield what differs where the model is in a production variant: that of the endpoint's own plan."""
    name = own_variant(deployment)
    variant = endpoint.variant(name) or LiveVariant(name=name)
    compared = _endpoint(stack, endpoint)
    if not deployment.endpoint.hosting.instance_pools:
        compared["instance type"] = (deployment.plan.instance_type.value, variant.instance_type)
    if not variant.model:
        compared["variant"] = (name, "")
    yield from _differences(compared)
    if variant.model:
        yield from _container(deployment, endpoint, variant.model, reader)
    yield from _statuses({"endpoint status": endpoint.status})
    yield from _copies(deployment, "instances", variant.current)


def _absent(what: str, name: str) -> Finding:
    hint = f"`seatrial doctor {name}` says what becomes of its stack" if what == "endpoint" else HINT
    return drift_finding(rule="SEA432", severity="error", what=what, expected=name, live="absent", hint=hint)


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


def _endpoint(stack: LiveStack, endpoint: LiveEndpoint) -> Compared:
    return {"endpoint configuration": (stack.outputs.get("EndpointConfigName", ""), endpoint.config)}


def _config(deployment: Deployment, endpoint: LiveEndpoint) -> Compared:
    plan, variant = deployment.plan, next(iter(endpoint.variants), LiveVariant(name=""))
    pools = deployment.endpoint.hosting.instance_pools
    live = [pool.instance_type for pool in variant.pools] or [variant.instance_type]
    fewest = 0 if deployment.endpoint.scaling.goes_to_zero else deployment.instance_count
    scaled = variant.least is not None
    compared = {
        "instance type": (", ".join(pools or (plan.instance_type.value,)), ", ".join(live)),
        "least instances": (f"{fewest}", f"{variant.least}" if scaled else ""),
        "most instances": (f"{deployment.most_instances}", f"{variant.most}" if scaled else ""),
    }
    ami = plan.inference_ami_version.value
    return compared if ami is None else compared | {"inference AMI": (ami, variant.ami)}


def _component(deployment: Deployment, stack: LiveStack, component: LiveComponent) -> Compared:
    plan = deployment.plan
    compared = {
        "model": (stack.outputs.get("ModelName", ""), component.model),
        "accelerators per copy": (f"{plan.accelerators_per_copy}", _number(component.accelerators)),
        "CPU cores per copy": (f"{plan.cpu_cores_per_copy:g}", _number(component.cpu_cores)),
        "memory per copy (MiB)": (f"{plan.memory_min_mb.value}", _number(component.memory_mb)),
        "start-up timeout (s)": (f"{plan.startup_timeout_s.value}", _number(component.startup_timeout_s)),
        "download timeout (s)": (f"{plan.download_timeout_s.value}", _number(component.download_timeout_s)),
    }
    resolved, pinned = image_digest(component.resolved_image), image_digest(plan.image.value.uri)
    if resolved is not None and pinned is not None:
        compared["image digest"] = (pinned, resolved)
    return compared


def _number(value: float | None) -> str:
    """Return a number as it is written; empty where there is none."""
    return "" if value is None else f"{value:g}"


def _container(deployment: Deployment, endpoint: LiveEndpoint, model_name: str, reader: AwsReader) -> Iterator[Finding]:
    """Yield a model whose container reads another configuration, by the digest in its tag.

    The model itself is not described: its environment may hold the token of a hub, which nobody of CI may read.
    """
    arn = f"{endpoint.arn.rpartition(':')[0]}:model/{model_name.lower()}"
    live = read_tags(model_name, arn, reader).get(CONFIG_TAG, "")
    yield from _differences({"container configuration": (deployment.serving.container_digest, live)})


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
