"""What others take of an environment: `seatrial keys`, its public key, and `seatrial guard-rails`, its rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import ENDPOINTS

if TYPE_CHECKING:
    from seatrial.specs.yaml_source import Yaml

_MOST_CHARACTERS = {"scp": 5120, "iam": 6144}  # AWS Organizations quotas; IAM and AWS STS quotas, managed policies


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


def guard_rails_command(
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output_format: Annotated[
        Literal["guard", "scp", "iam"],
        typer.Option("--format", help="`guard`: rules of AWS CloudFormation Guard; `scp`, `iam`: a policy of denials."),
    ] = "guard",
) -> None:
    """Print an environment's guard rails as rules that hold for whoever deploys: for cfn-guard, a hook, or IAM.

    The policy allows nothing: attach it beside what allows, as a service control policy (`scp`), a permissions boundary
    or an execution policy of `cdk bootstrap` (`iam`). What the format can't enforce is on stderr.
    """
    from seatrial.specs.guardrails import enforcement
    from seatrial.specs.load import load_environment
    from seatrial_base.errors import SpecError
    from seatrial_base.terminal import show_text

    place = load_environment(environments_folder(environments, ENDPOINTS / "spec.yaml"), environment)
    place, ended = enforcement.without_ended(place, datetime.now(UTC).date())
    for each in ended:
        message = f"the waiver of {each.rail} for {each.endpoint} ended on {each.expires} (approved by {each.approver})"
        typer.echo(f"left out: {message}; a hook has it until the stack is deployed without it", err=True)
    left = {name: enforcement.NOT_IN_TEMPLATES[name] for name in enforcement.unenforced(place)}
    if output_format == "guard":
        show_text(enforcement.guard_rules(place))
    else:
        policy = json.dumps(document := enforcement.iam_denials(place), separators=(",", ":"))
        most = _MOST_CHARACTERS[output_format]
        if not document["Statement"]:
            hint = f"a policy can deny {', '.join(sorted(enforcement.BY_IAM))}; see --format guard"
            raise SpecError.of("SEA648", f"nothing in {environment} is what a policy can deny", hint=hint)
        if len(policy) > most:
            message = f"the policy has {len(policy):,} characters, and AWS takes {most:,}"
            raise SpecError.of("SEA648", message, hint="list fewer instance types or tags, or enforce them by the hook")
        typer.echo(policy)
        others = place.guard_rails.stated - enforcement.BY_IAM - left.keys()
        left |= dict.fromkeys(sorted(others), "no request to AWS shows it: see --format guard")
    for name, because in left.items():
        typer.echo(f"not enforced: {name}: {because}", err=True)
