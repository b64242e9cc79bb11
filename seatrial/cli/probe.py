"""`seatrial probe`: measure the one level that decides between the plan and a cheaper deployment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.documents.plan import Plan
    from seatrial.probe.answer import ProbeAnswer
    from seatrial.probe.pinned import ProbedHardware
    from seatrial.specs.load import LoadedSpec

_LOCAL_ENGINE = "the embedded AWS, whose engine is local"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbeRequest:
    """What the command line requests.

    Attributes:
        candidate: The deployment to compare with; `None` leaves it to the plan.
        level: Requests in flight per copy; `None` leaves it to the plan.
    """

    loaded: LoadedSpec
    plan: Plan
    environments: Path
    candidate: ProbedHardware | None
    level: int | None


def probe_command(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    *,
    candidate: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE:DEGREE",
            help="Deployment to compare with the plan, as in ml.g6e.12xlarge:4. Default: the one that the plan names.",
        ),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            min=1, max=4096, help="Concurrency per copy. Default: the level that the plan names, else its gate."
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Deploy nothing: measure the level on this endpoint, which serves already."),
    ] = None,
    component: Annotated[
        str | None, typer.Option(metavar="NAME", help="Inference component of --endpoint. Default: the only one.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the result as calibration next to the spec.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Deploy without asking for confirmation.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of the CDK CLI.")] = False,
) -> None:
    """Measure the level that decides between the plan and a cheaper deployment, and compare with the prediction.

    The cheaper deployment is the one whose saving times its chance to meet the SLO is largest. Both chances are shown
    before anything is deployed, and so is a more expensive deployment that more likely meets the SLO, if there is one.

    It deploys one copy of the plan's deployment and then one of the candidate, each in a stack of its own, tries the
    one level, and deletes the stack, also after a failure or Ctrl-C. Without a probe in the plan and without options it
    deploys nothing. It exits with 0 when everything was measured, whatever the verdicts are.
    """
    from seatrial.probe.run import only_probe, probe_folder

    if component is not None and endpoint is None:
        raise typer.BadParameter("needs --endpoint", param_hint="'--component'")
    request = _probe_request(spec, environment, environments_folder(environments, spec), candidate, level, write=write)
    with only_probe(probe_folder(request.loaded)):
        if endpoint is not None:
            import boto3

            from seatrial.account.reader import aws_failures
            from seatrial.cli.support.probing import watched
            from seatrial.probe.pinned import pin, probed_as
            from seatrial.probe.run import check_hardware, level_request, measure_probe_level, read_live
            from seatrial_base.terminal import end_when_interrupted

            end_when_interrupted()
            with aws_failures(endpoint):
                sagemaker = boto3.client("sagemaker", region_name=request.loaded.environment.region)
                live = read_live(sagemaker, endpoint, component)
            check_hardware(live, request.candidate)
            probed = probed_as(request.plan, live.hardware, request.level)
            (pinned,) = pin(request.loaded, [probed], probe_folder(request.loaded), request.environments)
            answers: tuple[ProbeAnswer, ...] = (measure_probe_level(level_request(pinned, live), pinned, watched),)
        else:
            answers = _deployed(request, yes=yes, verbose=verbose)
    if not answers:
        typer.echo("The plan is not in doubt: no cheaper deployment is within the band. Nothing to probe.")
        _show_sides(request.plan)
        return
    _show(request.plan, answers)
    if write:
        from seatrial.planner.calibration import write_calibration
        from seatrial.probe.answer import calibration_of, replaced

        loaded = request.loaded
        answer = answers[-1]
        entry, environment = calibration_of(loaded, answer), loaded.environment.name
        if old := replaced(loaded, entry):
            typer.echo(f"the calibration of {old} is replaced", err=True)
        path = write_calibration(entry, loaded.path, environment)
        typer.echo(f"calibration of {answer.pinned.probed.hardware} written to {path.as_posix()}", err=True)
        again = f"seatrial plan {loaded.path.as_posix()} --environment {environment} --write"
        typer.echo(f"the lock is now stale; plan again: {again}", err=True)


def _probe_request(
    spec: Path, environment: str, environments: Path, candidate: str | None, level: int | None, *, write: bool
) -> _ProbeRequest:
    """Read everything that a probe needs to know before AWS gets a request."""
    from seatrial.cli.support.files import check_outputs, spec_inputs
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial.probe.answer import refuse_local_engine
    from seatrial.probe.pinned import read_candidate
    from seatrial.specs.load import load_spec
    from seatrial.specs.spec_files import calibration_path

    if write:
        read = spec_inputs(spec, environments, environment)
        del read["the calibration"]  # it is changed in place
        check_outputs({"--write": calibration_path(spec)}, read)
    hardware = None if candidate is None else read_candidate(candidate)
    loaded = load_spec(spec, environment, environments=environments)
    if write and loaded.environment.is_embedded:
        refuse_local_engine(_LOCAL_ENGINE, environment)
    plan = read_locked_plan(loaded)
    return _ProbeRequest(loaded=loaded, plan=plan, environments=environments, candidate=hardware, level=level)


def _deployed(request: _ProbeRequest, *, yes: bool, verbose: bool) -> tuple[ProbeAnswer, ...]:
    from seatrial.cli.support.probing import aws_tools, confirm
    from seatrial.probe.pinned import deployments_to_probe, pin
    from seatrial.probe.run import check_tools, deploy_in_turn, probe_folder
    from seatrial.probe.view import estimate_lines
    from seatrial_base.terminal import console
    from seatrial_laptop.demo.progress import Steps
    from seatrial_laptop.demo.runner import end_on_signals

    probed = deployments_to_probe(request.plan, request.candidate, request.level)
    if not probed:
        return ()
    root, folder = check_tools(request.loaded.path), probe_folder(request.loaded)
    pinned = pin(request.loaded, probed, folder, request.environments)
    tools = aws_tools(request.loaded, root, folder)
    _show_sides(request.plan)
    confirm(estimate_lines(pinned), yes=yes or request.loaded.environment.is_embedded)
    end_on_signals()
    answers: list[ProbeAnswer] = []
    try:
        answers += deploy_in_turn(pinned, tools, Steps(console(markup=True), verbose=verbose))
    except SeatrialError:
        _show(request.plan, answers)
        raise
    return tuple(answers)


def _show_sides(plan: Plan) -> None:
    """Show the chance of the plan and of the deployments on both sides of it."""
    from seatrial.report.planned import side_lines

    for line in side_lines(plan):
        typer.echo(line)


def _show(plan: Plan, answers: Sequence[ProbeAnswer]) -> None:
    """Show what was measured, and what it decides; nothing where nothing was measured."""
    from seatrial.probe.answer import conclusion
    from seatrial.probe.view import probe_view
    from seatrial_base.terminal import show

    if answers:
        show(probe_view(plan, answers, conclusion(plan, answers)))
