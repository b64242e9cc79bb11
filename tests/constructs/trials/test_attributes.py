from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.trials.runtime.attributes import measured_attributes, trial_usd, unmeasured_attributes
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.result import Comparison, Knee
from seatrial_load.knee import scaling_target

if TYPE_CHECKING:
    from seatrial_load.documents.result import TrialResult


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
        pytest.param(None, 8, None, "16", "410.5", id="no knee: the gate's level"),
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


def test_at_a_knee_between_two_levels_nothing_is_unknown(passed: TrialResult) -> None:
    """It was: throughput, TTFT, TPOT and E2E were `unknown` on a pass with levels 3 and 5 and a knee of 4."""
    between = (
        Knee(detector="slo", concurrency=11.3137085, because="by hand"),  # halfway from 8 to 16, as factors go
        Knee(detector="saturation", concurrency=16.0, because="by hand"),
    )
    priced = replace(passed, knees=between, comparison=Comparison(status="same", because="as before"))
    attributes = measured_attributes(priced, "s3://results/x.json")
    assert "unknown" not in attributes.values()
    assert attributes["KneeConcurrencyPerCopy"] == "11.3137"
    assert attributes["OutputTokensPerSecond"] == "320.351"  # the square root of 250 x 410.5


def test_an_open_loop_without_a_knee_tells_its_highest_rate(passed: TrialResult) -> None:
    """Three rates were all below one request in flight: the numbers were those of the lowest one."""
    alike = passed.levels[0]
    rates = tuple(
        replace(alike, concurrency=1, offered_requests_per_s=rate, output_tok_s=100 * rate) for rate in (1.0, 1.5, 2.0)
    )
    opened = replace(passed, levels=rates, target_detector=None)
    attributes = measured_attributes(opened, "s3://results/x.json")
    assert attributes["OutputTokensPerSecond"] == "200"
    assert attributes["KneeConcurrencyPerCopy"] == "unknown"


def test_what_was_not_measured_is_unknown_and_never_zero(passed: TrialResult) -> None:
    silent = tuple(
        replace(level, output_tok_s=None, ttft_ms=None, tpot_ms=None, e2e_latency_ms=None) for level in passed.levels
    )
    free = replace(passed.request, usd_per_hour_per_copy=None)
    result = replace(
        passed,
        request=free,
        levels=silent,
        usd_per_million_output_tokens=None,
        blended_usd_per_million_tokens=None,
    )
    attributes = measured_attributes(result, "s3://results/x.json")
    assert {name for name, value in attributes.items() if value == "unknown"} == {
        *("OutputTokensPerSecond", "TtftP50Ms", "TtftP95Ms", "TpotP95Ms", "E2eP95Ms"),
        *("UsdPerMillionOutputTokens", "BlendedUsdPerMillionTokens", "TrialUsd", "SaturationKneeConcurrencyPerCopy"),
    }


def test_nothing_measured_at_all_still_has_a_target(passed: TrialResult) -> None:
    attributes = measured_attributes(replace(passed, levels=()), "s3://results/x.json")
    assert attributes["TargetConcurrencyPerCopy"] == "12.8"
    assert attributes["TtftP95Ms"] == "unknown"


@pytest.mark.parametrize("knee", [3, 6, 7, 12, 14])
def test_the_attribute_holds_the_target_of_the_document(passed: TrialResult, knee: int) -> None:
    low = replace(passed.levels[0], concurrency=knee)
    missed = replace(passed.levels[-1], concurrency=2 * knee, meets_slo=False)
    found = Knee(detector="slo", concurrency=knee, because="by hand")
    target = scaling_target(passed.request, [low, missed], [found]).concurrency_per_copy
    attributes = measured_attributes(replace(passed, target_concurrency_per_copy=target), "s3://results/x.json")
    assert float(attributes["TargetConcurrencyPerCopy"]) == target


def test_both_knees_are_told_and_which_one_leads(passed: TrialResult) -> None:
    """Only the leading one was an attribute: nobody saw in the stack how far the other was."""
    found = (
        Knee(detector="slo", concurrency=64.0, because="by hand", interval=Interval(low=64.0, high=None)),
        Knee(detector="saturation", concurrency=19.5, because="by hand"),
    )
    told = measured_attributes(replace(passed, knees=found, target_detector="saturation"), "s3://x.json")
    assert told["SloKneeConcurrencyPerCopy"] == "at least 64"
    assert told["SaturationKneeConcurrencyPerCopy"] == "19.5"
    assert told["TargetKnee"] == "saturation"
    assert told["KneeConcurrencyPerCopy"] == "19.5"


def test_a_target_of_the_plan_comes_from_no_knee(passed: TrialResult) -> None:
    told = measured_attributes(replace(passed, knees=(), target_detector=None), "s3://x.json")
    assert told["TargetKnee"] == "none: the plan's target"
    assert told["SloKneeConcurrencyPerCopy"] == told["SaturationKneeConcurrencyPerCopy"] == "unknown"


def test_measured_or_not_the_attributes_have_the_same_names(passed: TrialResult) -> None:
    """CloudFormation fails a stack whose `Fn::GetAtt` names an attribute that an answer lacks."""
    assert measured_attributes(passed, "s3://x.json").keys() == unmeasured_attributes(9.6).keys()


def test_a_trial_costs_what_its_copies_cost_while_it_runs(passed: TrialResult) -> None:
    result = replace(passed, duration_s=1800.0, request=replace(passed.request, copy_count=3))
    assert trial_usd(result) == pytest.approx(3 * 1.515 * 0.5)
    assert measured_attributes(result, "s3://x.json")["TrialUsd"] == "2.2725"


def test_a_local_engine_has_no_cost(passed: TrialResult) -> None:
    told = measured_attributes(
        replace(passed, engine_note="local-cpu-random-llama (not the model named)"), "s3://x.json"
    )
    costs = {told[name] for name in ("UsdPerMillionOutputTokens", "BlendedUsdPerMillionTokens", "TrialUsd")}
    assert costs == {"not measured: local engine"}


def test_the_first_release_has_nothing_to_be_compared_with(passed: TrialResult) -> None:
    assert measured_attributes(replace(passed, comparison=None), "s3://x.json")["Comparison"] == "none: first release"


def test_the_comparison_with_the_last_release_is_told(passed: TrialResult) -> None:
    compared = replace(passed, comparison=Comparison(status="worse", because="slower"))
    assert measured_attributes(compared, "s3://x.json")["Comparison"] == "worse"


def test_the_answer_fits_into_cloudformations_4096_bytes(passed: TrialResult) -> None:
    attributes = measured_attributes(passed, f"s3://{'b' * 63}/trials/{'e' * 57}/{'d' * 16}/{'r' * 36}.json")
    assert len(json.dumps(attributes).encode()) < 2048
