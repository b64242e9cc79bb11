"""The Region that a command asks where neither an option nor an environment names one."""

from __future__ import annotations

from seatrial_base.errors import SpecError


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
