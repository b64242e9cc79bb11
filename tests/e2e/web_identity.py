"""Credentials of a job: a role that its token may assume, as `aws-actions/configure-aws-credentials` gets them.

The token is not signed: the embedded AWS reads its claims, and evaluates the role's trust policy with them.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, cast

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ISSUER = "token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"


def provider_arn(account: str) -> str:
    """Return the ARN of the provider of GitHub's tokens in an account."""
    return f"arn:aws:iam::{account}:oidc-provider/{ISSUER}"


def assumed(root: Mapping[str, str], role_arn: str, subject: str) -> dict[str, str]:
    """Return the variables of a session of a role.

    Args:
        root: The variables of the account's root.
        role_arn: The role.
        subject: The claim `sub` of the token.

    Raises:
        ClientError: AccessDenied, the role's trust policy does not take the token.
    """
    claims = {"iss": f"https://{ISSUER}", "aud": AUDIENCE, "sub": subject}
    token = ".".join([_part({"alg": "none"}), _part(claims), "unsigned"])
    sts = boto3.Session(root["AWS_ACCESS_KEY_ID"], root["AWS_SECRET_ACCESS_KEY"]).client(
        "sts",
        region_name=root["AWS_REGION"],
        endpoint_url=root["AWS_ENDPOINT_URL"],
        config=Config(retries={"total_max_attempts": 1}),
    )
    # The embedded AWS answers nothing unsigned.
    sts.meta.events.register_first(
        "choose-signer.sts.AssumeRoleWithWebIdentity", cast("Callable[..., None]", lambda **_: "v4")
    )
    made = sts.assume_role_with_web_identity(RoleArn=role_arn, RoleSessionName="job", WebIdentityToken=token)
    keys = made["Credentials"]
    return {
        **root,
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }


def _part(document: Mapping[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()
