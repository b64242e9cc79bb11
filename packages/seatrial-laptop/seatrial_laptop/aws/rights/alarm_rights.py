"""Whether an execution role may describe the alarms of an automatic rollback."""

from __future__ import annotations

from seatrial_laptop.aws.rights.role_rights import Right, role_allows
from seatrial_laptop.aws.runtime.download_rights import role_exists
from seatrial_laptop.environment import REGION, own_account


def may_describe_alarm(role_arn: str, alarm: str) -> bool:
    """Tell whether a role may describe an alarm; a role that isn't there is not asked, downloads refuse it.

    Args:
        role_arn: ARN of the role.
        alarm: Name of the alarm.
    """
    resource = f"arn:aws:cloudwatch:{REGION}:{own_account()}:alarm:{alarm}"
    return not role_exists(role_arn) or role_allows(role_arn, Right("cloudwatch:DescribeAlarms", resource))
