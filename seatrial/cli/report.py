"""`seatrial report`: a trial's result as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial.cli.support.outputs import check_outputs, local_file, report_outputs, spec_inputs
from seatrial.cli.support.results import read_result

if TYPE_CHECKING:
    from seatrial.documents.calibration import Outlook
    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import TrialResult


def report_command(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="Result: file or s3:// URI.")],
    spec: Annotated[
        Path | None, typer.Option("--spec", help="Spec whose locked plan is shown beside the result.")
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
    plan, outlook = None, None
    if spec is not None:
        plan, outlook = _planned(spec, environment or measured.request.environment, environments, measured)
    written = write_trial_report(measured, plan, output, outlook=outlook)
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


def _planned(
    spec: Path, environment: str, environments: Path | None, result: TrialResult
) -> tuple[Plan, Outlook | None]:
    """Return the locked plan, and what a calibration by the trial would change if the trial was made from that plan."""
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial.planner.calibration import outlook_of
    from seatrial.report.planned import is_comparable, plan_of_trial
    from seatrial.specs.load import load_spec

    loaded = load_spec(spec, environment, environments=environments_folder(environments, spec))
    plan = read_locked_plan(loaded)
    own = plan_of_trial(result, plan) is not None and is_comparable(result, plan)
    return plan, outlook_of(result, plan, loaded) if own else None
