"""What a calibration by the trial's levels would change: fitted on the committed plan of the chat endpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.locked_plan import read_locked_plan
from seatrial.planner.calibration import measured_copy, outlook_of, points_of_trial, with_random_arrivals
from seatrial.planner.predict.simulation import AT_RANDOM, open_level, outcome
from seatrial.planner.search.capacity import trial_protocol
from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial.report.document.prediction import outlook_sentence, outlook_table, prediction_beside, ratio_sentence
from seatrial.specs.load import load_spec
from seatrial_base.field_facts import made_of
from seatrial_load.cli.show import fact_lines
from seatrial_load.documents.distribution import Distribution, Interval
from seatrial_load.documents.result import RandomArrivals, TrialResult
from tests.report.samples import sample_level

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import LevelResult

REPOSITORY = Path(__file__).parents[2]
FASTER = 1.25


@pytest.fixture(scope="module")
def loaded() -> LoadedSpec:
    spec = REPOSITORY / "endpoints" / "llama-2-7b-chat.yaml"
    return load_spec(spec, "dev", environments=REPOSITORY / "environments")


@pytest.fixture(scope="module")
def locked(loaded: LoadedSpec) -> Plan:
    return read_locked_plan(loaded, stale=True)


@pytest.fixture(scope="module")
def faster(real: TrialResult, loaded: LoadedSpec, locked: Plan) -> TrialResult:
    """Return a trial whose levels are a quarter faster than the performance model says."""
    copy, protocol = measured_copy(loaded, locked), trial_protocol(loaded.endpoint.trial)

    def level(concurrency: int) -> LevelResult:
        found = outcome(copy, concurrency, protocol)
        value = found.ms_per_token.p90 / FASTER
        latency = Distribution(count=9, mean=value, p50=value, p90=value, p95=value, p99=value, max=value)
        tok_s = found.output_tok_s * FASTER * 2  # of two copies
        return replace(sample_level(concurrency), output_tok_s=tok_s, ms_per_token=latency)

    return replace(real, levels=tuple(map(level, (1, 4, 16))))


def test_the_points_are_those_of_one_copy_at_valid_levels_without_a_failure(rich: TrialResult) -> None:
    assert [point.concurrency for point in points_of_trial(rich)] == [1, 2, 4, 8, 16, 24, 32]  # 64 is void
    assert points_of_trial(rich)[0].output_tok_s == pytest.approx(44.9, abs=0.05)


@pytest.mark.parametrize(
    ("reach", "wanted"), [(0.05, True), (0.07, False), (None, False)], ids=["narrow", "wide", "open"]
)
def test_a_cut_level_is_a_point_where_its_interval_is_narrow(
    real: TrialResult, reach: float | None, *, wanted: bool
) -> None:
    high = None if reach is None else 100.0 * (1 + reach)
    level = replace(
        sample_level(4), output_tok_s=100.0, output_tok_s_interval=Interval(low=99.0, high=high), cut="the budget ended"
    )
    points = points_of_trial(replace(real, levels=(level,)))
    assert [(point.concurrency, point.ms_per_token_p90) for point in points] == ([(4, None)] if wanted else [])


def test_a_calibration_brings_the_predictions_to_the_measurement(
    faster: TrialResult, locked: Plan, loaded: LoadedSpec
) -> None:
    outlook = outlook_of(faster, locked, loaded)
    assert outlook.entry
    assert outlook.entry.fixed < 1
    assert [one.throughput_error for one in outlook.before] == pytest.approx([0.2] * 3, abs=1e-6)  # 1 - 1 / 1.25
    assert max(one.throughput_error for one in outlook.after) < 0.05
    assert outlook_sentence(outlook).endswith("from 20.0 % to <0.1 %.")
    measured, before, after = (float(cell.exact) for cell in outlook_table(outlook).rows[0][1:4])
    assert measured == pytest.approx(FASTER * before)
    assert abs(after - measured) < abs(before - measured)


def test_first_tokens_at_random_arrivals_are_predicted_by_the_plans_simulation(
    faster: TrialResult, locked: Plan, loaded: LoadedSpec
) -> None:
    """At the gate's throughput, half of it a copy; of none that no copy answers; a measured one stays."""
    gate = replace(faster.levels[-1], requests_per_s=1.0)
    seen = with_random_arrivals(replace(faster, levels=(*faster.levels[:-1], gate)), locked, loaded)
    expected = open_level(measured_copy(loaded, locked), AT_RANDOM, 0.5, requests=1_000, round_trip_s=0.02)
    predicted = made_of(RandomArrivals, expected, rate_per_s=1.0, apart=0.0, source="predicted")
    assert seen.random_arrivals == predicted
    assert TrialResult.from_json(seen.to_json()) == seen
    told = "TTFT at random arrivals of the gate's throughput, predicted: mean "
    for text in (render_html(seen, locked), render_markdown(seen, locked), "\n".join(fact_lines(seen))):
        assert told in text.replace("&#39;", "'")
    measured = replace(predicted, source="measured", apart=0.05)
    assert with_random_arrivals(replace(seen, random_arrivals=measured), locked, loaded).random_arrivals == measured
    full = replace(seen, levels=(replace(gate, requests_per_s=1_000.0),), random_arrivals=None)
    assert with_random_arrivals(full, locked, loaded).random_arrivals is None


def test_levels_that_contradict_each_other_give_none(faster: TrialResult, locked: Plan, loaded: LoadedSpec) -> None:
    outlook = outlook_of(replace(faster, levels=faster.levels[:1]), locked, loaded)
    assert outlook.entry is None
    assert outlook_sentence(outlook) == ("No calibration from these levels: 1 concurrency is not enough: 2 are needed.")


def test_the_outlook_stands_below_predicted_and_measured(faster: TrialResult, locked: Plan, loaded: LoadedSpec) -> None:
    section = prediction_beside(faster, locked, outlook_of(faster, locked, loaded))
    assert section.tables[-1].caption == "Effect of a calibration with this trial"
    assert section.paragraphs[-1].startswith("“seatrial calibrate” would scale the fixed time per step")


def test_without_the_spec_the_ratio_is_told(real: TrialResult, plan: Plan) -> None:
    assert prediction_beside(real, plan).paragraphs[-1] == (
        "Measured throughput is 0.93 × the predicted, geometric mean of 6 levels without a failure. “seatrial "
        "calibrate SPEC --environment dev --result report.json” corrects the predictions."
    )
    assert ratio_sentence(replace(real, levels=()), plan) == ""
