from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.report.document.page import render_html

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import LevelResult, TrialResult

    class Trial(Protocol):
        def __call__(
            self, levels: Sequence[LevelResult] | None = ..., *, engine_note: str = ..., gate_concurrency: int = ...
        ) -> TrialResult: ...


def test_without_a_plan_neither_prediction_nor_planned_cost_is_shown(real: TrialResult) -> None:
    page = render_html(real, None)
    assert "No plan was given" in page
    assert 'id="prediction"' not in page
    assert "Cost, planned and measured" not in page
    assert "Measured cost by level" in page


def test_the_plan_of_another_trial_is_left_out(real: TrialResult, plan: Plan) -> None:
    other = plan.model_copy(update={"max_copies": 7})
    page = render_html(real, other)
    assert f"The given plan ({other.digest}) is not the plan of this trial ({plan.digest})" in page
    assert 'id="prediction"' not in page


def test_an_empty_trial_says_what_happened(empty: TrialResult, plan: Plan) -> None:
    page = render_html(empty, plan)
    assert "<strong>? Inconclusive:</strong>" in page
    assert page.count("the budget of 600 s was used up") == 2  # instead of charts, and instead of levels


def test_control_and_direction_characters_are_replaced(trial: Trial, real: TrialResult, plan: Plan) -> None:
    page = render_html(replace(real, stopped=replace(real.stopped, because="a\x1b[31m\u202eb\x00")), plan)
    assert "a�[31m�b�" in page


def test_a_trial_without_a_value_to_draw_says_so(hopeless: TrialResult, plan: Plan) -> None:
    page = render_html(hopeless, plan)
    assert "No values to draw." in page
    assert '"anchor":"throughput"' not in page


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda level: replace(level, ttft_ms=None), "no answer was streamed"),
        (lambda level: replace(level, output_tok_s=None), "the endpoint did not report output tokens"),
        (lambda level: replace(level, tpot_ms=None), "no request streamed two tokens or more"),
    ],
)
def test_every_missing_metric_has_its_own_reason(
    real: TrialResult, plan: Plan, change: Callable[[LevelResult], LevelResult], reason: str
) -> None:
    result = replace(real, levels=tuple(map(change, real.levels)))
    assert f'<abbr title="{reason}">–</abbr>' in render_html(result, plan)


def test_a_gate_that_was_not_measured_is_said(trial: Trial, plan: Plan) -> None:
    page = render_html(trial(gate_concurrency=24), plan)
    assert '<abbr title="concurrency 24 was not measured">–</abbr>' in page
    assert '"label":"gate 24"' in page


def test_a_trial_without_objectives_says_so(real: TrialResult, plan: Plan) -> None:
    result = replace(real, request=replace(real.request, objectives=()), verdict=replace(real.verdict, checks=()))
    page = render_html(result, plan)
    assert "The spec sets no objective." in page
    assert "✓ met" not in page
