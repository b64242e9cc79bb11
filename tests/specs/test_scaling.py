"""Limits of scaling and their schedules, as a spec gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import fingerprint, load_spec
from seatrial.specs.scaling import ScalingSpec
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: chat
model: {hub_id: meta-llama/Llama-2-7b-chat-hf}
workload: {input_tokens: 256, output_tokens: 256, concurrency: 16}
"""
NIGHT = '{name: night, schedule: "cron(0 20 * * ? *)", timezone: Europe/Berlin, min_copies: 0, max_copies: 2}'


def problems(folder: Path, text: str) -> list[tuple[str, str]]:
    """Return rule and field of each problem of a spec with this behind it."""
    (folder / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    (folder / "chat.yaml").write_text(SPEC + text)
    try:
        load_spec(folder / "chat.yaml", "dev", environments=folder)
    except SpecError as error:
        return [(problem.rule, problem.field) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "scaling",
    [
        "min_copies: 0, max_copies: 2",
        f"max_copies: 2, schedules: [{NIGHT}]",
        'max_copies: 2, schedules: [{name: once, schedule: "at(2027-01-01T00:00:00)", max_copies: 1}]',
        'max_copies: 2, schedules: [{name: daily, schedule: "rate(1 day)", min_copies: 2}]',
        "max_copies: 2, scale_in_protection: true, instance_scale_in: {strategy: consolidation, cooldown_minutes: 5}",
    ],
)
def test_what_is_taken(tmp_path: Path, scaling: str) -> None:
    assert problems(tmp_path, f"scaling: {{{scaling}}}\n") == []


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ("min_copies: -1", [("SEA107", "scaling.min_copies")]),
        ("min_copies: 0, max_copies: 0", [("SEA107", "scaling.max_copies")]),
        ("min_copies: 3, max_copies: 2", [("SEA108", "scaling.min_copies")]),
        (
            f"max_copies: 1, schedules: [{NIGHT}]",
            [("SEA135", "scaling.schedules[0].max_copies")],
        ),
        (
            'max_copies: 2, schedules: [{name: a, schedule: "cron(0 20 * * * *)", min_copies: 1}]',
            [("SEA123", "scaling.schedules[0].schedule")],
        ),
        (
            'max_copies: 2, schedules: [{name: a, schedule: "at(2027-02-30T00:00:00)", min_copies: 1}]',
            [("SEA123", "scaling.schedules[0].schedule")],
        ),
        (
            'max_copies: 2, schedules: [{name: a, schedule: "at(tomorrow)", min_copies: 1}]',
            [("SEA123", "scaling.schedules[0].schedule")],
        ),
        (
            'max_copies: 2, schedules: [{name: a, schedule: "rate(1 day)", timezone: Europe/Berln, min_copies: 1}]',
            [("SEA135", "scaling.schedules[0].timezone")],
        ),
        (
            'max_copies: 2, schedules: [{name: a, schedule: "rate(1 day)"}]',
            [("SEA135", "scaling.schedules[0]")],
        ),
        (
            f"max_copies: 2, schedules: [{NIGHT}, {NIGHT}]",
            [("SEA135", "scaling.schedules[1].name")],
        ),
        (
            'min_copies: 2, max_copies: 3, schedules: [{name: a, schedule: "rate(1 day)", max_copies: 1}]',
            [("SEA135", "scaling.schedules[0]")],
        ),
        ("instance_scale_in: {cooldown_minutes: 4}", [("SEA107", "scaling.instance_scale_in.cooldown_minutes")]),
    ],
)
def test_what_is_refused(tmp_path: Path, scaling: str, expected: list[tuple[str, str]]) -> None:
    assert problems(tmp_path, f"scaling: {{{scaling}}}\n") == expected


@pytest.mark.parametrize(
    ("scaling", "fewest", "is_fixed"),
    [
        ({}, 1, True),
        ({"min_copies": 2, "max_copies": 2}, 2, True),
        ({"min_copies": 0}, 0, False),
        ({"max_copies": 2}, 1, False),
        ({"schedules": [{"name": "night", "schedule": "rate(1 day)", "min_copies": 0}]}, 0, False),
    ],
)
def test_the_fewest_copies_at_any_time(scaling: dict[str, object], fewest: int, is_fixed: bool) -> None:  # noqa: FBT001
    spec = ScalingSpec.model_validate(scaling)
    assert (spec.fewest_copies, spec.goes_to_zero, spec.is_fixed) == (fewest, fewest == 0, is_fixed)


def digest_with(**scaling: object) -> str:
    endpoint = EndpointSpec.model_validate(
        {
            "name": "chat",
            "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
            "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
            "scaling": scaling,
        }
    )
    return fingerprint(endpoint, EnvironmentSpec.model_validate({"name": "dev", "region": "us-east-1"}))


@pytest.mark.parametrize(
    "scaling",
    [
        {"schedules": ({"name": "night", "schedule": "rate(1 day)", "min_copies": 0},)},
        {"scale_in_protection": True},
        {"instance_scale_in": {"max_step": 2}},
    ],
)
def test_what_is_only_deployed_makes_no_lock_stale(scaling: dict[str, object]) -> None:
    assert digest_with(**scaling) == digest_with()


def test_the_fewest_copies_are_planned_for() -> None:
    assert digest_with(min_copies=0) != digest_with()
