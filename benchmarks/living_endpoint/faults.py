"""What the embedded AWS does wrong while an endpoint is updated: settings of its control interface, by name."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HURRY: Final = {"wait_speed": 300}
"""Minutes of waiting pass in seconds; while a function runs they don't."""
THROTTLED: Final = (
    "DescribeInferenceComponent",
    "DescribeEndpoint",
    "ListInferenceComponents",
    "DescribeScalableTargets",
    "RegisterScalableTarget",
    "DescribeStacks",
    "DescribeAlarms",
    "PutMetricData",
    "StartExecution",
    "GetParameter",
)

OLD_BOTO3: Final = "SEATRIAL_OLD_BOTO3"
"""The variable that names the folder of an older boto3."""

FAULTS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {
        "none": {},
        "usual": {"absent_is_denied": True, "tags_late_s": 10},
        "absent_is_denied": {"absent_is_denied": True},
        "tags_late": {"tags_late_s": 30},
        "slow_starts": {
            **HURRY,
            "instance_start_s": 900,
            "image_pull_gb": 10,
            "pull_gb_per_s": 0.1,
            "download_s": 300,
            "startup_s": 300,
        },
        "same_config_replaced": {"same_config": "replaced"},
        "same_config_refused": {"same_config": "refused"},
        "throttled": {"throttled": [{"operation": name, "count": 3} for name in THROTTLED]},
        "old_objects": {"object_age_days": 3650},
        "raised_alarms_end_updates": {"raised_alarms_end_updates": True},
    }
)
"""Each leaves an endpoint that can be deployed and updated."""


def chosen_faults(names: str) -> list[str]:
    """Return the names in a list with commas; `all` stands for every one."""
    return [*(name for name in FAULTS if name != "none"), "old_boto3"] if names == "all" else names.split(",")


def faults_of(names: str) -> Mapping[str, object]:
    """Return the settings of a name, or of several with `+` between them.

    `old_boto3` is that of the folder which a variable names.

    Raises:
        KeyError: There is no such name, or no such variable.
    """
    found: dict[str, object] = {}
    for name in names.split("+"):
        found |= {"function_python_path": os.environ[OLD_BOTO3]} if name == "old_boto3" else FAULTS[name]
    return found
