"""What SageMaker does with the role of a model, of instances or of a job: assume it, pull, download, write, log.

A role that the embedded IAM does not have is one of a real account: what it may do is not known, so it is not judged.
"""

from __future__ import annotations

import re
from typing import Final

from ministack.core import iam_evaluator
from ministack.services import iam

from seatrial_laptop.aws.rights.request_rights import encryption_right, json_object
from seatrial_laptop.aws.rights.role_rights import ALLOW, Right, role_allows, role_denial
from seatrial_laptop.environment import REGION, own_account

SAGEMAKER: Final = "sagemaker.amazonaws.com"
PULLS: Final = ("ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage")
LOGS: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")
PRIVATE_IMAGE: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/(?P<name>[^:@]+)"
)


def role_exists(arn: str) -> bool:
    """Return whether a role is in the embedded IAM."""
    role = iam._roles.get_scoped(own_account(), None, arn.rpartition("/")[2])  # noqa: SLF001 (the contract)
    return role is not None and role["Arn"] == arn


def assumption_denial(role_arn: str) -> str | None:
    """Return why SageMaker may not assume a role; `None` when it may.

    Args:
        role_arn: A role of the embedded IAM.
    """
    role = iam._roles.get_scoped(own_account(), None, role_arn.rpartition("/")[2]) or {}  # noqa: SLF001 (the contract)
    context = iam_evaluator.EvalContext(
        principal_arn=SAGEMAKER,
        principal_type="Service",
        principal_account=own_account(),
        action="sts:AssumeRole",
        resource_arn=role_arn,
        region=REGION,
        service_context={"aws:sourceaccount": own_account()},
    )
    policy = json_object(str(role.get("AssumeRolePolicyDocument") or "{}").encode())
    if iam_evaluator.evaluate_resource_policy({**policy}, context, SAGEMAKER).decision == ALLOW:
        return None
    return (
        f"Could not assume role {role_arn}. Please ensure that the role exists and allows principal '{SAGEMAKER}' to "
        "assume the role."
    )


def pull_denial(role_arn: str, image: str) -> str | None:
    """Return why SageMaker may not pull an image with a role; `None` when it may.

    Wording: https://github.com/aws/deep-learning-containers/issues/759.

    Args:
        role_arn: The execution role.
        image: URI of the image; one that is in no private repository needs no right.
    """
    found = PRIVATE_IMAGE.match(image)
    if found is None or not role_exists(role_arn):
        return None
    repository = f"arn:aws:ecr:{found['region']}:{found['account']}:repository/{found['name']}"
    rights = [Right("ecr:GetAuthorizationToken", "*"), *(Right(action, repository) for action in PULLS)]
    lacking = next((each for each in rights if role_denial(role_arn, each)), None)
    if lacking is None:
        return None
    return f"The role '{role_arn}' does not have {lacking.action[4:]} permission for the image: '{image}'."


def download_denial(role_arn: str, url: str) -> str | None:
    """Return why a role may not download an `s3://bucket/key` now; `None` when it may.

    Args:
        role_arn: The execution role; one that was deleted may nothing.
        url: The object.
    """
    if not role_exists(role_arn):
        return f"AccessDenied: {role_arn} does not exist, so {url} can not be downloaded."
    return _denial(role_arn, "s3:GetObject", url)


def upload_denial(role_arn: str, url: str) -> str | None:
    """Return why a role may not write an `s3://bucket/key`; `None` when it may, or is not known."""
    return _denial(role_arn, "s3:PutObject", url) if role_exists(role_arn) else None


def publication_denial(role_arn: str, topic_arn: str) -> str | None:
    """Return why a role may not publish to a topic; `None` when it may, or is not known."""
    return role_denial(role_arn, Right("sns:Publish", topic_arn)) if role_exists(role_arn) else None


def may_log(role_arn: str, group: str, stream: str) -> bool:
    """Return whether a role may write the logs of a container; SageMaker drops the lines of one that may not.

    Args:
        role_arn: The execution role; one that is not known may.
        group: Name of the log group.
        stream: Name of the log stream.
    """
    arn = f"arn:aws:logs:{REGION}:{own_account()}:log-group:{group}"
    rights = [Right(action, f"{arn}:log-stream:{stream}" if "Group" not in action else arn) for action in LOGS]
    return not role_exists(role_arn) or all(role_denial(role_arn, each) is None for each in rights)


def _denial(role_arn: str, action: str, url: str) -> str | None:
    resource = f"arn:aws:s3:::{url.removeprefix('s3://')}"
    key = encryption_right(action, resource)
    refused = role_denial(role_arn, Right(action, resource)) or (role_denial(role_arn, key) if key else None)
    return f"AccessDenied: {refused}" if refused else None


def may_describe_alarm(role_arn: str, alarm: str) -> bool:
    """Return whether a role may describe an alarm of an automatic rollback; one that is not known may.

    Args:
        role_arn: The execution role of the endpoint or of the component's model.
        alarm: Name of the alarm.
    """
    resource = f"arn:aws:cloudwatch:{REGION}:{own_account()}:alarm:{alarm}"
    return not role_exists(role_arn) or role_allows(role_arn, Right("cloudwatch:DescribeAlarms", resource))
