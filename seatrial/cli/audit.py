"""`seatrial audit`: which model served, under which licence, and on what evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentsFolder, LiveEnvironment, environments_folder
from seatrial.cli.support.specs import ENDPOINTS

if TYPE_CHECKING:
    from seatrial.operations.audit import Texts
    from seatrial.specs.environment import EnvironmentSpec


def audit_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the endpoint in its spec, or on SageMaker.")],
    environment: LiveEnvironment = None,
    environments: EnvironmentsFolder = None,
    *,
    at: Annotated[
        str | None, typer.Option("--at", metavar="DATE", help="Only what served on this day, or at this time, in UTC.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option("--records", metavar="PATH", help="Folder of records, or file; no account is read.")
    ] = None,
    public_key: Annotated[
        list[str] | None,
        typer.Option("--public-key", metavar="KEY", help="Public key that `seatrial keys` prints; may be repeated."),
    ] = None,
    output_format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Show which model served as an endpoint, with its licence, trial, plan and who deployed it.

    Deployments write the records where the environment has `audit`; also of products, and of what is deleted. A record
    that is not signed, or that no known key of its environment verifies, is reported, and the exit code is 1. The keys
    are those of `promotion.public_keys`, else that of the account.
    """
    from seatrial.operations.audit import audit_lines, audited, known_keys, records_of_files, served_at
    from seatrial.specs.load import environment_names, load_environment
    from seatrial_base.errors import BenchError
    from seatrial_base.table import csv_table, record_table
    from seatrial_base.terminal import show_json, show_text

    folder = environments_folder(environments, ENDPOINTS / "spec.yaml")
    keys, texts = known_keys(folder), () if records is None else records_of_files(records)
    names = () if records else (environment,) if environment else environment_names(folder)
    for place in (load_environment(folder, each) for each in names):
        if environment or place.audit is not None:
            texts += _of_account(place, name, keys)
    served, problems = audited(texts, name, keys, public_key or ())
    chosen = served if at is None else served_at(served, at)
    rows = [each.row() for each in chosen if environment in {None, each.record.served.environment}]
    if output_format == "json":
        show_json({"schema_version": "1", "endpoint": name, "records": rows})
    elif output_format == "csv":
        show_text(csv_table(record_table(tuple(rows[0]) if rows else (), rows)))
    else:
        show_text("".join(f"{line}\n" for line in audit_lines(rows)) if rows else f"no record of {name}\n")
    if any(row["signature"] == "no key" for row in rows):
        typer.echo("not verified: no public key is known; give what `seatrial keys` prints as --public-key", err=True)
    if problems:
        raise BenchError(problems)


def _of_account(place: EnvironmentSpec, name: str, keys: dict[str, tuple[str, ...]]) -> Texts:
    """Return the records of an environment's account; where no file has its key, the account's is taken."""
    import boto3

    from seatrial.account.clients import account_clients, check_account
    from seatrial.account.reader import aws_failures
    from seatrial.operations.audit import records_of_account
    from seatrial.operations.promotion import signing_key
    from seatrial_base.errors import BenchError

    clients = account_clients(place)
    check_account(place, clients.identity)
    with aws_failures(place.name):
        stacks = boto3.client("cloudformation", region_name=place.region)
    if not keys.get(place.name):
        try:
            keys[place.name] = (signing_key(place, stacks, clients.keys).public,)
        except BenchError as unread:
            typer.echo(f"the key of {place.name} can't be read: {unread.problems[0].message}", err=True)
    return records_of_account(place, name, stacks, clients.objects)
