"""`seatrial token`: a bearer token for OpenAI clients, and the base URL that goes with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from seatrial.cli.support.options import EnvironmentsFolder, LiveEndpoint, LiveEnvironment, LiveRegion
from seatrial.cli.support.specs import live_name, own_region, refuse_options

LONGEST_MINUTES = 720


def token_command(
    endpoint: LiveEndpoint,
    environment: LiveEnvironment = None,
    environments: EnvironmentsFolder = None,
    component: Annotated[
        str | None,
        typer.Option("--component", metavar="NAME", help="Inference component, without `-e`: the alias names it."),
    ] = None,
    region: LiveRegion = None,
    *,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=LONGEST_MINUTES, help="How long it holds, minutes.")
    ] = 15,
    export: Annotated[
        bool, typer.Option("--export", help="Print OPENAI_BASE_URL and OPENAI_API_KEY as lines of a shell.")
    ] = False,
) -> None:
    """Print a bearer token for the OpenAI API of an endpoint, once; nothing keeps it.

    The token has the authority of your AWS credentials and ends with them. Make it where it is used:
    `eval "$(seatrial token chat -e dev --export)"`. Programs renew theirs with `seatrial.client.token_source`.
    """
    from seatrial_load.aws.credentials import credential_source
    from seatrial_load.aws.sigv4 import bearer_token
    from seatrial_load.client.connection import openai_path, runtime_url

    if environment is None:
        place, named = region or own_region(), (endpoint, component)
    else:
        given = {"--component": component, "--region": region}
        refuse_options("leave it out", (True, "{} contradicts --environment", given))
        import boto3

        from seatrial.account.reader import aws_failures
        from seatrial.client.alias import Alias
        from seatrial_load.payload.schema import Schema

        name, _, place = live_name(endpoint, environment, environments)
        with aws_failures(name):
            ssm = boto3.client("ssm", region_name=place)
            target = Alias(ssm, environment, name, Schema.OPENAI_CHAT, fraction=lambda: 0.0).target()
        named = (target.endpoint_name, target.inference_component)
    base_url = f"{runtime_url(place)}/{openai_path(*named)}"
    token = bearer_token(credential_source()(), place, datetime.now(UTC), expires_s=minutes * 60)
    typer.echo(f"export OPENAI_BASE_URL={base_url}\nexport OPENAI_API_KEY={token}" if export else token)
    typer.echo(f"base URL: {base_url}\nholds {minutes} min, or as long as your AWS credentials", err=True)
