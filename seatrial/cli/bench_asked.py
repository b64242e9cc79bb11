"""The trial that a command line of `seatrial bench` asks for, or everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

from seatrial.cli.bench_load import LoadOptions, loaded_so
from seatrial.cli.bench_server import ServerOptions, request_of_server
from seatrial.cli.options import environments_folder

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.bench.request import TrialRequest
    from seatrial.cli.bench_files import PromptFiles
    from seatrial.cli.bench_mistakes import Mistakes
    from seatrial.deployment.document import Deployment
    from seatrial.plan.document import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedSpec:
    """What the command line says of a deployment.

    Attributes:
        spec: The endpoint's YAML file.
        environment: Name of the environment.
        environments: Folder of environments; None is the one beside the specs'.
    """

    spec: Path | None
    environment: str | None
    environments: Path | None


def asked_trial(
    place: DeployedSpec, server: ServerOptions | None, load: LoadOptions, files: PromptFiles, mistakes: Mistakes
) -> tuple[TrialRequest, Plan | None]:
    """Return the trial, and the plan that it was deployed from.

    Raises:
        SpecError: SEA501, with every mistake of the command line; or the spec, its environment or its lock are wrong.
        BenchError: As `aws_failures`, AWS can't be asked.
    """
    mistakes.combinations()
    if not (files.speed > 0 and isfinite(files.speed)):
        mistakes.say("--speed", f"{files.speed:g} is not a finite number above 0")
    plan = None
    if server is None:
        plain, plan = _of_deployment(place, mistakes)
    else:
        if place.spec is not None or place.environment is not None:
            mistakes.say("--url", "can't be combined with SPEC and --environment: it is another server")
        plain = request_of_server(server, mistakes)
    request = loaded_so(plain, load, mistakes)
    if server is not None:
        request = _gated(request, server)
    mistakes.values(request)
    mistakes.stop_if_any()
    return request, plan


def _gated(request: TrialRequest, server: ServerOptions) -> TrialRequest:
    """Return a server's trial with its gate, the lowest level unless it was named.

    The error rate holds at every level of a sweep; where a gate was named, or levels are tried until something gives
    way, up to the gate.
    """
    lowest, load = min(request.load.concurrency_levels), request.load
    if server.gate is None and lowest > 0:
        request = replace(request, gate_concurrency=lowest)
    if server.gate is None and load.search == "sweep" and load.protocol == "seatrial":
        return request
    return replace(request, gate=replace(request.gate, max_error_rate_up_to=request.gate_concurrency))


def _of_deployment(place: DeployedSpec, mistakes: Mistakes) -> tuple[TrialRequest, Plan]:
    from seatrial.deployment.load import load_deployment

    if place.spec is None:
        mistakes.say("SPEC", "give the spec of a deployed endpoint, or --url of any server")
    elif place.environment is None:
        mistakes.say("--environment", "SPEC needs an environment: add `-e ENV`")
    mistakes.stop_if_any()
    assert place.spec is not None  # noqa: S101 (tells the type checker)
    assert place.environment is not None  # noqa: S101 (likewise)
    folder = environments_folder(place.environments, place.spec)
    deployment = load_deployment(place.spec, folder, place.environment)
    return _live_request(deployment), deployment.plan


def _live_request(deployment: Deployment) -> TrialRequest:
    import boto3

    from seatrial.deployment.aws_failures import aws_failures
    from seatrial.deployment.live_stack import describe_stack
    from seatrial.deployment.trial import complete_request

    with aws_failures(deployment.stack_name):
        cloudformation = boto3.client("cloudformation", region_name=deployment.environment.region)
    return complete_request(deployment, describe_stack(deployment.stack_name, cloudformation))
