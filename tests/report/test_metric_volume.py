"""What more metrics are, in numbers: the plan's screen tells them beside the price of the instances."""

from __future__ import annotations

import pytest

from seatrial.report.terminal.first_screen import metric_lines
from seatrial.specs.hosting import MetricsSpec
from tests.sample_plan import decided, sample_plan

FOUR_GPUS = {"instance_type": decided("ml.g6e.12xlarge"), "instance_count": decided(2), "copy_count": decided(3)}


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        (
            {"detailed": True, "enhanced": True, "frequency_s": 10},
            [
                "enhanced metrics: 58, $17.40/month if billed as custom ones",
                "detailed metrics every 10 s: 10.5 GB/month for each 100 series, billed by GB",
            ],
        ),
        ({"frequency_s": 300}, ["detailed metrics every 300 s: 0.4 GB/month for each 100 series, billed by GB"]),
        ({"enhanced": True, "detailed": False}, ["enhanced metrics: 58, $17.40/month if billed as custom ones"]),
        ({"detailed": False}, []),
        ({}, ["detailed metrics every 60 s: 1.8 GB/month for each 100 series, billed by GB"]),
    ],
)
def test_metrics_of_two_instances_with_four_gpus_and_three_copies(asked: dict[str, object], lines: list[str]) -> None:
    """2 x (3 + 2 x 4) + 3 x 12 = 58; 100 x 400 bytes x 2,628,000 s / 10 s = 10.5 GB."""
    plan = sample_plan().model_copy(update=FOUR_GPUS)
    assert [*metric_lines(MetricsSpec.model_validate(asked), plan)] == lines
