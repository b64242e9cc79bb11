"""The chance that a plan meets the SLO, and the dearer deployment that more likely does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.documents.prediction import OTHER_LENGTHS, TTFT, Band
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.band import carried_chance, carried_share, chance_within
from seatrial.planner.search.evaluate import SLOWER_IN_DOUBT, slower_in_doubt
from tests.planner.test_probe import CHEAP, DEAR, predicted_ms

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from tests.planner.conftest import Ask


def plan_at(ask: Ask, bound_ms: float, **more: object) -> Plan:
    """Plan the cheap deployment or the dear one, whose TPOT p95 has a bound."""
    return make_plan(
        ask(**{"serving": {"instance_types": [CHEAP, DEAR]}, "slo": {"tpot_ms": {"p95": bound_ms}}, **more})
    )


def test_a_prediction_on_its_bound_is_as_likely_met_as_missed() -> None:
    assert chance_within(1.0, 0.2) == pytest.approx(0.5)


def test_a_band_holds_four_of_five() -> None:
    assert chance_within(1.2, 0.2) == pytest.approx(0.1)
    assert chance_within(1 / 1.2, 0.2) == pytest.approx(0.9)


@pytest.mark.parametrize(("ratio", "chance"), [(0.99, 1.0), (1.01, 0.0)])
def test_without_a_band_it_is_met_or_not(ratio: float, chance: float) -> None:
    assert chance_within(ratio, 0.0) == chance


@given(st.floats(0.1, 10), st.floats(0.01, 2))
def test_what_is_lost_on_one_side_is_won_on_the_other(ratio: float, share: float) -> None:
    assert chance_within(ratio, share) + chance_within(1 / ratio, share) == pytest.approx(1)


@given(st.floats(0.501, 0.999), st.floats(0.01, 2), st.floats(0.1, 100))
def test_what_is_counted_by_a_chance_is_carried_with_it(wanted: float, share: float, saturation: float) -> None:
    band = Band(throughput=share, latency=0.1, measured=True, because="")

    assert carried_chance(carried_share(wanted, band) * saturation, saturation, band) == pytest.approx(wanted)
    assert carried_chance(saturation, saturation, band) == pytest.approx(0.5)
    assert carried_chance(0.98 * saturation, saturation, band.model_copy(update={"throughput": 0.16})) < 0.6


EARNED = Band(throughput=0.1, latency=0.1, measured=True, because="")


def test_the_band_of_ttft_is_wider_where_left_out_rows_gave_it() -> None:
    assert EARNED.latency_of("ttft_ms") == TTFT
    assert EARNED.latency_of("tpot_ms") == EARNED.latency_of("e2e_latency_ms") == 0.1
    assert EARNED.model_copy(update={"latency": 2}).latency_of("ttft_ms") == 2


@pytest.mark.parametrize("other", [{"measured": False}, {"points": 2}])
def test_an_assumption_and_measured_points_of_its_own_are_as_good_for_ttft(other: dict[str, object]) -> None:
    assert EARNED.model_copy(update=other).latency_of("ttft_ms") == 0.1


def test_a_cheaper_deployment_in_doubt_is_taken_to_be_slower_unless_it_was_measured_itself() -> None:
    measured = EARNED.model_copy(update={"because": f"80 % of rows {OTHER_LENGTHS}."})
    calibrated = EARNED.model_copy(update={"points": 1})

    assert [slower_in_doubt(band) for band in (EARNED, measured, calibrated)] == [SLOWER_IN_DOUBT, 0, 0]
    assert chance_within(1.0, 0.1, SLOWER_IN_DOUBT) == pytest.approx(0.421, abs=1e-3)


def test_a_plan_near_its_bound_tells_its_chance_and_the_next_safer_deployment(ask: Ask) -> None:
    plan = plan_at(ask, predicted_ms(ask) * 1.05, scaling={"max_copies": 2})
    safer = plan.safer

    assert (plan.instance_type.value, plan.chance is not None and 0.5 < plan.chance < 0.8) == (CHEAP, True)
    assert safer is not None
    assert 1 - safer.chance <= (1 - (plan.chance or 0)) / 2
    assert safer.usd_per_hour - safer.more_usd_per_hour == pytest.approx(plan.cost.usd_per_hour)
    assert safer.usd_per_hour <= 2 * (plan.cost.usd_per_hour or 0)


def test_a_plan_that_is_likely_needs_no_safer_one(ask: Ask) -> None:
    plan = plan_at(ask, predicted_ms(ask) * 3)

    assert plan.chance is not None
    assert plan.chance > 0.95
    assert plan.safer is None


def test_where_no_dearer_deployment_is_allowed_none_is_told(ask: Ask) -> None:
    bound_ms = predicted_ms(ask) * 1.05

    assert plan_at(ask, bound_ms, scaling={"max_copies": 1}, serving={"instance_types": [CHEAP]}).safer is None
    assert plan_at(ask, bound_ms, scaling={"max_copies": 2}, budget={"usd_per_hour": 1.6}).safer is None
    assert plan_at(ask, bound_ms, scaling={"max_copies": 2}, objective="latency").safer is None


def test_an_output_rate_counts_too(ask: Ask) -> None:
    reached = plan_at(ask, 10_000).pareto[0].output_tok_s
    plan = plan_at(ask, 10_000, slo={"output_tok_s": reached / 1.02})

    assert plan.chance is not None
    assert 0.5 < plan.chance < 0.7


@pytest.mark.parametrize("traffic", [{"concurrency": 4}, {"requests_per_second": 1}])
def test_a_single_token_has_no_time_between_tokens_to_miss_a_bound_with(ask: Ask, traffic: dict[str, int]) -> None:
    bounds = {"ttft_ms": {"p95": 10_000}, "tpot_ms": {"p95": 60}}
    plan = make_plan(ask(workload={"input_tokens": 256, "output_tokens": 1, **traffic}, slo=bounds))
    assert (plan.chance or 0) > 0.99


def test_without_a_bound_there_is_no_chance(ask: Ask) -> None:
    plan = make_plan(ask())

    assert (plan.chance, plan.safer) == (None, None)
    assert not {"chance", "safer"} & set(plan.model_dump(mode="json"))
