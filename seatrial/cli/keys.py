"""`seatrial keys`: the public key with which an environment's trial service signs results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import ENDPOINTS

if TYPE_CHECKING:
    from seatrial.specs.yaml_source import Yaml


def keys_command(
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    *,
    write: Annotated[
        bool,
        typer.Option("--write", help="Add the key to the files of the environments that take plans from this one."),
    ] = False,
) -> None:
    """Read the public key of an environment's trial service, which proves that a plan was tried there.

    It is added to `promotion.public_keys`; the review of that change is the trust in it. A key that is there stays,
    as locks may rest on it.
    """
    import boto3

    from seatrial.account.clients import account_clients, check_account
    from seatrial.account.reader import aws_failures
    from seatrial.locks.lock_file import replace_file
    from seatrial.operations.promotion import signing_key
    from seatrial.specs.load import environment_names, load_environment
    from seatrial.specs.yaml_edit import edited_file

    folder = environments_folder(environments, ENDPOINTS / "spec.yaml")
    place = load_environment(folder, environment)
    targets = [load_environment(folder, name) for name in environment_names(folder)]
    clients = account_clients(place)
    check_account(place, clients.identity)
    with aws_failures(environment):
        cloudformation = boto3.client("cloudformation", region_name=place.region)
    key = signing_key(place, cloudformation, clients.keys)
    typer.echo(f"{environment}: {key.arn}\nsha256 {key.fingerprint}\n{key.public}")
    for target in (each for each in targets if each.promotion.source == environment):
        file = folder / f"{target.name}.yaml"
        if key.public in target.promotion.public_keys:
            typer.echo(f"{file.as_posix()}: has it")
        elif not write:
            typer.echo(f"{file.as_posix()}: lacks it (add it with --write)")
        else:
            keys: list[Yaml] = [*target.promotion.public_keys, key.public]
            replace_file(file, edited_file(file, {("promotion", "public_keys"): keys}), "SEA584")
            typer.echo(f"{file.as_posix()}: added")
