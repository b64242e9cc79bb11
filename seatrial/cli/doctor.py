"""`seatrial doctor`: why an endpoint is stuck or failed, and the steps that unstick it."""

from __future__ import annotations

import codecs
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from seatrial.cli.support.options import (
    ENDPOINT,
    EnvironmentsFolder,
    LiveEnvironment,
    LiveRegion,
    environments_folder,
)
from seatrial.cli.support.specs import ENDPOINTS, live_name, own_region, refuse_options
from seatrial_base.errors import BenchError, SeatrialError, SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import counted
from seatrial_lint.cli.run import WRONG, FindingsFormat, instance_in_catalog, lines_text, show_judgement

if TYPE_CHECKING:
    from seatrial.account.reader import AwsCalls
    from seatrial.deployment.document import Deployment
    from seatrial.operations.doctor.facts import Examination
    from seatrial.operations.doctor.gather import EndpointQuery

LAST_LINES = 5000
"""Lines of a log's end that are searched."""
LONGEST_LINE = 2000
_NAME = r"[A-Za-z0-9](-*[A-Za-z0-9]){0,62}"


def doctor_command(
    endpoint: Annotated[str | None, ENDPOINT] = None,
    environment: LiveEnvironment = None,
    environments: EnvironmentsFolder = None,
    region: LiveRegion = None,
    *,
    why: Annotated[bool, typer.Option("--why", help="Show what each problem was seen by, and the logs.")] = False,
    output_format: FindingsFormat = "text",
    fix: Annotated[bool, typer.Option("--fix", help="Unstick it, step by step, after a confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --fix: show the steps, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do not ask for confirmation.")] = False,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Explain a text in place of an endpoint: its failure reason.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Likewise: the log of its container; - for stdin.")
    ] = None,
    image: Annotated[str | None, typer.Option(metavar="URI", help="With a text: the container's image.")] = None,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", metavar="TYPE", help="With a text: the instance type.")
    ] = None,
) -> None:
    """Explain a stuck or failed endpoint, or a text about one; exit 0 when nothing is wrong, else 1.

    It reads endpoint, components, logs, scaling, alarms, stack, roles, weights, secrets and quotas. What could not be
    read is listed. `--fix` deletes nothing that serves. A text (--reason, --log) needs no account.
    """
    from seatrial.operations.doctor.steps import fix_steps
    from seatrial.operations.doctor.view import doctor_judgement, is_healthy

    is_text = reason is not None or log is not None
    of_endpoint = {"ENDPOINT": endpoint, "-e": environment, "--region": region, "--fix": fix}
    refuse_options(
        "leave it out, or add what it needs",
        (not fix, "{} needs --fix", {"--dry-run": dry_run, "--yes": yes}),
        (is_text, "{} is of an endpoint, and a text is explained without one", of_endpoint),
        (not is_text, "{} needs --reason or --log", {"--image": image, "--instance-type": instance_type}),
    )
    if is_text:
        _explain_text(reason or "", log, image, instance_type, output_format)
    if endpoint is None:
        hint = "name the endpoint, or give a text with --reason or --log"
        raise SpecError.of("SEA106", "ENDPOINT is missing", where="command line", hint=hint)
    query = _query(endpoint, environment, environments, region)
    examination, diagnoses = _examined(query)
    if output_format == "text":
        _show_text(examination, diagnoses, why=why)
    is_deleted = False
    if fix and _fixed(examination, query.calls, dry_run=dry_run, yes=yes):
        examination, diagnoses = _examined(query)
        if is_deleted := examination.is_empty:
            typer.echo(f"{examination.name}: nothing is left of it", err=True)
        elif output_format == "text":
            _show_text(examination, diagnoses, why=False)
    if output_format != "text":
        show_judgement(doctor_judgement(examination, diagnoses, fix_steps(examination)), output_format)
    if not (is_deleted or is_healthy(examination, diagnoses)):
        raise typer.Exit(WRONG)


def _explain_text(
    reason: str, log: Path | None, image: str | None, instance_type: str | None, output_format: FindingsFormat
) -> NoReturn:
    """Show what a failure reason and a log tell, and end."""
    from seatrial.operations.doctor.diagnose import text_diagnoses
    from seatrial.operations.doctor.view import finding_lines, text_judgement
    from seatrial_base.catalog.symptoms import plain_lines
    from seatrial_base.secrets import redacted
    from seatrial_base.terminal import show_text
    from seatrial_base.text import printable

    instance_in_catalog(instance_type)
    lines = None if log is None else plain_lines([printable(redacted(_read(log)))])
    if not (reason.strip() or lines):
        hint = "give the failure reason with --reason, or lines of the container's log"
        raise SpecError.of("SEA106", "the text is empty", where="command line", hint=hint)
    if lines and len(lines) > LAST_LINES:
        typer.echo(f"of {len(lines):,} lines, the last {LAST_LINES:,} were searched", err=True)
    shortened = None if lines is None else tuple(line[:LONGEST_LINE] for line in lines[-LAST_LINES:])
    diagnoses = text_diagnoses(printable(redacted(reason)), shortened, image=image or "", instance_type=instance_type)
    if output_format == "text":
        show_text(lines_text(line for each in diagnoses for line in finding_lines(each, why=True)))
    else:
        show_judgement(text_judgement(diagnoses), output_format)
    raise typer.Exit(WRONG)


def _read(log: Path) -> str:
    from seatrial_base.files import MOST_BYTES, read_file_bytes
    from seatrial_base.units import MIB

    if str(log) == "-":
        if sys.stdin is None:
            raise SpecError.of("SEA101", "it is closed", where="standard input")
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            hint = "give its end: tail -n 5000"
            raise SpecError.of("SEA101", f"larger than {MOST_BYTES // MIB} MiB", where="standard input", hint=hint)
    else:
        try:
            content = read_file_bytes(log)
        except OSError as error:
            hint = "name a file, or - for the standard input, with the end of a longer one: tail -n 5000"
            raise SpecError.of("SEA101", f"{error.strerror}", where=f"{log}", hint=hint) from error
    # As PowerShell redirects an output.
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_utf_16 else "utf-8-sig", errors="replace")


def _examined(query: EndpointQuery) -> tuple[Examination, tuple[Finding, ...]]:

    from seatrial.operations.doctor.diagnose import diagnose
    from seatrial.operations.doctor.gather import examine

    examination = examine(query, datetime.now(UTC))
    return examination, diagnose(examination)


def _query(endpoint: str, environment: str | None, environments: Path | None, region: str | None) -> EndpointQuery:
    """Return the endpoint to examine, and the clients of its account."""
    from seatrial.account.clients import clients_of_region
    from seatrial.account.reader import Boto3Calls
    from seatrial.operations.doctor.gather import EndpointQuery
    from seatrial_load.aws.container_metrics import cloudwatch_promql

    if environment is not None:
        contradicts = "{} contradicts --environment, which has a region"
        refuse_options("leave one of them out", (True, contradicts, {"--region": region}))
        from seatrial.account.clients import account_clients, check_account
        from seatrial.deployment.document import endpoint_name, stack_name
        from seatrial.specs.load import load_environment

        name, generation, region = live_name(endpoint, environment, environments)
        file = Path(endpoint) if endpoint.endswith(".yaml") else ENDPOINTS / f"{name}.yaml"
        folder = environments_folder(environments, file)
        spec = load_environment(folder, environment)
        account = account_clients(spec)
        check_account(spec, account.identity)
        return EndpointQuery(
            name=endpoint_name(environment, name, generation),
            region=region,
            calls=Boto3Calls(region),
            account=account,
            stack=stack_name(environment, name),
            deployment=_deployment(file, folder, environment),
            promql=cloudwatch_promql(region),
        )
    if not re.fullmatch(_NAME, endpoint):
        hint = "with the YAML file or the name of a spec, give its environment: -e ENV"
        raise SpecError.of("SEA107", f"{endpoint} is no name of an endpoint", where="command line", hint=hint)
    place = region or own_region()
    return EndpointQuery(
        name=endpoint,
        region=place,
        calls=Boto3Calls(place),
        account=clients_of_region(place, where=endpoint),
        promql=cloudwatch_promql(place),
    )


def _deployment(file: Path, environments: Path, environment: str) -> Deployment | None:
    from seatrial.deployment.load import load_deployment

    # Without a lock that can be read, the endpoint can be examined all the same.
    try:
        return load_deployment(file, environments, environment)
    except SeatrialError as error:
        typer.echo(f"the lock can't be used, so secrets are not checked: {error.problems[0].message}", err=True)
        return None


def _show_text(examination: Examination, diagnoses: tuple[Finding, ...], *, why: bool) -> None:
    from seatrial.operations.doctor.view import doctor_lines
    from seatrial_base.secrets import redacted
    from seatrial_base.terminal import show_text

    show_text(redacted(lines_text(doctor_lines(examination, diagnoses, why=why))))


def _fixed(examination: Examination, calls: AwsCalls, *, dry_run: bool, yes: bool) -> bool:
    """Show the steps, ask for confirmation, and do them; return whether anything was done."""
    from seatrial.operations.doctor.fix import Patience, carry_out
    from seatrial.operations.doctor.steps import fix_steps

    steps = fix_steps(examination)
    if not steps:
        typer.echo("nothing can be unstuck: no step is safe now", err=True)
        return False
    for number, step in enumerate(steps, 1):
        typer.echo(f"{number}. {step.why}\n   {step.command}", err=True)
    if dry_run:
        return False
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"do {counted(len(steps), 'step')}?", err=True)):
        hint = "confirm on a terminal, or give --yes"
        raise SpecError.of("SEA769", "nothing was changed", where="command line", field="--yes", hint=hint)
    failed = []
    for outcome in carry_out(steps, calls, Patience(time.sleep), lambda line: typer.echo(line, err=True)):
        typer.echo(f"  {outcome.status}{f': {outcome.message}' if outcome.message else ''}", err=True)
        if outcome.status != "done":
            failed.append(
                Finding("SEA769", Place.at(examination.name, outcome.key), f"{outcome.status}: {outcome.message}")
            )
    if failed:
        raise BenchError(failed)
    return True
