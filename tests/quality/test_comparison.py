from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.quality.comparison import compare_quality
from seatrial.quality.pairs import AnswerPair, blind_rows, pairs_of, sheet_csv, sheet_html
from seatrial.quality.recipe_comparison import COST_AT_GATE, OUTPUT_AT_GATE, compare_recipes
from seatrial.quality.recipe_result import keep_recipe_result, read_recipe_result, stored_result
from seatrial.report.write import FILES, write_comparison
from seatrial_base.errors import SpecError
from tests.quality.conftest import answer, measured, questions

if TYPE_CHECKING:
    from pathlib import Path


def verdicts(right_a: int, right_b: int, count: int = 40) -> dict[str, str]:
    a, b = measured("none", right_a, count=count), measured("awq", right_b, count=count)
    found = compare_quality(pairs_of(a.prompts, a.answers, b.answers), count)
    return {each.metric: each.verdict for each in found.differences}


@pytest.mark.parametrize(
    ("right_a", "right_b", "count", "verdict"),
    [
        (30, 10, 40, "worse"),
        (10, 30, 40, "better"),
        (30, 29, 40, "no real difference"),
        (30, 30, 40, "no real difference"),
        (19, 0, 19, "too few prompts"),
        (20, 0, 20, "worse"),
    ],
)
def test_a_difference_is_real_where_its_interval_leaves_zero_out(
    right_a: int, right_b: int, count: int, verdict: str
) -> None:
    assert verdicts(right_a, right_b, count)["exact_match"] == verdict


def test_equal_answers_prove_no_more_than_their_number_can() -> None:
    a = measured("none", 40)
    found = compare_quality(pairs_of(a.prompts, a.answers, a.answers), 40)
    exact = next(each for each in found.differences if each.metric == "exact_match")
    assert exact.difference == 0
    assert exact.interval.high == pytest.approx(0.0876, abs=0.001)  # Wilson's bound of 0 in 40


def test_the_same_answers_give_the_same_interval() -> None:
    a, b = measured("none", 30), measured("awq", 25)
    pairs = pairs_of(a.prompts, a.answers, b.answers)
    assert compare_quality(pairs, 40) == compare_quality(pairs, 40)


def test_log_probabilities_are_compared_up_to_the_first_difference() -> None:
    prompt = questions(1).prompts[0]
    pair = AnswerPair(prompt, answer("0", "a b c", -1.0, -2.0, -3.0), answer("0", "a b d e", -1.5, -2.0, -9.0, -9.0))
    assert (pair.common_tokens, pair.log_probability_distance) == (2, 0.25)
    assert not pair.is_identical
    apart = AnswerPair(prompt, answer("0", "a"), answer("0", "b"))
    assert (apart.common_tokens, apart.log_probability_distance) == (0, None)


def test_a_prompt_that_failed_is_left_out_and_told() -> None:
    a, b = measured("none", 40), measured("awq", 40)
    failed = (replace(b.answers[0], failure="timeout: late"), *b.answers[1:])
    found = compare_quality(pairs_of(a.prompts, a.answers, failed), 40)
    assert found.paired == 39
    assert "1 of 40 prompts" in found.notes[0]


def test_many_prompts_are_drawn_in_blocks() -> None:
    assert verdicts(750, 600, 1000)["exact_match"] == "worse"


def test_speed_cost_and_quality_stand_in_one_comparison() -> None:
    compared = compare_recipes(measured("none", 30), measured("awq", 10, tok_s=200.0))
    assert compared.figure(OUTPUT_AT_GATE).ratio == 2.0
    cost = compared.figure(COST_AT_GATE)
    assert cost.a == pytest.approx(4.20833, rel=1e-5)  # 1.515 USD per hour, 360,000 tokens per hour
    assert cost.b == pytest.approx(2.10417, rel=1e-5)
    assert compared.figure("blended cost at the gate").b == pytest.approx(2.10417 / 4, rel=1e-5)
    assert not compared.is_accepted
    assert compare_recipes(measured("none", 30), measured("awq", 30)).is_accepted


def test_a_local_engine_has_no_price() -> None:
    a, b = measured("none", 30), measured("awq", 30)
    local = [replace(each, trial=replace(each.trial, engine_note="local-cpu")) for each in (a, b)]
    compared = compare_recipes(*local)
    assert compared.figure(COST_AT_GATE).a is None
    assert "local-cpu" in compared.verdict
    with pytest.raises(SpecError, match="SEA531"):
        compare_recipes(local[0], b)


def test_other_loads_and_sets_are_not_comparable() -> None:
    a, b = measured("none", 30), measured("awq", 30)
    request = replace(b.trial.request, gate_concurrency=3)
    with pytest.raises(SpecError, match="they differ in concurrency of the gate, evaluation set") as refused:
        compare_recipes(a, replace(b, evaluation_set="x", trial=replace(b.trial, request=request)))
    assert refused.value.problems[0].rule == "SEA531"


def test_a_result_is_kept_and_read_again(tmp_path: Path) -> None:
    result = measured("awq=org/model-awq+kv_fp8", 30)
    path = keep_recipe_result(tmp_path / "results", result)
    assert read_recipe_result(path) == result
    assert stored_result(path.parent, result.recipe, result.digest) == result
    assert stored_result(path.parent, result.recipe, "0" * 64) is None
    path.write_text('{"recipe": 1}')
    with pytest.raises(SpecError, match="SEA529"):
        stored_result(path.parent, result.recipe, result.digest)


def test_a_sheet_hides_who_wrote_what_and_shows_markup_as_text(tmp_path: Path) -> None:
    a, b = measured("none", 40), measured("awq", 0)
    b = replace(b, answers=(replace(b.answers[0], text="=1+<script>"), *b.answers[1:]))
    rows = blind_rows(pairs_of(a.prompts, a.answers, b.answers), "seed")
    assert {row.first_is_a for row in rows} == {True, False}
    cells = [cell for row in csv.reader(io.StringIO(sheet_csv(rows))) for cell in row]
    assert "'=1+<script>" in cells
    assert "<script>" not in sheet_html(rows, "a & b")
    written = write_comparison(compare_recipes(a, b), tmp_path / "out")
    assert [path.name for path in written] == list(FILES)
    key = json.loads((tmp_path / "out" / "key.json").read_text())
    assert {entry["answer 1"] for entry in key} == {"none", "awq"}
    assert "awq" not in (tmp_path / "out" / "sheet.csv").read_text()
