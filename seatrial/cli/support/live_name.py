"""The live endpoint of a command: name, generation and Region, by spec, or the Region of the profile."""

from __future__ import annotations

from pathlib import Path

from seatrial.cli.support.options import environments_folder
from seatrial_base.errors import SpecError


def live_name(endpoint: str, environment: str, environments: Path | None) -> tuple[str, int, str]:
    """Return the endpoint's name in its spec, its locked generation and the environment's region.

    Raises:
        SpecError: The spec, its lock or the environment can't be read.
    """
    from seatrial.locks.changes import generation_of
    from seatrial.locks.lock_file import document_in_lock
    from seatrial.specs.load import load_environment, load_spec

    spec = Path(endpoint)
    is_file = spec.suffix == ".yaml"
    folder = environments_folder(environments, spec if is_file else Path("endpoints/x.yaml"))
    name = load_spec(spec, environment, environments=folder).endpoint.name if is_file else endpoint
    locked = document_in_lock(spec if is_file else Path("endpoints") / f"{name}.yaml", environment)
    return name, generation_of(locked), load_environment(folder, environment).region


def own_region() -> str:
    """Return the Region of the AWS profile.

    Raises:
        SpecError: SEA512, it has none.
    """
    import boto3

    from seatrial.account.reader import aws_failures

    with aws_failures("command line"):
        region = boto3.session.Session().region_name
    if not region:
        hint = "give --region, or set AWS_REGION"
        raise SpecError.of("SEA512", "no region is configured", where="command line", hint=hint)
    return region
