"""The numbers of docs/explanation/planner.md, computed again."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory
from seatrial.planner.predict.simulation import PUBLISHED, outcome
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.documents.prediction import MemoryFit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "planner.md").read_text(encoding="utf-8")
PREDICT = (ROOT / "docs" / "how-to" / "predict.md").read_text(encoding="utf-8")
ROWS = ROOT / "tests" / "planner" / "data" / "llama_2_7b_tgi.csv"
LEFT_OUT = ROOT / "benchmarks" / "planner_accuracy" / "leave_one_out.csv"
ARCHITECTURE, ENGINE = find_model("meta-llama/Llama-2-7b-hf"), find_engine("tgi", "1.1.0")
MORE_THAN_THEY_ASKED_FOR = 1_000  # sequences
Errors = tuple[float, float]


def read(path: Path) -> list[dict[str, str]]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def memory_of(instance_type: str, degree: int, tokens: int) -> MemoryFit:
    instance = find_instance(instance_type)
    assert ARCHITECTURE is not None
    assert instance is not None
    return fit_memory(
        ARCHITECTURE,
        instance,
        ENGINE,
        degree=degree,
        quantization=None,
        tokens=tokens,
        batched_tokens=ENGINE.default_batched_tokens,
    )


def errors_of(row: dict[str, str], throughput_tok_s: float, latency_ms_per_token: float) -> Errors:
    """Return how far a prediction is off one published row, as shares."""
    published = float(row["throughput_tok_s"]), float(row["latency_ms_per_token"])
    return abs(throughput_tok_s / published[0] - 1), abs(latency_ms_per_token / published[1] - 1)


def predicted(row: dict[str, str]) -> Errors:
    degree, prompt, output = (int(row[name]) for name in ("tp_degree", "input_tokens", "output_tokens"))
    instance = find_instance(row["instance_type"])
    assert ARCHITECTURE is not None
    assert instance is not None
    hardware = hardware_of(instance)
    assert hardware is not None
    copy = place_copy(
        ARCHITECTURE,
        hardware,
        ENGINE,
        memory_of(row["instance_type"], degree, prompt + output),
        degree=degree,
        quantization=None,
        input_tokens=prompt,
        output_tokens=output,
        batched_tokens=ENGINE.default_batched_tokens,
        max_num_seqs=MORE_THAN_THEY_ASKED_FOR,
    )
    found = outcome(copy, int(row["concurrency"]), PUBLISHED)
    return errors_of(row, found.output_tok_s, found.ms_per_token.p90)


def left_out(row: dict[str, str]) -> Errors:
    return errors_of(row, float(row["predicted_throughput_tok_s"]), float(row["predicted_latency_ms_per_token"]))


def in_percent(errors: Iterable[float]) -> str:
    values = list(errors)
    return f"{sum(values) / len(values) * 100:.1f} %"


def rows_of_the_page(begin: str) -> list[list[str]]:
    lines = re.findall(rf"^\| {begin}.*$", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_errors_are_those_of_the_published_table() -> None:
    rows, others = read(ROWS), read(LEFT_OUT)
    fitted, held = [predicted(row) for row in rows], [left_out(row) for row in others]
    places = [(row["instance_type"], row["input_tokens"]) for row in rows]
    assert places == [(row["instance_type"], row["input_tokens"]) for row in others]

    expected = {}
    for place_of in dict.fromkeys(places):
        inside = [at for at, other in enumerate(places) if other == place_of]
        expected[place_of] = [
            in_percent(errors[at][metric] for at in inside) for errors in (fitted, held) for metric in (0, 1)
        ]
    shown = {(cells[0], cells[2].replace(",", "")): cells[3:7] for cells in rows_of_the_page(r"ml\.")}
    assert shown == expected
    (total,) = rows_of_the_page("all 52 rows")
    assert len(rows) == 52
    assert total[3:7] == [
        in_percent(error[metric] for error in errors) for errors in (fitted, held) for metric in (0, 1)
    ]


def test_the_page_of_predict_has_the_same_errors() -> None:
    (total,) = rows_of_the_page("all 52 rows")
    assert f"| simulation | {total[3]} | {total[4]} |" in PREDICT


def test_the_band_covers_four_of_five_rows_that_were_left_out() -> None:
    held = [left_out(row) for row in read(LEFT_OUT)]
    stated = ENGINE.performance
    for metric, band in ((0, stated.throughput_error), (1, stated.latency_error)):
        inside = sum(errors[metric] <= band for errors in held) / len(held)
        assert 0.8 <= inside < 0.9
    nearest = [sorted(errors[metric] for errors in held)[41] for metric in (0, 1)]
    assert f"at most {nearest[0] * 100:.1f} % of throughput and {nearest[1] * 100:.1f} % of latency" in PAGE


def test_the_example_is_the_planners_own() -> None:
    fit = memory_of("ml.g5.2xlarge", 1, 4_096)
    one = fit.kv_bytes_per_token * 4_096
    amounts = (fit.accelerator_memory_bytes, fit.weights_bytes, fit.activation_bytes, fit.reserve_bytes)
    for amount in (*amounts, fit.kv_room_bytes, one):
        assert f"{amount:,} bytes" in PAGE
    assert f"floor({fit.kv_room_bytes / one:.2f}) = {fit.kv_limited_batch}" in PAGE
