from __future__ import annotations

from dataclasses import replace

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.slo import overload_section, quality_section
from seatrial_load.documents.request import QualityFloor, QualityObjective
from seatrial_load.documents.result import OverloadResult, TrialResult
from seatrial_load.quality.scores import judged_quality, unmeasured_quality
from tests.constructs.conftest import passing_result
from tests.quality.conftest import answer, questions


def test_scores_stand_beside_their_bounds() -> None:
    asked = questions(40)
    objectives = (QualityObjective(metric="exact_match", bound=0.9, sense="at_least"),)
    floor = QualityFloor(evaluation_set=asked.digest, prompts=asked.prompts, objectives=objectives, most_tokens=8)
    answers = [answer(f"{n}", f"answer {n}" if n < 20 else "x") for n in range(40)]
    section = quality_section(replace(passing_result(), quality=judged_quality(floor, answers, 0.9)))
    (table,) = section.tables
    assert [cell.text for cell in table.rows[0]][::2] == ["exact match", "at least 90.0 %"]
    assert table.rows[0][1].text.startswith("50.0 % (")
    assert len(section.remarks) == 1
    unasked = quality_section(replace(passing_result(), quality=unmeasured_quality(floor, "the budget was over")))
    assert unasked.tables == ()
    assert "budget" in unasked.paragraphs[0]
    assert quality_section(passing_result()).is_empty


def test_overload_stands_with_its_numbers_in_both_reports() -> None:
    assert overload_section(passing_result()).is_empty
    seen = OverloadResult(
        status="refuted",
        because="refused only after 240 ms (p95), not within 100 ms",
        offered_requests_per_s=30.0,
        sent=300,
        admitted=180,
        refusals={"HTTP 503": 120},
        refusal_p95_ms=240.0,
    )
    result = replace(passing_result(), overload=seen)
    (table,) = overload_section(result).tables
    cells = {row[0].text: row[1].text for row in table.rows}
    assert (cells["refusal_p95_ms"], cells["refused: HTTP 503"], cells["admitted"]) == ("240", "120", "180")
    short = render_markdown(result, None)
    assert "Refuted: refused only after 240 ms (p95)" in short
    assert "refused: HTTP 503" in short
    assert TrialResult.from_json(result.to_json()).overload == seen
