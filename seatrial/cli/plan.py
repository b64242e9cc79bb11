"""`seatrial plan`: what would be deployed, why, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.files import check_lock
from seatrial.cli.support.locking import check_freshness, lock_plan, refuse_format_of_findings
from seatrial.cli.support.model_options import (
    EnvironmentOrDefault,
    ModelOptions,
    SpecsOrModel,
    chosen_environment,
    is_model,
    load_specs_or_model,
    names_list,
    takes_model,
)
from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import of_every, spec_files
from seatrial_base.errors import SpecError
from seatrial_base.terminal import console, show, show_json
from seatrial_lint.cli.run import FindingsFormat

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.report.terminal.plan import Section
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Format

_ALONE = {
    "--check": (
        "--why",
        "--adopt",
        "--write",
        "--accept-slo-miss",
        "--allow-unknown-price",
        "--explain",
        "--section",
    ),
    "--why": ("--adopt", "--write", "--explain", "--section"),
    "--adopt": ("--write", "--accept-slo-miss", "--allow-unknown-price"),
    "--explain": ("--section",),
}
"""Options that can't be given together."""


@takes_model
def plan_command(
    specs: SpecsOrModel,
    environment: EnvironmentOrDefault = None,
    environments: EnvironmentsFolder = None,
    output_format: FindingsFormat = "text",
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="INSTANCE_TYPE", help="Show only why this instance type was chosen or rejected."),
    ] = None,
    *,
    section: Annotated[
        str | None,
        typer.Option(
            "--section",
            metavar="NAME[,NAME]",
            help="Show only these sections: decisions, memory, regime, curve, cost, start, alternatives, warnings.",
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show every section.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="List missing, stale and edited locks without planning; exit 1 if there are any."),
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Write each plan to the lock next to its spec.")] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Adopt the values set by hand in the lock.")] = False,
    accept_slo_miss: Annotated[
        bool, typer.Option("--accept-slo-miss", help="Plan even if no deployment is predicted to meet the SLO.")
    ] = False,
    allow_unknown_price: Annotated[
        bool, typer.Option("--allow-unknown-price", help="Choose also among instance types without a known price.")
    ] = False,
    model_options: ModelOptions,
) -> None:
    """Choose instance type, tensor parallel degree, copies and limits, and say why.

    Many specs share one process and get one line each. Locks are written only if every spec has a plan.
    """
    sections = _sections(section, explain=explain)
    many = names_list(specs)
    _check_options(
        specs,
        output_format,
        {
            "--why": why is not None,
            "--adopt": adopt,
            "--check": check,
            "--write": write,
            "--accept-slo-miss": accept_slo_miss,
            "--allow-unknown-price": allow_unknown_price,
            "--explain": explain,
            "--section": section is not None,
        },
        many=many,
    )
    if write:
        # Before minutes of planning, not after them: a lock that can't be replaced stops the command at once.
        of_every(spec_files(specs), lambda file: _check_lock(file, environment, environments))
    loaded = load_specs_or_model(specs, environment, environments, model_options, needs_file=write or adopt or check)
    allowed = {"accept_slo_miss": accept_slo_miss, "allow_unknown_price": allow_unknown_price}
    if write or adopt:
        from seatrial.locks.locked_plan import unpromoted_problem

        if problems := [problem for spec in loaded if (problem := unpromoted_problem(spec)) is not None]:
            raise SpecError(problems)
    if check:
        check_freshness(loaded, output_format, "plan --check")
    elif why is not None:
        _explain(loaded[0], why, output_format, allowed)
    elif adopt:
        _adopt(loaded[0], output_format, sections)
    else:
        from seatrial.planner.planner import make_plan

        made = of_every(loaded, lambda spec: _Made(make_plan(spec, **allowed), spec))
        of_every(made, _check_with_others)
        of_every(made, _show_waivers)
        _show(made, output_format, sections, many=many)
        _show_local_values(made, output_format)
        if write:
            _lock(made, many=many)
        _show_packing(made, output_format)


def _check_lock(file: Path, environment: str | None, environments: Path | None) -> None:
    folder = environments_folder(environments, file)
    check_lock(file, folder, chosen_environment(environment, folder))


@dataclass(frozen=True, slots=True)
class _Made:
    plan: Plan
    loaded: LoadedSpec


def _check_options(specs: Sequence[Path], output_format: Format, given: dict[str, bool], *, many: bool) -> None:
    for option, others in _ALONE.items():
        clash = [other for other in others if given[other]]
        if given[option] and clash:
            raise typer.BadParameter(f"can't be combined with {', '.join(clash)}", param_hint=f"'{option}'")
    for option, is_wrong, message in (
        ("--why", many, "needs exactly one spec"),
        ("--adopt", many, "needs exactly one spec"),
        ("--explain", output_format == "json", "JSON always contains the whole plan"),
        ("--section", output_format == "json", "JSON always contains the whole plan"),
    ):
        if given[option] and is_wrong:
            raise typer.BadParameter(message, param_hint=f"'{option}'")
    refuse_format_of_findings(output_format, is_check=given["--check"])
    if (given["--write"] or given["--adopt"] or given["--check"]) and any(is_model(path) for path in specs):
        message = "a model has no lock; write its spec with --save, and plan that"
        raise typer.BadParameter(message, param_hint="SPEC…")


def _sections(names: str | None, *, explain: bool) -> tuple[Section, ...]:
    """Return the requested sections; none for the first screen."""
    from seatrial.report.terminal.plan import SECTIONS

    if explain:
        return tuple(SECTIONS)
    section_names = () if names is None else tuple(name.strip() for name in names.split(","))
    unknown = [name for name in section_names if name not in SECTIONS]
    if unknown:
        message = f"unknown: {', '.join(unknown)}; known: {', '.join(SECTIONS)}"
        raise typer.BadParameter(message, param_hint="'--section'")
    return tuple(name for name in SECTIONS if name in section_names)


def _check_with_others(one: _Made) -> None:
    """Check an endpoint's guard rails with what it runs of other specs, as synthesis does, where these are locked."""
    from seatrial.deployment.load import runs_others, whole_problems

    if not runs_others(one.loaded):
        return
    try:
        problems = whole_problems(one.loaded, one.plan)
    except SpecError as error:
        # A new repository has to lock one spec first, and its guests may have no lock yet; synthesis checks
        # all of them.
        typer.echo(f"{one.plan.endpoint}: guard rails not checked with its other specs yet\n{error}", err=True)
        return
    if problems:
        raise SpecError(problems)


def _show_waivers(one: _Made) -> None:
    """Show what is waived for an endpoint on stderr, and refuse a waiver that has ended."""
    from datetime import UTC, datetime

    from seatrial.locks.guard_rails import waiver_findings

    findings = waiver_findings(one.loaded, datetime.now(UTC).date(), one.plan)
    if ended := [each for each in findings if each.severity == "error"]:
        raise SpecError(ended)
    for each in findings:
        typer.echo(f"{each}", err=True)


def _show(made: Sequence[_Made], output_format: Format, sections: Sequence[Section], *, many: bool) -> None:
    from seatrial.deployment.starts import copy_start
    from seatrial.report.terminal.first_screen import plans_view
    from seatrial.report.terminal.plan import plan_view

    if output_format == "json":
        starts = (copy_start(planned.plan, planned.loaded).model_dump(mode="json") for planned in made)
        documents = [
            {**planned.plan.model_dump(mode="json"), "start": start}
            for planned, start in zip(made, starts, strict=True)
        ]
        show_json(documents if many else documents[0])
    elif many and not sections:
        show(plans_view([(planned.plan, planned.loaded) for planned in made]))
    else:
        for planned in made:
            show(plan_view(planned.plan, planned.loaded, sections, console().width))


def _show_local_values(made: Sequence[_Made], output_format: Format) -> None:
    """Show the laptop's values in place of the spec's; on stderr with JSON."""
    for planned in made:
        if values := planned.loaded.local_values:
            where = f"environments.{planned.loaded.environment.name}"
            lines = [f"{planned.plan.endpoint}: scaled to the laptop's engine; set under {where} what shall differ"]
            for line in (*lines, *(f"  {value.words}" for value in values)):
                typer.echo(line, err=output_format == "json")


def _show_packing(made: Sequence[_Made], output_format: Format) -> None:
    """Show where the copies of several models run, or why it is unknown; on stderr with JSON."""
    from seatrial.deployment.guests import packing_lines, packing_of, read_guests

    for planned in made:
        if not planned.loaded.endpoint.hosting.more_models:
            continue
        try:
            guests = read_guests(planned.loaded, planned.plan)
        except SpecError as error:
            typer.echo(f"{planned.plan.endpoint}: instances of all models not counted yet\n{error}", err=True)
            continue
        packing = packing_of(planned.loaded, planned.plan, guests)
        for line in packing_lines(packing):
            typer.echo(f"{planned.plan.endpoint}: {line}", err=output_format == "json")


def _explain(loaded: LoadedSpec, instance_type: str, output_format: Format, allowed: dict[str, bool]) -> None:
    from seatrial.planner.comparisons import explain

    verdicts = explain(loaded, instance_type, **allowed)
    if output_format == "json":
        rows = [verdict.model_dump(mode="json") for verdict in verdicts]
        show_json({"endpoint": loaded.endpoint.name, "environment": loaded.environment.name, "verdicts": rows})
        return
    from seatrial.locks.lock_file import locked_provenance
    from seatrial.locks.locked_plan import provenance_lines
    from seatrial.report.terminal.plan import why_view

    show(why_view(instance_type, verdicts))
    for line in provenance_lines(locked_provenance(loaded)):
        typer.echo(f"locked: {line}")


def _lock(made: Sequence[_Made], *, many: bool) -> None:
    from seatrial.locks.lock_file import locked_document

    # Every lock is read before the first is written, so that one that can't be read leaves all of them as they
    # were.
    before = of_every(made, lambda one: locked_document(one.loaded))
    for one, locked in zip(made, before, strict=True):
        file, lines = lock_plan(one.plan, one.loaded.path, locked)
        if many:
            typer.echo(f"{file.as_posix()}: {'; '.join(lines) or 'locked'}", err=True)
            continue
        typer.echo(f"locked in {file.as_posix()}", err=True)
        for line in lines:
            typer.echo(f"  {line}", err=True)


def _adopt(loaded: LoadedSpec, output_format: Format, sections: Sequence[Section]) -> None:
    from seatrial.locks.changes import change_text
    from seatrial.locks.lock_file import write_lock
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial.planner.existing import adopt

    adoption = adopt(loaded)
    if adoption is None:
        read_locked_plan(loaded)
        typer.echo("no value was set by hand in the lock", err=True)
        return
    _show([_Made(adoption.plan, loaded)], output_format, sections, many=False)
    file = write_lock(adoption.plan, loaded.path)
    typer.echo(f"locked in {file.as_posix()}", err=True)
    for name, each in adoption.overruled.items():
        typer.echo(f"  {name}: planned {change_text(each.planned)}, adopted {change_text(each.adopted)}", err=True)
    for line in adoption.recomputed:
        typer.echo(f"  {line} (follows)", err=True)
