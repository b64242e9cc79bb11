"""Measured points: what is read from a table, and what can't calibrate anything."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.cli.calibrate import calibrate_command
from seatrial.documents.calibration import MeasuredPoint
from seatrial.locks.lock_file import write_lock
from seatrial.planner.calibration import check_trial, chosen, measured_copy, read_points, usable
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.simulation import outcome
from seatrial.planner.search.capacity import trial_protocol
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

HEAD = "concurrency,output_tok_s,ms_per_token\n"
AGAIN = "\n  hint: measure again without other traffic, or leave the point out"


def point(concurrency: int, output_tok_s: float, ms_per_token_p90: float | None = None) -> MeasuredPoint:
    return MeasuredPoint(concurrency=concurrency, output_tok_s=output_tok_s, ms_per_token_p90=ms_per_token_p90)


def test_a_table_is_read_by_its_head_and_sorted() -> None:
    text = "note,output_tok_s,concurrency,ms_per_token\nlast,200,8,40\nfirst,30.5,1,\n"
    assert read_points(text, "points.csv") == (point(1, 30.5), point(8, 200, 40))


def test_the_column_of_latencies_may_be_left_out() -> None:
    assert read_points("concurrency,output_tok_s\n1,30\n", "points.csv") == (point(1, 30),)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_points(f"\ufeff{HEAD}1,30,33\n", "points.csv") == (point(1, 30, 33),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "points.csv: SEA407: the column concurrency and output_tok_s is missing"
            "\n  hint: the header must have concurrency, output_tok_s, ms_per_token",
        ),
        (
            "concurrency,tokens\n1,30\n",
            "points.csv: SEA407: the column output_tok_s is missing"
            "\n  hint: the header must have concurrency, output_tok_s, ms_per_token",
        ),
        (f"{HEAD}1,0,33\n", "points.csv:2: output_tok_s: SEA407: '0' is not a number above 0"),
        (f"{HEAD}1,-3,33\n", "points.csv:2: output_tok_s: SEA407: '-3' is not a number above 0"),
        (f"{HEAD}1,nan,33\n", "points.csv:2: output_tok_s: SEA407: 'nan' is not a number above 0"),
        (f"{HEAD}1,inf,33\n", "points.csv:2: output_tok_s: SEA407: 'inf' is not a number above 0"),
        (f"{HEAD}1,fast,33\n", "points.csv:2: output_tok_s: SEA407: 'fast' is not a number above 0"),
        (f"{HEAD}1,30,0\n", "points.csv:2: ms_per_token: SEA407: '0' is not a number above 0"),
        (f"{HEAD}1.5,30,33\n", "points.csv:2: concurrency: SEA407: 1.5 is not a whole number up to 100,000"),
        (f"{HEAD}100001,30,33\n", "points.csv:2: concurrency: SEA407: 100001 is not a whole number up to 100,000"),
        (f"{HEAD}1\n", "points.csv:2: output_tok_s: SEA407: '' is not a number above 0"),
        ("x" * 200_000, "points.csv: SEA407: the table can't be read: field larger than field limit (131072)"),
        (
            HEAD,
            "points.csv: SEA408: no points to calibrate with\n  hint: measure at concurrency 1 and at the batch limit",
        ),
        (
            f"{HEAD}1,30,33\n1,90,11\n",
            f"points.csv: SEA408: two throughputs at concurrency 1: 30 and 90 tok/s{AGAIN}",
        ),
        (
            f"{HEAD}1,90,11\n8,40,200\n",
            f"points.csv: SEA408: 40 tok/s at concurrency 8 is less than half of 90 tok/s at 1{AGAIN}",
        ),
    ],
)
def test_what_can_not_be_used_is_told(text: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_points(text, "points.csv")
    assert str(refused.value) == message


def test_every_wrong_cell_is_told_at_once() -> None:
    with pytest.raises(SpecError) as refused:
        read_points(f"{HEAD}0,-1,x\n2,50,30\n4,none,\n", "points.csv")
    assert [(problem.where, problem.field) for problem in refused.value.problems] == [
        ("points.csv:2", "concurrency"),
        ("points.csv:2", "output_tok_s"),
        ("points.csv:2", "ms_per_token"),
        ("points.csv:4", "output_tok_s"),
    ]


def test_every_contradiction_is_told_at_once() -> None:
    with pytest.raises(SpecError) as refused:
        usable([point(1, 100), point(2, 40), point(4, 10)], "report.json")
    assert len(refused.value.problems) == 2


def test_half_of_the_throughput_is_no_contradiction() -> None:
    assert len(usable([point(1, 90), point(8, 45)], "report.json")) == 2


@given(st.one_of(st.text(), st.text('0123456789.,-einfa "\r\n').map(lambda cells: HEAD + cells)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SpecError):
        assert read_points(text, "points.csv")


class TestChosen:
    POINTS = (point(1, 30), point(4, 110), point(16, 300))

    def test_named_concurrencies_are_the_probes(self) -> None:
        assert chosen(self.POINTS, {1, 16}, "report.json") == (self.POINTS[0], self.POINTS[2])

    def test_all_of_them_without_names(self) -> None:
        assert chosen(self.POINTS, None, "report.json") == self.POINTS

    def test_a_concurrency_that_was_not_measured_is_refused(self) -> None:
        with pytest.raises(SpecError) as refused:
            chosen(self.POINTS, {1, 8, 64}, "report.json")
        assert str(refused.value) == (
            "report.json: SEA408: concurrency 8, 64 was not measured\n  hint: measured: 1, 4, 16"
        )


def test_a_trial_of_this_endpoint_is_taken(ask: Ask) -> None:
    check_trial(("chat", "dev", 256, 256), ask(), "report.json")


def test_a_trial_of_something_else_is_refused_with_everything_in_which_it_differs(ask: Ask) -> None:
    with pytest.raises(SpecError) as refused:
        check_trial(("other", "prod", 256, 64), ask(), "report.json")
    hint = "\n  hint: use the result of a trial of the current spec"
    assert str(refused.value) == (
        f"report.json: endpoint: SEA408: the trial measured other, but the spec has chat{hint}\n"
        f"report.json: environment: SEA408: the trial measured prod, but the spec has dev{hint}\n"
        f"report.json: output_tokens: SEA408: the trial measured 64, but the spec has 256{hint}"
    )


def test_rows_of_a_gpu_calibrate_what_is_planned_as_they_were_measured(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    serving = {"instance_types": ["ml.p5.4xlarge"], "engine": "vllm", "engine_version": "0.20.2"}
    workload = {"input_tokens": 1000, "output_tokens": 200, "concurrency": 16}
    loaded = ask(model={"hub_id": "meta-llama/Llama-3.1-8B-Instruct"}, serving=serving, workload=workload)
    write_lock(plan := make_plan(loaded), loaded.path)
    copy, protocol = measured_copy(loaded, plan), trial_protocol(loaded.endpoint.trial)
    same = {"model": plan.model_name, "instance_type": "NVIDIA H100 80GB HBM3", "tp_degree": 1, "precision": "bf16"}
    same |= {"engine": "vllm", "engine_version": "0.20.2", **workload, "start": "spread", "cut": "", "failed": 0}
    speeds = {level: 0.8 * outcome(copy, level, protocol).output_tok_s for level in (1, 16)}
    rows = [{**same, "concurrency": level, "output_tok_s": speed} for level, speed in speeds.items()]
    others = [{**rows[0], "engine_version": "0.11.0", "instance_type": "NVIDIA L4"}, {**rows[0], "start": "together"}]
    table = Path("rows.jsonl")
    table.write_text("\n".join(map(json.dumps, (*rows, *others))))
    calibrate_command(loaded.path, "dev", Path("environments"), points=table, write=True)
    entry = json.loads(Path("chat.calibration.json").read_text())["environments"]["dev"]
    assert ([each["concurrency"] for each in entry["points"]], entry["source"]["file"]) == ([1, 16], "rows.jsonl")
    assert (entry["fixed"], entry["marginal"]) == pytest.approx((1.25, 1.25), rel=0.03)
    assert "rows of this deployment: 2; measured otherwise and left out: 2" in capsys.readouterr().err
    wrong: tuple[tuple[str, object, str], ...] = (
        *(("model", [], "model"), ("failed", "no", "")),
        ("changed_options", 5, "changed_options"),
    )
    refusals = {json.dumps({**rows[0], name: value}): [field] for name, value, field in wrong}
    refusals |= {json.dumps(others[0]): ["instance_type", "engine_version"], "{}": [""], "{" * 9_999: [""]}
    refusals[json.dumps({**rows[0], "instance_type": "none (simulated)"})] = [""]
    for text, fields in refusals.items():
        table.write_text(text)
        with pytest.raises(SpecError) as refused:
            calibrate_command(loaded.path, "dev", Path("environments"), points=table)
        assert [each.place.field for each in refused.value.problems] == fields
