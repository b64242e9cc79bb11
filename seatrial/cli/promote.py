"""`seatrial promote`: the tried plan of one environment becomes the lock of the next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import endpoint_file

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.operations.promotion import PromotedLock, TrialEvidence
    from seatrial.specs.load import LoadedSpec


_OF_THE_ENDPOINT = frozenset({"SEA501", "SEA502"})


def promote_command(
    endpoints: Annotated[
        list[str],
        typer.Argument(metavar="ENDPOINT…", help="Names of endpoints, or their YAML files.", show_default=False),
    ],
    target: Annotated[str, typer.Option("--to", metavar="ENV", help="Environment to promote to.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="ENV", help="Environment of the trial. Default: `promotion.source` of --to."),
    ] = None,
    environments: EnvironmentsFolder = None,
    result: Annotated[
        str | None,
        typer.Option(
            "--result", metavar="FILE", help="Result of the trial: a file or an s3:// URI. Default: the stack's."
        ),
    ] = None,
    *,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
    write: Annotated[bool, typer.Option("--write", help="Write each plan to the lock next to its spec.")] = False,
    accept_simulated: Annotated[
        bool, typer.Option("--accept-simulated", help="Accept a trial on simulated hardware; the lock records it.")
    ] = False,
) -> None:
    """Promote the tried plan of one environment to the next, with the trial as its provenance.

    A copy serves as it was tried; how many copies there are follows from the next environment's workload. Locks are
    written only if every endpoint can be promoted.
    """
    from seatrial.cli.support.files import check_lock
    from seatrial.cli.support.specs import of_every
    from seatrial.locks.lock_file import write_lock
    from seatrial_base.terminal import show_json

    files = list(dict.fromkeys(endpoint_file(endpoint) for endpoint in endpoints))
    if result is not None and len(files) > 1:
        raise typer.BadParameter("needs exactly one endpoint", param_hint="'--result'")
    steps = of_every(files, lambda file: _step(file, environments_folder(environments, file), source, target))
    if write:
        for file in files:
            check_lock(file, environments_folder(environments, file), target)
    now = datetime.now(UTC)
    promoted = of_every(steps, lambda step: _promoted(step, result, now, accept_simulated=accept_simulated))
    if output_format == "json":
        show_json(
            [
                {
                    "spec": lock.loaded.path.as_posix(),
                    "environment": lock.loaded.environment.name,
                    "changes": list(lock.lines),
                    "signed_by": lock.signed_by or None,
                    "plan": lock.plan.model_dump(mode="json"),
                }
                for lock in promoted
            ]
        )
    else:
        from seatrial.locks.locked_plan import provenance_lines

        for lock in promoted:
            typer.echo(f"{lock.loaded.path.as_posix()}: {lock.loaded.environment.name}")
            proof = (
                f"signed in {lock.signed_by}" if lock.signed_by else "not signed: nothing proves that it is as it was"
            )
            for line in (*provenance_lines(lock.plan.promoted), proof, *lock.lines):
                typer.echo(f"  {line}")
    for one in promoted if write else ():
        typer.echo(f"locked in {write_lock(one.plan, one.loaded.path, one.evidence).as_posix()}", err=True)


def _step(file: Path, environments: Path, source: str | None, target: str) -> tuple[LoadedSpec, LoadedSpec]:
    from seatrial.operations.promotion import check_order, source_of
    from seatrial.specs.load import load_environment, load_spec
    from seatrial.specs.pipeline import promotion_order

    place = load_environment(environments, target)
    before = load_environment(environments, source_of(place, source))
    check_order(before, place, promotion_order(environments))
    here, there = (load_spec(file, each.name, environments=environments) for each in (before, place))
    return here, there


def _promoted(
    step: tuple[LoadedSpec, LoadedSpec], result: str | None, now: datetime, *, accept_simulated: bool
) -> PromotedLock:
    from seatrial.operations.promotion import promote_plan
    from seatrial_base.errors import BenchError, SpecError

    source, target = step
    try:
        evidence = _evidence(source, result)
    except BenchError as error:
        if not {problem.rule for problem in error.problems} <= _OF_THE_ENDPOINT:
            raise  # of the account: no other endpoint would fare better
        raise SpecError(error.problems) from error
    return promote_plan(source, target, evidence, now=now, accept_simulated=accept_simulated)


def _evidence(source: LoadedSpec, result: str | None) -> TrialEvidence:
    from seatrial.cli.support.files import read_result_text
    from seatrial.operations.promotion import TrialEvidence, evidence_of_result, evidence_of_stack

    if result is not None:
        read, text = read_result_text(result)
        return evidence_of_result(read, result, text)
    if source.endpoint.trial.mode == "off":
        return TrialEvidence(result=None, missing_because="trial.mode is off")
    import boto3

    from seatrial.account.clients import check_account
    from seatrial.account.reader import aws_failures
    from seatrial.deployment.document import endpoint_name, stack_name
    from seatrial.locks.changes import generation_of
    from seatrial.locks.lock_file import locked_document

    place, name = source.environment, source.endpoint.name
    with aws_failures(place.name):
        cloudformation = boto3.client("cloudformation", region_name=place.region)
        s3, identity = boto3.client("s3", region_name=place.region), boto3.client("sts", region_name=place.region)
    check_account(place, identity)
    live = endpoint_name(place.name, name, generation_of(locked_document(source)))
    return evidence_of_stack(stack_name(place.name, name), live, cloudformation, s3)
