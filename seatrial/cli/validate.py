"""`seatrial validate`: every problem of every spec, in every environment, at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.model_options import DEFAULT_ENVIRONMENT, default_region, show_defaults
from seatrial.cli.support.options import EnvironmentsFolder, SpecFiles, environments_folder
from seatrial.cli.support.specs import spec_files
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_lint.cli.run import FindingsFormat, problems_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.specs.load import LoadedSpec


def validate_command(
    specs: SpecFiles,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", "-e", metavar="ENV", help="Only these environments. Default: all."),
    ] = None,
    environments: EnvironmentsFolder = None,
    output_format: FindingsFormat = "text",
) -> None:
    """Check specs in every environment and list every problem, also what no plan could serve; exit 2 when there is one.

    Where no environment has a file, one with default values is used, as for `seatrial plan`.
    """
    from seatrial.deployment.guests import absent_specs
    from seatrial.locks.guard_rails import waiver_findings
    from seatrial.operations.preflight import ended_reservations
    from seatrial.planner.resolve import unplannable
    from seatrial.repository.upgrade import conflicts, environment_problems
    from seatrial.specs.load import environment_names, load_spec
    from seatrial.specs.router import router_findings

    with problems_in(output_format, "validate") as notes:
        problems: list[Finding] = []
        warnings: dict[str, None] = {}
        judged: list[LoadedSpec] = []
        files, seen, now = spec_files(specs), dict[Path, None](), datetime.now(UTC)
        for spec in files:
            folder = environments_folder(environments, spec)
            region = None if environments else default_region(None)
            names = environment or environment_names(folder) or (() if environments else (DEFAULT_ENVIRONMENT,))
            if not names:
                hint = "give the folder: --environments DIR"
                problems.append(Finding("SEA109", Place.at(folder.as_posix()), "no environment (*.yaml)", hint))
            seen.setdefault(folder)
            for name in names:
                try:
                    loaded = load_spec(spec, name, environments=folder, default_region=region)
                except SpecError as error:
                    problems += error.problems
                else:
                    show_defaults(loaded)
                    judged.append(loaded)
                    refused, warned = unplannable(loaded)
                    problems += (*absent_specs(loaded), *refused)
                    warnings |= {f"{spec.as_posix()}: warning: {text}": None for text in warned}
                    notes.extend(replace(each, severity="note") for each in router_findings(loaded))
                    waivers = (*waiver_findings(loaded, now.date()), *_unmatched_waivers(spec, loaded))
                    for ending in (*waivers, *ended_reservations(loaded, now)):
                        (problems if ending.severity == "error" else notes).append(ending)
        problems += (each for folder in seen for each in (*environment_problems(folder), *conflicts(folder)))
        warnings |= dict.fromkeys(_orphans(files))
        notes.extend(_unknown_names(files, judged))
        if output_format == "text":
            typer.echo("".join(f"{text}\n" for text in warnings), nl=False, err=True)
        else:
            notes += [_note(warning) for warning in warnings]
        if problems:
            raise SpecError(dict.fromkeys(problems))
        for spec in files:
            typer.echo(f"{spec.as_posix()}: valid", err=output_format != "text")


def _unknown_names(specs: Sequence[Path], judged: Sequence[LoadedSpec]) -> Iterator[Finding]:
    """Yield what environments name and neither specs nor products have, where every spec of the folder was read."""
    from seatrial.specs.environment import unknown_names
    from seatrial.specs.yaml_source import read_source
    from seatrial_base.tags import TEAM_TAG

    folders = {spec.parent for spec in specs}
    if len(folders) != 1 or {*specs} != {*next(iter(folders)).glob("*.yaml")}:
        return
    parameters = [
        read_source(file).data.get("parameters")
        for file in sorted((next(iter(folders)).parent / "products").glob("*.yaml"))
    ]
    offered = [each.get("teams") if isinstance(each, dict) else None for each in parameters]
    names = {spec.stem for spec in specs}
    for environment in dict.fromkeys(each.environment.name for each in judged):
        here = [each for each in judged if each.environment.name == environment]
        teams = {team for each in here if (team := {**each.environment.tags, **each.endpoint.tags}.get(TEAM_TAG))}
        teams |= {f"{team}" for each in offered if isinstance(each, list) for team in each}
        known = teams if all(isinstance(each, list) for each in offered) else None
        yield from unknown_names(here[0].environment, here[0].place, teams=known, endpoints=names)


def _unmatched_waivers(spec: Path, loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield waivers of an environment for whose pattern there is no endpoint beside a spec, and no product."""
    from seatrial.deployment.product import product_files
    from seatrial.specs.environment import unmatched_waivers

    files = (*spec.parent.glob("*.yaml"), *product_files(spec.parent.parent / "products"))
    yield from unmatched_waivers(loaded.environment, loaded.place, [file.stem for file in files])


def _orphans(specs: Sequence[Path]) -> Iterator[str]:
    """Yield a warning for each lock beside the specs that belongs to none."""
    from seatrial.specs.spec_files import lock_path

    for folder in dict.fromkeys(spec.parent for spec in specs):
        locks = {lock_path(spec) for spec in folder.glob("*.yaml")}
        for lock in sorted({*folder.glob("*.lock.json")} - locks):
            message = "no spec has this lock: what is deployed of it stays; destroy its stacks, and remove it"
            yield f"{lock.as_posix()}: warning: SEA417: {message}"


def _note(warning: str) -> Finding:
    """Return a warning of the planner as a note, which fails no pull request; SEA153 where it has no rule."""
    file, _, text = warning.partition(": warning: ")
    rule, _, message = text.partition(": ") if text.startswith("SEA") else ("SEA153", "", text)
    return replace(Finding(rule, Place.at(file), message), severity="note")
