from __future__ import annotations

import pytest

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.faults import ControlSettings, Faults

DEFAULTS: dict[str, object] = {
    "clock_speed": 1.0,
    "wait_speed": None,
    "instance_start_s": 0.0,
    "image_pull_gb": 0.0,
    "pull_gb_per_s": 0.1,
    "download_s": 0.0,
    "startup_s": 0.0,
    "capacity_limit": None,
    "capacity_pending": False,
    "no_capacity": [],
    "no_capacity_reason": None,
    "access_denied": [],
    "absent_is_denied": False,
    "iam_propagation_s": 0.0,
    "tags_late_s": 0.0,
    "throttled": [],
    "silent_rollback": False,
    "raised_alarms_end_updates": False,
    "same_config": "ignored",
    "stuck": None,
    "optimization_job_s": 30.0,
    "optimization_job_failure": None,
    "function_python_path": None,
    "object_age_days": 0.0,
}


class RealTime:
    """A real clock that a test moves."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def faults() -> tuple[Faults, RealTime]:
    real = RealTime()
    return Faults(VirtualClock(real)), real


def test_the_defaults_are_no_faults() -> None:
    made, _ = faults()
    assert made.settings().model_dump() == DEFAULTS
    assert not made.denies("DescribeModel", [0.0])
    assert not made.take_silent_rollback()
    assert not made.is_stuck("chat")


def test_settings_are_changed_one_by_one_and_reset_together() -> None:
    made, _ = faults()
    made.change({"clock_speed": 60, "stuck": "chat"})
    made.change({"capacity_limit": 2, "silent_rollback": True})
    changed = {"clock_speed": 60.0, "stuck": "chat", "capacity_limit": 2, "silent_rollback": True}
    assert made.settings().model_dump() == {**DEFAULTS, **changed}
    assert (made.take_silent_rollback(), made.take_silent_rollback()) == (True, False)
    made.reset()
    assert made.settings().model_dump() == DEFAULTS


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"speed": 2}, "speed: Extra inputs are not permitted"),
        ({"clock_speed": 0}, "clock_speed: Input should be greater than 0"),
        ({"clock_speed": 601}, "clock_speed: Input should be less than or equal to 600"),
        ({"clock_speed": "60"}, "clock_speed: Input should be a valid number"),
        ({"capacity_limit": 1.5}, "capacity_limit: Input should be a valid integer"),
        ({"capacity_limit": -1}, "capacity_limit: Input should be greater than or equal to 0"),
        ({"silent_rollback": 1}, "silent_rollback: Input should be a valid boolean"),
        ({"stuck": ""}, "stuck: String should have at least 1 character"),
        ({"access_denied": [{"operation": "Describe", "count": 1}]}, "Describe is no operation of sagemaker"),
        ({"access_denied": [{"operation": "DescribeModel"}]}, "either count or seconds must be set"),
        (
            {"access_denied": [{"operation": "DescribeModel", "count": 1, "seconds": 1}]},
            "either count or seconds must be set",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(document: dict[str, object], said: str) -> None:
    made, _ = faults()
    with pytest.raises(ApiError) as refused:
        made.change({"instance_start_s": 5, **document})
    assert (refused.value.code, said in refused.value.message) == ("ValidationException", True)
    assert made.settings() == ControlSettings()


def test_an_operation_is_denied_so_many_times() -> None:
    made, _ = faults()
    made.change({"access_denied": [{"operation": "DescribeModel", "count": 2}]})
    assert not made.denies("DescribeEndpoint", [])
    assert made.denies("DescribeModel", [])
    assert [each.model_dump() for each in made.settings().access_denied] == [
        {"operation": "DescribeModel", "count": 1, "seconds": None}
    ]
    assert [made.denies("DescribeModel", []) for _ in range(2)] == [True, False]
    assert made.settings().access_denied == []


def test_an_operation_is_denied_for_so_many_virtual_seconds() -> None:
    made, real = faults()
    made.change({"access_denied": [{"operation": "InvokeEndpoint", "seconds": 60}], "clock_speed": 10})
    real.s += 5
    assert made.denies("InvokeEndpoint", [])
    assert [each.seconds for each in made.settings().access_denied] == [10.0]
    real.s += 1
    assert not made.denies("InvokeEndpoint", [])
    assert made.settings().access_denied == []


def test_a_new_resource_is_denied_until_its_role_is_known() -> None:
    made, real = faults()
    made.change({"iam_propagation_s": 10})
    assert made.denies("DescribeModel", [0.0])
    assert not made.denies("DescribeModel", [])
    real.s = 9.0
    assert made.denies("DescribeModel", [-100.0, 0.0])
    real.s = 10.0
    assert not made.denies("DescribeModel", [0.0])
