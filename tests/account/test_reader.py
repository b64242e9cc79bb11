"""What stops a call to AWS, as a table of what botocore raises; no test calls AWS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore import exceptions

from seatrial.account.reader import aws_failures
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from pathlib import Path

LOG_IN = "log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
RENEW = (
    "renew them (`aws sso login`, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN); check with `aws "
    "sts get-caller-identity`"
)
CONFIGURE = "fix the profile in ~/.aws/config (AWS_CONFIG_FILE), or choose another with AWS_PROFILE"
CONNECTION = "check the connection, the region and AWS_ENDPOINT_URL"
URL = "https://cloudformation.us-east-1.amazonaws.com/"
ROLE = "arn:aws:sts::111122223333:assumed-role/ci/me"
STACK = "arn:aws:cloudformation:eu-west-1:111122223333:stack/chat/*"


def refused(code: str, message: str, operation: str = "DescribeStacks") -> exceptions.ClientError:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}}, operation)


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
            exceptions.CredentialRetrievalError(provider="custom-process", error_msg="exit 1"),
            "SEA503: there are no AWS credentials: Error when retrieving credentials from custom-process: exit 1\n"
            f"  hint: {LOG_IN}",
        ),
        (
            exceptions.SSOTokenLoadError(error_msg="Token for work does not exist"),
            "SEA503: there are no AWS credentials: Error loading SSO Token: Token for work does not exist\n"
            f"  hint: {LOG_IN}",
        ),
        (
            exceptions.UnauthorizedSSOTokenError(),
            "SEA503: the AWS login has expired: The SSO session associated with this profile has expired or is "
            "otherwise invalid. To refresh this SSO session run aws sso login with the corresponding profile.\n"
            f"  hint: {RENEW}",
        ),
        (
            exceptions.TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed"),
            "SEA503: the AWS login has expired: Error when retrieving token from sso: Token has expired and refresh "
            f"failed\n  hint: {RENEW}",
        ),
        (
            exceptions.ProfileNotFound(profile="nosuch"),
            "SEA503: The config profile (nosuch) could not be found\n"
            "  hint: set AWS_PROFILE to one of `aws configure list-profiles`",
        ),
        (
            exceptions.InvalidConfigError(error_msg='The source_profile "nope" does not exist.'),
            'SEA503: the AWS configuration holds no credentials: The source_profile "nope" does not exist.\n'
            f"  hint: {CONFIGURE}",
        ),
        (
            exceptions.ConfigParseError(path="/home/me/.aws/config"),
            "SEA503: the AWS configuration holds no credentials: Unable to parse config file: /home/me/.aws/config\n"
            f"  hint: {CONFIGURE}",
        ),
        (
            json.JSONDecodeError("Expecting value", "hello", 0),
            "SEA503: the output of credential_process is not JSON: Expecting value: line 1 column 1 (char 0)\n"
            f"  hint: {CONFIGURE}",
        ),
        (
            refused("ExpiredToken", "The security token included in the request is expired"),
            "SEA503: the AWS credentials have expired (ExpiredToken: The security token included in the request is "
            f"expired)\n  hint: {RENEW}",
        ),
        (
            refused("ExpiredTokenException", "no"),
            f"SEA503: the AWS credentials have expired (ExpiredTokenException: no)\n  hint: {RENEW}",
        ),
        (
            refused("RequestExpired", "Request has expired."),
            "SEA503: the AWS credentials have expired (RequestExpired: Request has expired.)\n"
            f"  hint: {RENEW}; if they are new, check this machine's clock",
        ),
        (
            refused("InvalidClientTokenId", "The security token included in the request is invalid"),
            "SEA503: the AWS credentials are refused (InvalidClientTokenId: The security token included in the request "
            f"is invalid)\n  hint: {RENEW}",
        ),
        (
            refused("UnrecognizedClientException", "no"),
            f"SEA503: the AWS credentials are refused (UnrecognizedClientException: no)\n  hint: {RENEW}",
        ),
        (
            refused("InvalidAccessKeyId", ""),
            f"SEA503: the AWS credentials are refused (InvalidAccessKeyId)\n  hint: {RENEW}",
        ),
        (
            refused("RequestTimeTooSkewed", "too far"),
            "SEA503: the request's timestamp is refused (RequestTimeTooSkewed: too far)\n  hint: set this machine's "
            "clock",
        ),
        (
            refused(
                "AccessDenied",
                f"User: {ROLE} is not authorized to perform: cloudformation:DescribeStacks on resource: {STACK} "
                "because no identity-based policy allows the cloudformation:DescribeStacks action",
            ),
            f"SEA511: {ROLE} may not cloudformation:DescribeStacks on {STACK} (because no identity-based policy allows "
            "the cloudformation:DescribeStacks action)\n"
            f"  hint: allow cloudformation:DescribeStacks on {STACK} in the caller's policy, or use other credentials",
        ),
        (
            refused("AccessDeniedException", f"User: {ROLE} is not authorized to perform: ecr:BatchGetImage"),
            f"SEA511: {ROLE} may not ecr:BatchGetImage\n"
            "  hint: allow ecr:BatchGetImage in the caller's policy, or use other credentials",
        ),
        (
            refused("AccessDenied", "Access Denied", "GetObject"),
            "SEA511: access is denied: GetObject (AccessDenied: Access Denied)\n"
            "  hint: allow the caller to call GetObject there, or use other credentials",
        ),
        (
            refused("ThrottlingException", "Rate exceeded"),
            "SEA504: AWS could not carry out DescribeStacks (ThrottlingException: Rate exceeded)\n"
            "  hint: try again in a minute; the Service Quotas console shows the account's quotas",
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
            exceptions.NoRegionError(),
            f"SEA504: AWS can't be reached: You must specify a region.\n  hint: {CONNECTION}",
        ),
        (
            exceptions.ParamValidationError(report="Invalid bucket name"),
            "SEA501: Parameter validation failed: Invalid bucket name",
        ),
    ],
)
def test_each_has_its_rule_and_its_hint(failure: Exception, message: str) -> None:
    with pytest.raises(BenchError) as caught, aws_failures("the-stack"):
        raise failure
    assert str(caught.value) == f"the-stack: {message}"


def test_an_answer_about_what_was_asked_for_is_its_callers_to_read() -> None:
    with pytest.raises(exceptions.ClientError), aws_failures("the-stack"):
        raise refused("ValidationError", "Stack with id the-stack does not exist")


def test_a_mistake_of_ours_is_not_covered_up() -> None:
    with pytest.raises(KeyError), aws_failures("the-stack"):
        raise KeyError


@pytest.mark.parametrize(
    ("variables", "config", "told"),
    [
        (
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token", "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/ci"},
            "",
            "SEA503: the AWS credentials come from /nowhere/token, which can't be read: No such file or directory",
        ),
        (
            {},
            "[default]\ncredential_process = /nowhere/bin\n",
            "SEA503: the AWS credentials come from /nowhere/bin, which can't be read: No such file or directory",
        ),
        ({"AWS_PROFILE": "nosuch"}, "", "SEA503: The config profile (nosuch) could not be found"),
        (
            {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"},
            "",
            "SEA503: there are no AWS credentials: Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY",
        ),
        (
            {},
            "[default]\nrole_arn = arn:aws:iam::111122223333:role/ci\nsource_profile = nosuch\n",
            'SEA503: the AWS configuration holds no credentials: The source_profile "nosuch" referenced in the profile '
            '"default" does not exist.',
        ),
        ({}, "[default", "SEA503: the AWS configuration holds no credentials: Unable to parse config file: "),
        (
            {"AWS_ENDPOINT_URL": "nonsense", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
            "",
            "SEA512: the AWS configuration has an invalid value: Invalid endpoint: nonsense",
        ),
    ],
)
def test_what_boto3_itself_raises_of_an_environment(
    variables: dict[str, str], config: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of it is no exception of botocore's: a token that is not there is a FileNotFoundError."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config").write_text(config, encoding="utf-8")
    given = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    for name, value in (given | {"AWS_EC2_METADATA_DISABLED": "true"} | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BenchError) as caught, aws_failures("the-stack"):
        boto3.Session().client("cloudformation", region_name="us-east-1").describe_stacks(StackName="chat")
    assert str(caught.value).startswith(f"the-stack: {told}")
    assert "hint: " in str(caught.value)
