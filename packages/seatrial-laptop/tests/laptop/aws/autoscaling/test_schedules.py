from __future__ import annotations

from datetime import UTC, datetime

import pytest

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling.scalable_targets import is_due, is_over, kept_action, parsed_schedule

NIGHT = "cron(0 20 * * ? *)"


def seconds(written: str) -> float:
    return datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("expression", "zone", "after", "following"),
    [
        ("at(2026-11-22T20:00:00)", "", "2026-11-22T19:59:59", "2026-11-22T20:00:00"),
        ("at(2026-11-22T20:00:00)", "Europe/Berlin", "2026-11-22T00:00:00", "2026-11-22T19:00:00"),
        ("at(2026-11-22T20:00:00)", "", "2026-11-22T20:00:00", None),
        ("rate(2 hours)", "", "2026-11-22T00:00:00", "2026-11-22T02:00:00"),
        ("rate(2 hours)", "", "2026-11-22T05:30:00", "2026-11-22T06:00:00"),
        ("rate(1 minute)", "", "2026-11-22T00:01:00", "2026-11-22T00:02:00"),
        (NIGHT, "", "2026-11-22T20:00:00", "2026-11-23T20:00:00"),
        (NIGHT, "Europe/Berlin", "2026-11-22T12:00:00", "2026-11-22T19:00:00"),
        (NIGHT, "Europe/Berlin", "2026-07-22T12:00:00", "2026-07-22T18:00:00"),
        ("cron(30 7 ? * MON-FRI *)", "", "2026-11-20T08:00:00", "2026-11-23T07:30:00"),
    ],
)
def test_the_next_time_of_a_schedule(expression: str, zone: str, after: str, following: str | None) -> None:
    found = parsed_schedule(expression, zone, seconds("2026-11-22T00:00:00"))(seconds(after))
    assert found == (None if following is None else seconds(following))


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("every day", ""),
        ("rate(0 minutes)", ""),
        ("rate(1 fortnight)", ""),
        ("at(2026-13-22T20:00:00)", ""),
        ("cron(0 20 * * *)", ""),
        ("cron(0 20 * * * *)", ""),
        (NIGHT, "Europe/Atlantis"),
        (NIGHT, "../../etc/passwd"),
    ],
)
def test_what_is_no_schedule_is_refused(expression: str, zone: str) -> None:
    with pytest.raises(ApiError, match="is not valid"):
        parsed_schedule(expression, zone, 0.0)


def action(now: str, **more: object) -> dict[str, object]:
    request = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "inference-component/chat",
        "ScheduledActionName": "night",
        "Schedule": NIGHT,
        "ScalableTargetAction": {"MinCapacity": 0, "MaxCapacity": 2},
        **more,
    }
    return dict(kept_action({}, request, seconds(now)))


def test_an_action_is_due_between_its_start_and_its_end() -> None:
    plain = action("2026-11-22T00:00:00")
    assert not is_due(plain, seconds("2026-11-22T19:59:59"))
    assert is_due(plain, seconds("2026-11-22T20:00:00"))
    late = action("2026-11-22T00:00:00", StartTime="2026-11-23T00:00:00Z")
    assert not is_due(late, seconds("2026-11-22T23:00:00"))
    assert is_due(late, seconds("2026-11-23T20:00:00"))
    ended = action("2026-11-22T00:00:00", EndTime=seconds("2026-11-22T12:00:00"))
    assert not is_due(ended, seconds("2026-11-22T23:00:00"))
    assert (is_over(ended, seconds("2026-11-22T00:00:00")), is_over(plain, seconds("2026-11-22T21:00:00"))) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ScalableTargetAction": {}}, "must set MinCapacity, MaxCapacity or both"),
        ({"ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 2}}, "greater than or equal"),
        ({"ScalableTargetAction": {"MinCapacity": -1}}, "0 or more"),
        ({"Schedule": "at(2026-11-21T00:00:00)"}, "is in the past"),
        ({"StartTime": 20, "EndTime": 10}, "EndTime must be later"),
        ({"StartTime": "soon"}, "is no time"),
    ],
)
def test_an_action_that_can_not_act_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ApiError, match=said):
        action("2026-11-22T00:00:00", **wrong)
