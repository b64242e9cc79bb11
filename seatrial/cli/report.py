"""`seatrial report`: a trial's result as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.support.files import check_outputs, local_file, read_result, report_outputs, spec_inputs
from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial_base.errors import SpecError


def report_command(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="Result: file or s3:// URI.")],
    spec: Annotated[
        Path | None, typer.Option("--spec", help="Spec whose locked plan is shown with the result.")
    ] = None,
    environment: Annotated[str | None, typer.Option("--environment", "-e", help="Its environment.")] = None,
    environments: EnvironmentsFolder = None,
    *,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="RESULT", help="Earlier result to compare with: file or s3:// URI."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Output folder.")] = Path("report"),
) -> None:
    """Write the report of a trial as HTML, Markdown and JSON."""
    from seatrial.report.document.jumpstart import is_jumpstart
    from seatrial.report.write import write_trial_report

    place = environments_folder(environments, spec) if spec is not None else None
    given = {"--against": local_file(against), **spec_inputs(spec, place, environment)}
    check_outputs(report_outputs(output), given)
    pages = {name: path for name, path in report_outputs(output).items() if path and path.suffix != ".json"}
    check_outputs(pages, {"RESULT": local_file(result)})  # the JSON is the result itself
    measured = read_result(result)
    if against is not None:
        from seatrial_load.slo.verdict import compare_with_baseline

        measured = replace(
            measured, comparison=compare_with_baseline(measured, read_result(against), baseline_uri=against)
        )
    plan, outlook, start = None, None, None
    if spec is not None:
        from seatrial.deployment.starts import copy_start
        from seatrial.locks.locked_plan import read_locked_plan
        from seatrial.planner.calibration import outlook_of, with_random_arrivals
        from seatrial.report.planned import is_comparable, plan_of_trial
        from seatrial.specs.load import load_spec

        if environment is None and measured.request.environment == "none":
            message = "the result of a server names no environment of the spec"
            raise SpecError.of("SEA106", message, where="command line", field="--environment", hint="name it: -e ENV")
        folder = environments_folder(environments, spec)
        loaded = load_spec(spec, environment or measured.request.environment, environments=folder)
        plan = read_locked_plan(loaded)
        start = copy_start(plan, loaded)
        # A calibration corrects the plan that was tried: a trial of another one does not measure its constants.
        if plan_of_trial(measured, plan) is not None and is_comparable(measured, plan):
            outlook = outlook_of(measured, plan, loaded)
            measured = with_random_arrivals(measured, plan, loaded)
    written = write_trial_report(measured, plan, output, outlook=outlook, start=start)
    if is_jumpstart(measured):
        from seatrial.report.terminal.trial import jumpstart_view
        from seatrial_base.terminal import show

        show(jumpstart_view(measured, plan))
    if measured.comparison is not None:
        from seatrial.report.terminal.trial import release_view
        from seatrial_base.terminal import show_lines

        show_lines(release_view(measured.comparison))
    for file in (written.html, written.markdown, written.json):
        typer.echo(file.as_posix())
