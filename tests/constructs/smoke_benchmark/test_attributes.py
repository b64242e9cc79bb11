from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.bench.result import Knee
from seatrial_cdk.smoke_benchmark.runtime.attributes import measured_attributes

if TYPE_CHECKING:
    from seatrial.bench.result import TrialResult


def knees(*, slo: int | None, kneedle: int | None) -> tuple[Knee, ...]:
    return (
        Knee(detector="slo", concurrency=slo, because="by hand"),
        Knee(detector="kneedle", concurrency=kneedle, because="by hand"),
    )


@pytest.mark.parametrize(
    ("slo", "kneedle", "detector", "knee", "output_tok_s"),
    [
        pytest.param(8, 16, "slo", "8", "250", id="the slo knee"),
        pytest.param(16, 8, "kneedle", "8", "250", id="the kneedle knee"),
        pytest.param(None, 8, None, "unknown", "410.5", id="no knee: the gate's level"),
    ],
)
def test_throughput_is_that_of_the_knee_that_scaling_uses(
    passed: TrialResult,
    slo: int | None,
    kneedle: int | None,
    detector: Literal["slo", "kneedle"] | None,
    knee: str,
    output_tok_s: str,
) -> None:
    result = replace(passed, target_detector=detector, knees=knees(slo=slo, kneedle=kneedle))
    attributes = measured_attributes(result, "s3://results/x.json")
    assert attributes["KneeConcurrencyPerCopy"] == knee
    assert attributes["OutputTokensPerSecond"] == output_tok_s


def test_what_was_not_measured_is_unknown_and_never_zero(passed: TrialResult) -> None:
    silent = tuple(replace(level, output_tok_s=None, ttft_ms=None, tpot_ms=None) for level in passed.levels)
    result = replace(passed, levels=silent, usd_per_million_output_tokens=None)
    attributes = measured_attributes(result, "s3://results/x.json")
    measured = ("OutputTokensPerSecond", "TtftP95Ms", "TpotP95Ms", "UsdPerMillionOutputTokens")
    assert [attributes[name] for name in measured] == ["unknown"] * 4


def test_nothing_measured_at_all_still_has_a_target(passed: TrialResult) -> None:
    attributes = measured_attributes(replace(passed, levels=()), "s3://results/x.json")
    assert attributes["TargetConcurrencyPerCopy"] == "12.8"
    assert attributes["TtftP95Ms"] == "unknown"


def test_the_answer_fits_into_cloudformations_4096_bytes(passed: TrialResult) -> None:
    attributes = measured_attributes(passed, f"s3://{'b' * 63}/trials/{'e' * 57}/{'d' * 16}/{'r' * 36}.json")
    assert len(str(attributes).encode()) < 4096
