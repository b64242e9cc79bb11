"""What stops a call before AWS answers; no test calls AWS."""

from __future__ import annotations

import pytest
from botocore import exceptions

from seatrial.deployment.aws_failures import aws_failures
from seatrial.errors import BenchError

LOG_IN = "log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
CONNECTION = "check the connection, the region and AWS_ENDPOINT_URL"
URL = "https://cloudformation.us-east-1.amazonaws.com/"


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            exceptions.NoCredentialsError(),
            f"SEA503: there are no AWS credentials: Unable to locate credentials\n  hint: {LOG_IN}",
        ),
        (
            exceptions.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"),
            "SEA503: there are no AWS credentials: Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY\n"
            f"  hint: {LOG_IN}",
        ),
        (
            exceptions.ProfileNotFound(profile="nosuch"),
            "SEA503: The config profile (nosuch) could not be found\n"
            "  hint: set AWS_PROFILE to one of `aws configure list-profiles`",
        ),
        (
            exceptions.EndpointConnectionError(endpoint_url=URL),
            f'SEA504: AWS can\'t be reached: Could not connect to the endpoint URL: "{URL}"\n  hint: {CONNECTION}',
        ),
        (
            exceptions.ConnectTimeoutError(endpoint_url=URL),
            f'SEA504: AWS can\'t be reached: Connect timeout on endpoint URL: "{URL}"\n  hint: {CONNECTION}',
        ),
        (
            exceptions.ParamValidationError(report="Invalid bucket name"),
            "SEA501: Parameter validation failed: Invalid bucket name",
        ),
    ],
)
def test_each_has_its_rule_and_its_hint(failure: exceptions.BotoCoreError, message: str) -> None:
    with pytest.raises(BenchError) as caught, aws_failures("the-stack"):
        raise failure
    assert str(caught.value) == f"the-stack: {message}"


def test_a_mistake_of_ours_is_not_covered_up() -> None:
    with pytest.raises(KeyError), aws_failures("the-stack"):
        raise KeyError
