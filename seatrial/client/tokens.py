"""Bearer tokens for OpenAI's own client, renewed while they are used.

alias = Alias(boto3.client("ssm"), "dev", "chat", Schema.OPENAI_CHAT)
client = OpenAI(base_url=alias.openai_base_url(), api_key=token_source("eu-west-1"))
"""

from __future__ import annotations

from datetime import UTC, datetime

from seatrial_load.aws.credentials import credential_source
from seatrial_load.aws.sigv4 import RenewedToken

TOKEN_S = 900


def token_source(region: str, *, expires_s: int = TOKEN_S) -> RenewedToken:
    """Return a function that returns a token, which OpenAI's client takes as its `api_key` and calls for each request.

    No call of AWS is made. A token is used for half of its life; it has the authority of the credentials of this
    process, and ends with them.

    Args:
        expires_s: Seconds that a token holds: 1 to 43,200.

    Raises:
        BenchError: SEA503, there are no credentials.
    """
    return RenewedToken(credential_source(), region, lambda: datetime.now(UTC), expires_s)
