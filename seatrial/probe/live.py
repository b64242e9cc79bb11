"""An endpoint that serves already: what it consists of, and the trial of one level on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.live_endpoint import component_names, read_component, read_endpoint
from seatrial.account.reader import AwsReader, ClientCalls
from seatrial.deployment.trial import trial_request
from seatrial.probe.deployments import ProbedHardware
from seatrial_base.errors import BenchError
from seatrial_load.aws.deployment_check import asking
from seatrial_load.documents.request import Expected, TrialTarget
from seatrial_load.documents.request_checks import check_trial_request

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.probe.pinned import PinnedSpec
    from seatrial_load.documents.request import TrialRequest

_RULE = "SEA502"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedEndpoint:
    """What serves under an endpoint's name.

    Attributes:
        endpoint_name: The endpoint.
        component: The inference component that holds the model.
        config_name: The endpoint configuration.
        model_name: The model of the component.
        hardware: Instance type and accelerators of one copy.
    """

    endpoint_name: str
    component: str
    config_name: str
    model_name: str
    hardware: ProbedHardware


def read_live(sagemaker: SageMakerClient, endpoint_name: str, component: str | None) -> ProbedEndpoint:
    """Ask what serves.

    Args:
        sagemaker: The control plane.
        endpoint_name: The endpoint.
        component: The inference component; `None` where the endpoint has one.

    Raises:
        BenchError: SEA502 when there is no such endpoint or component, or the component is not one of several, or
            names no model or no accelerators; as `aws_failures` when AWS can't be asked.
    """
    where = f"endpoint {endpoint_name}"
    with asking(where):
        reader = AwsReader(ClientCalls(sagemaker), is_strict=True)
        endpoint = read_endpoint(endpoint_name, reader, with_tags=False)
        if endpoint.existence == "absent":
            raise BenchError.of(_RULE, "there is no such endpoint", where=where)
        name = component or _only_component(endpoint_name, reader, where)
        found = read_component(name, reader)
    if found is None:
        raise BenchError.of(_RULE, f"there is no inference component {name}", where=where)
    if found.endpoint != endpoint_name:
        raise BenchError.of(_RULE, f"component {name} is on endpoint {found.endpoint}", where=where)
    variant, accelerators = endpoint.variant(found.variant), found.accelerators or 0
    instance_type = variant.instance_type if variant else ""
    if not (found.model and instance_type and accelerators >= 1):
        message = f"component {name} tells no model, instance type or number of accelerators"
        raise BenchError.of(_RULE, message, where=where, hint="give a component that a Seatrial stack deployed")
    return ProbedEndpoint(
        endpoint_name=endpoint_name,
        component=name,
        config_name=endpoint.config,
        model_name=found.model,
        hardware=ProbedHardware(instance_type, round(accelerators)),
    )


def _only_component(endpoint_name: str, reader: AwsReader, where: str) -> str:
    names = component_names(endpoint_name, reader)
    if len(names) == 1:
        return names[0]
    if not names:
        hint = "probe an endpoint that a Seatrial stack deployed"
        raise BenchError.of(_RULE, "the endpoint has no inference component", where=where, hint=hint)
    hint = f"give --component: {', '.join(names)}"
    raise BenchError.of(_RULE, f"the endpoint has {len(names)} inference components", where=where, hint=hint)


def check_hardware(live: ProbedEndpoint, asked: ProbedHardware | None) -> None:
    """Refuse an endpoint that runs on other hardware than the candidate that is asked for.

    Raises:
        BenchError: SEA502.
    """
    if asked is not None and asked != live.hardware:
        message = f"component {live.component} runs on {live.hardware}, not on {asked}"
        hint = "leave out --candidate, or give another endpoint"
        raise BenchError.of(_RULE, message, where=f"endpoint {live.endpoint_name}", hint=hint)


def level_request(pinned: PinnedSpec, live: ProbedEndpoint) -> TrialRequest:
    """Return the trial of one level; before and after it, the model, its image and the configuration are proven.

    Raises:
        BenchError: SEA501 with every value that no trial can have.
    """
    serving = pinned.deployment.serving
    request = trial_request(
        pinned.loaded,
        pinned.plan,
        serving,
        TrialTarget(
            endpoint_name=live.endpoint_name,
            inference_component=live.component,
            region=pinned.loaded.environment.region,
        ),
        Expected(endpoint_config_name=live.config_name, model_name=live.model_name, image=serving.image),
    )
    check_trial_request(request)
    return request
