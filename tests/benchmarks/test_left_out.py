"""Left-out validation of the planner: folds, errors, bands, decisions, and what the pages say of them."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planner_accuracy import (
    accuracy,
    chances,
    decisions,
    earned_bands,
    fit_engines,
    left_out,
    results,
    scoreboard,
)
from benchmarks.planner_accuracy.decisions import Objective
from benchmarks.planner_accuracy.judged import KINDS, JudgedRow, read_judged, write_judged
from benchmarks.planner_accuracy.measured import MeasuredRow, read_rows
from benchmarks.planner_accuracy.peer_rows import ask
from benchmarks.planner_accuracy.questions import (
    ANSWERS,
    FOLDER,
    Figures,
    Question,
    derived,
    question_of,
    read_answers,
    read_questions,
)
from benchmarks.planner_accuracy.weighed_errors import Evidence, Group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seatrial_base.catalog.bands import Facet

ASKED = Question("vllm", "0.11.0", "Qwen/Qwen3-32B", "16-bit", "ml.p5.48xlarge", 2, 1_000, 101, 8)
LLAMA, QWEN, GPT = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "openai/gpt-oss-20b"
TPOT_20 = Objective("tpot_ms", 20)


def judged(ratio: float, *, model: str = LLAMA, family: str = "dense", kind: str = "model") -> JudgedRow:
    """A row whose latency was predicted at a multiple of the measured one."""
    return JudgedRow(
        question=replace(ASKED, model=model),
        accelerator="NVIDIA H100 SXM5 80GB",
        family=family,
        left_out=kind,
        measured=Figures(e2e_mean_ms=100, output_tok_s=100),
        predicted=Figures(e2e_mean_ms=100 * ratio, output_tok_s=100 / ratio),
    )


def option(degree: int, *, predicted_ms: float, measured_ms: float, in_flight: int = 8) -> JudgedRow:
    return JudgedRow(
        question=replace(ASKED, tp_degree=degree, concurrency=in_flight),
        accelerator="NVIDIA H100 SXM5 80GB",
        family="dense",
        left_out="model",
        measured=Figures(tpot_ms=measured_ms),
        predicted=Figures(tpot_ms=predicted_ms, e2e_mean_ms=predicted_ms * 100),
    )


def rows_seen(seen: Sequence[MeasuredRow]) -> Callable[[MeasuredRow, str], Figures]:
    """A stand-in for fit and prediction: it answers with what the fit saw of the row's degree and model."""
    return lambda row, tables_of: Figures(
        ttft_ms=1 + sum(one.degree == row.degree for one in seen),
        tpot_ms=1 + sum(one.model == row.model for one in seen),
        output_tok_s=1 + (tables_of == row.accelerator),
    )


def test_no_row_is_there_twice() -> None:
    rows = Counter(read_rows())

    assert [row for row, times in rows.items() if times > 1] == []


def test_a_row_is_near_its_twin() -> None:
    # EAGLE made a deployment up to 1.8 times as fast as the same one with its experts dealt out.
    twins: dict[MeasuredRow, list[float]] = {}
    for row in read_rows():
        if row.tpot_ms is not None and row.is_comparable:
            alike = replace(
                row,
                ttft_ms=None,
                tpot_ms=None,
                published_mean_ms=None,
                e2e_p50_ms=None,
                e2e_p90_ms=None,
                output_tok_s=None,
                expert_parallel_degree=1,
                engine_version="",
            )
            twins.setdefault(alike, []).append(row.tpot_ms)

    assert [row for row, tpots_ms in twins.items() if max(tpots_ms) > 1.5 * min(tpots_ms)] == []


def test_the_fit_never_sees_what_is_left_out() -> None:
    found = left_out.leave_out(read_rows()[::5], rows_seen)

    assert {row.predicted.ttft_ms for row in found if row.left_out == "degree"} == {1}
    assert {row.predicted.tpot_ms for row in found if row.left_out == "model"} == {1}
    assert max(row.predicted.tpot_ms or 0 for row in found if row.left_out == "degree") > 1


def test_every_row_is_left_out_once_for_every_reason() -> None:
    rows = read_rows()
    places = [
        (kind, index)
        for fold in left_out.folds(rows)
        for kind in fold.kinds
        for index in fold.indices
        if left_out.is_judged(rows[index], kind)
    ]

    assert sorted(places) == sorted(
        (kind, index) for kind in KINDS for index, row in enumerate(rows) if left_out.is_judged(row, kind)
    )


def test_rows_of_two_reasons_are_fitted_once() -> None:
    kinds = [fold.kinds for fold in left_out.folds(read_rows())]

    assert all({"accelerator", "tables"} <= set(one) for one in kinds if "tables" in one)


def test_an_accelerator_is_left_out_with_its_tables() -> None:
    found = left_out.leave_out(read_rows()[::5], rows_seen)

    assert {row.predicted.output_tok_s for row in found} == {1}  # never by its own


def test_a_fit_starts_where_no_row_was_seen() -> None:
    fitted = fit_engines.fit(())

    assert {line for line, _ in fitted} == {"vllm-v1", "vllm-0.5", "vllm-0.6", "sglang", "trtllm"}
    for name, prior in fit_engines.PRIOR.items():
        assert {getattr(constants, name) for constants in fitted.values()} == {prior}
    assert {constants.kernel_factors for constants in fitted.values()} == {()}
    assert {fit_engines.PRIOR[name] for name in fit_engines.FACTORS} == {1.0}


def test_judged_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = (judged(1.25), judged(0.5, model="b"), replace(judged(1), predicted=Figures()))
    path = tmp_path / "left_out.csv"
    write_judged(rows, path)

    assert read_judged(path) == rows


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^left_out.csv: no rows to write$"):
        write_judged((), tmp_path / "left_out.csv")


@pytest.mark.parametrize(
    ("precision", "model", "expected"),
    [
        ("bf16", "Qwen/Qwen3-32B", "16-bit"),
        ("fp16", "Mistral 7B", "16-bit"),
        ("fp8", "Qwen/Qwen3-32B", "fp8"),
        ("fp4", "meta-llama/Llama-3.1-70B", "nvfp4"),
        ("fp4", "openai/gpt-oss-120b", "mxfp4"),
        ("mxfp4", "openai/gpt-oss-20b", "mxfp4"),
        ("16-bit", "Qwen/Qwen3-32B", "16-bit"),
    ],
)
def test_a_question_names_precisions_as_seatrial_does(precision: str, model: str, expected: str) -> None:
    cells = {
        "engine": "vLLM",
        "engine_version": "",
        "model": model,
        "precision": precision,
        "instance_type": "L40S",
        "tp_degree": "4",
        "input_tokens": "1581.3",
        "output_tokens": "600",
        "concurrency": "inf",
    }
    found = question_of(cells)

    assert (found.engine, found.precision, found.instance_type) == ("vllm", expected, "ml.g6e.48xlarge")
    assert (found.input_tokens, found.concurrency) == (1_581, math.inf)


def test_every_judged_row_has_its_question_among_those_that_peers_are_asked() -> None:
    asked = set(read_questions())
    rows = left_out.leave_out(read_rows()[::50], rows_seen)

    assert {row.question for row in rows} <= asked


@pytest.mark.parametrize("path", sorted(ANSWERS.glob("*.csv")), ids=lambda path: path.stem)
def test_a_peer_answers_questions_that_were_asked(path: Path) -> None:
    found = read_answers(path)

    assert set(found) <= set(read_questions())
    assert any(figures.e2e_mean_ms for figures in found.values())


def test_throughput_follows_from_latency_by_littles_law() -> None:
    found = derived(ASKED, Figures(ttft_ms=500, tpot_ms=15))

    assert found.e2e_mean_ms == 2_000  # 500 + 15 x 100
    assert found.output_tok_s == 404  # 8 x 101 / 2 s


def test_what_was_published_is_kept() -> None:
    assert derived(ASKED, Figures(ttft_ms=500, tpot_ms=15, output_tok_s=400)).output_tok_s == 400
    assert derived(replace(ASKED, concurrency=math.inf), Figures(ttft_ms=500, tpot_ms=15)).output_tok_s is None


def test_what_does_not_fit_a_peers_memory_queues() -> None:
    found, note = ask(lambda _, batch: Figures(ttft_ms=500, tpot_ms=15) if batch <= 4 else None, ASKED)

    assert (found.e2e_mean_ms, found.output_tok_s) == (4_000, 202)
    assert note == "a batch of 4 fits, by this tool's account of memory; the rest queues"


def test_a_peer_that_cannot_say_tells_why() -> None:
    def refuse(question: Question, _: int) -> Figures | None:
        raise LookupError(f"no {question.model}")

    assert ask(refuse, ASKED) == (Figures(), "no Qwen/Qwen3-32B")
    assert ask(refuse, replace(ASKED, concurrency=math.inf))[0] == Figures()


def group(*errors: float, parts: tuple[str, ...] = ("dense", "vllm"), left_out: str = "a") -> Group:
    return Group(parts, left_out, tuple(sorted(errors)))


def evidence(*groups: Group, aim: float = 0.8) -> Evidence:
    """Errors of rows that count half as much for each part that differs."""
    return Evidence(groups, per_difference=0.5, aim=aim)


def test_a_band_holds_four_of_five_rows() -> None:
    steps = [step / 100 for step in range(1, 21)]
    told = evidence(group(*steps), group(*steps, left_out="b"))

    assert told.share(("dense", "vllm")) == pytest.approx(0.16)


def test_a_row_counts_the_less_the_more_of_its_parts_differ() -> None:
    near, far = group(*[0.1] * 10), group(*[0.5] * 10, parts=("MoE", "trtllm"), left_out="b")
    told = evidence(near, far)

    assert told.quantile(("dense", "vllm"), 0.7) == 0.1  # 10 of the 12.5 that count are near
    assert told.quantile(("dense",), 0.7) == 0.5  # 10 of 15
    assert told.quantile((), 0.7) == 0.5


def test_rows_of_what_was_left_out_do_not_tell_of_it() -> None:
    told = evidence(group(*[0.1] * 10), group(*[0.3] * 10, left_out="b"), group(*[0.1] * 10, left_out="c"))

    assert [told.share(("dense", "vllm"), left_out) for left_out in ("b", None)] == [0.1, 0.3]
    with pytest.raises(ValueError, match="no row tells of this cell"):
        evidence(group(0.1)).share(("dense", "vllm"), "a")


def test_the_quantile_rises_until_enough_rows_are_within_the_errors_of_others() -> None:
    like, unlike = (
        evidence(group(*steps), group(*[each * factor for each in steps], left_out="b"))
        for steps in ([step / 100 for step in range(1, 21)],)
        for factor in (1, 3)
    )

    assert like.level() == pytest.approx(0.8, abs=0.06)
    assert unlike.level() == 1  # most errors of b are larger than any of a


@given(st.lists(st.floats(0.01, 5), min_size=10, max_size=60))
def test_a_cell_like_all_others_has_their_band(found: list[float]) -> None:
    alone = evidence(group(*found), group(*found, left_out="b"))
    among = evidence(*alone.groups, *(Group(("MoE", "vllm"), one.left_out, one.errors) for one in alone.groups))

    assert among.share(("dense", "vllm")) == alone.share(("dense", "vllm"))


@given(st.lists(st.floats(0.1, 10), min_size=10, max_size=40))
def test_a_band_is_the_same_for_half_and_for_twice(ratios: list[float]) -> None:
    rows, inverse = ([judged(each) for each in found] for found in (ratios, [1 / ratio for ratio in ratios]))
    shares = [earned_bands.evidence(own, "model", "latency").share(()) for own in (rows, inverse)]

    assert shares[0] == pytest.approx(shares[1])


def test_a_row_is_off_by_its_mean_latency_not_by_percentiles_of_other_lengths() -> None:
    latencies = replace(judged(1), measured=Figures(e2e_mean_ms=100, e2e_p50_ms=60, e2e_p90_ms=200))
    row = replace(latencies, predicted=Figures(e2e_mean_ms=110, e2e_p50_ms=110, e2e_p90_ms=110))

    assert earned_bands.error_of(row, "latency") == pytest.approx(0.1)


def test_releases_of_one_shape_do_not_tell_of_each_other() -> None:
    older = "meta-llama/Meta-Llama-3-8B-Instruct"
    rows = [judged(1.1, model=model) for model in (LLAMA, older)] * 10

    assert earned_bands.nested(rows, "latency") == []


def test_no_band_is_narrower_than_repeated_runs_differ() -> None:
    rows = [judged(1.01, model=LLAMA), judged(1.02, model=QWEN)] * 10

    assert {share for _, share in earned_bands.nested(rows, "latency")} == {earned_bands.NARROWEST}
    assert {cell.latency for cell in earned_bands.cells(rows)} == {earned_bands.NARROWEST}


def test_too_few_rows_earn_no_band() -> None:
    rows = [judged(1.1, model=LLAMA)] * 5 + [judged(1.1, model=QWEN)] * 4

    assert not earned_bands.cells(rows)
    assert earned_bands.cells([*rows, judged(1.1, model=QWEN)])


def test_one_model_earns_no_cell() -> None:
    one, other = judged(1.1, model=LLAMA), judged(1.1, model=QWEN)

    assert not earned_bands.cells([one] * 20)
    assert earned_bands.cells([one, other] * 10)


def test_a_model_of_its_own_has_a_cell_only_where_the_rest_of_it_was_seen() -> None:
    rows = [judged(1.1, model=model, kind=kind) for kind in KINDS for model in (LLAMA, QWEN)] * 10

    assert {cell.left_out for cell in earned_bands.cells(rows) if cell.shape} == {"degree", "lengths"}


def test_each_part_that_rows_have_makes_a_cell_and_the_finest_comes_first() -> None:
    found = earned_bands.cells([judged(1.1, model=LLAMA), judged(1.1, model=QWEN)] * 10)

    assert [(cell.family, cell.engine, cell.bits, cell.degree) for cell in found] == [
        ("dense", "vllm", 16, 2),
        ("dense", "vllm", 16, None),
        ("dense", "vllm", None, None),
        ("dense", "vllm", None, None),
        ("dense", None, None, None),
        (None, None, None, None),
    ]
    assert {(cell.rows, cell.models, cell.throughput) for cell in found} == {(20, 2, 0.1)}


def test_rows_that_no_endpoint_would_give_earn_no_band() -> None:
    rows = [judged(1.1, model=LLAMA), judged(1.1, model=QWEN)] * 10

    assert not earned_bands.cells([replace(row, comparable=False) for row in rows])


def test_an_accelerator_that_is_left_out_has_no_cell_of_its_own() -> None:
    assert "accelerator" not in earned_bands.levels_of("accelerator")
    assert "bits" not in earned_bands.levels_of("precision")
    assert "shape" not in earned_bands.levels_of("model")
    assert "degree" not in earned_bands.levels_of("degree")
    assert earned_bands.levels_of("lengths") == earned_bands.LEVELS


def test_coverage_is_judged_by_the_errors_of_other_models() -> None:
    rows = [judged(1.1)] * 20 + [judged(1.3, model=QWEN)] * 20 + [judged(1.1, model=GPT)] * 20
    told = earned_bands.nested(rows, "latency")
    inside = {row.question.model: earned_bands.is_inside(row, share, "latency") for row, share in told}

    assert inside == {LLAMA: True, QWEN: False, GPT: True}  # the others within the 30 % of Qwen
    assert earned_bands.coverage(told, "latency") == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", ["degree", "lengths"])
def test_bands_of_a_degree_and_of_lengths_come_from_others(kind: Facet) -> None:
    long = replace(ASKED, output_tokens=4_000, tp_degree=8)
    short = replace(judged(1.1, kind=kind), question=ASKED)
    rows = [short] * 20 + [replace(judged(1.3, kind=kind), question=long)] * 20

    told = {share for _, share in earned_bands.nested(rows, "latency", kind)}

    assert sorted(told) == pytest.approx([0.1, 0.3])


def test_a_chance_that_is_stated_is_held_against_the_measurement() -> None:
    told = [chances.stated(judged(1), Objective("e2e_mean_ms", target), 0.2) for target in (100 / 1.2, 100, 120)]

    assert [one and round(one[0], 6) for one in told] == [0.1, 0.5, 0.9]
    assert [one and one[1] for one in told] == [False, True, True]
    assert chances.stated(judged(1), TPOT_20, 0.2) is None


def test_the_table_of_chances_counts_what_came_true() -> None:
    rows = [judged(1, model=model, kind=kind) for model in (LLAMA, QWEN) for kind in KINDS] * 10
    written = chances.table(rows)

    assert written.splitlines()[0].startswith("| stated chance | 1 to 10 % |")
    assert "| picks, model left out | – |" in written


def test_the_cheapest_that_does_has_no_regret() -> None:
    options = [option(1, predicted_ms=15, measured_ms=18), option(2, predicted_ms=9, measured_ms=11)]

    assert decisions.decide(options, 8, TPOT_20) == decisions.Decision(regret=0, picked=True, missed=False)


def test_a_pessimist_pays_for_what_he_does_not_need() -> None:
    options = [option(1, predicted_ms=25, measured_ms=18), option(2, predicted_ms=12, measured_ms=11)]

    assert decisions.decide(options, 8, TPOT_20) == decisions.Decision(regret=1, picked=True, missed=False)


def test_an_optimist_misses() -> None:
    options = [option(1, predicted_ms=15, measured_ms=25), option(2, predicted_ms=12, measured_ms=11)]

    assert decisions.decide(options, 8, TPOT_20) == decisions.Decision(regret=None, picked=True, missed=True)


def test_no_pick_where_something_would_do_is_told() -> None:
    options = [option(1, predicted_ms=25, measured_ms=18)]

    assert decisions.decide(options, 8, TPOT_20) == decisions.Decision(regret=None, picked=False, missed=False)
    assert decisions.decide([option(1, predicted_ms=25, measured_ms=28)], 8, TPOT_20) is None


def test_more_requests_in_flight_need_more_copies() -> None:
    one = decisions.accelerator_usd_per_hour("ml.p5.48xlarge")

    assert decisions.cost(ASKED, 8) == 2 * one
    assert decisions.cost(ASKED, 9) == 4 * one
    assert one == pytest.approx(63.296 / 8)


def test_a_type_that_nobody_prices_is_refused() -> None:
    with pytest.raises(LookupError):
        decisions.accelerator_usd_per_hour("ml.g7.12xlarge")


def test_the_readme_tells_what_was_left_out() -> None:
    text = accuracy.PAGE.read_text(encoding="utf-8")

    assert accuracy.current(text, read_judged()) == text, accuracy.COMMAND


def test_the_scoreboard_is_that_of_the_results() -> None:
    assert scoreboard.PAGE.read_text(encoding="utf-8") == scoreboard.page(), "make scoreboard"


def test_a_table_that_there_is_not_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.md").write_text("{{date}} {{figures of tomorrow}}", encoding="utf-8")
    monkeypatch.setattr(scoreboard, "TEXT", tmp_path / "text.md")

    with pytest.raises(KeyError, match="figures of tomorrow"):
        scoreboard.page()


def test_the_results_are_those_of_the_constants_tables_and_rows_of_today() -> None:
    _, origin = results.read_origin()

    assert origin == results.origin_of_today(), "benchmarks/planner_accuracy/validate.sh makes them anew"


def test_an_origin_is_read_as_it_was_written(tmp_path: Path) -> None:
    results.write_origin("2026-11-26", tmp_path / "results.json")

    assert results.read_origin(tmp_path / "results.json") == ("2026-11-26", results.origin_of_today())


def test_a_page_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the page lacks the mark <!-- end peers -->$"):
        accuracy.current(f"<!-- begin peers: {accuracy.COMMAND} -->", [])


def test_the_bands_of_the_catalog_are_those_of_the_left_out_rows() -> None:
    assert earned_bands.BANDS.read_text(encoding="utf-8") == earned_bands.document(read_judged()), (
        "earned_bands --write"
    )


def test_the_picture_is_of_the_left_out_rows() -> None:
    told = re.search(
        r"left_out.csv (\w+)", (FOLDER.parents[1] / "docs/images/accuracy.svg").read_text(encoding="utf-8")
    )

    assert told is not None
    assert told[1] == hashlib.sha256((FOLDER / "left_out.csv").read_bytes()).hexdigest()[:12]
