"""The arithmetic of benchmarks/planner_accuracy; the peers themselves run in environments of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planner_accuracy import a10g, compare, roofline
from benchmarks.planner_accuracy.cells import (
    MODEL,
    PREDICTIONS,
    ROOT,
    Cell,
    Prediction,
    closed_loop,
    read_predictions,
    read_published,
)
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "benchmarks" / "planner_accuracy"
CELL = Cell("ml.g5.2xlarge", 1, 256, 256, 64)


def serves_up_to(limit: int, cell: Cell, batch: int) -> float | None:
    assert cell == CELL
    return 10.0 * batch if batch <= limit else None


def test_the_published_table_is_read_whole() -> None:
    published = read_published()

    assert len(published) == 52
    assert published[CELL] == Prediction(486, 159)


def test_the_readme_tells_what_the_predictions_say() -> None:
    page = compare.README.read_text(encoding="utf-8")

    assert compare.current(page) == page, "python -m benchmarks.planner_accuracy.compare --write"


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^README.md lacks the mark <!-- begin accuracy: .* -->$"):
        compare.current("no table here")


@pytest.mark.parametrize("path", sorted(PREDICTIONS.glob("*.csv")), ids=lambda path: path.stem)
def test_every_file_of_predictions_answers_the_published_cells(path: Path) -> None:
    assert list(read_predictions(path)) == list(read_published())


def test_every_file_of_predictions_is_in_the_tables() -> None:
    assert set(PREDICTIONS.glob("*.csv")) <= {tool.path for tool in compare.TOOLS}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (64, Prediction(640, 100)),  # 64 requests / 640 tok/s
        (
            63,
            Prediction(630, 64 / 630 * 1_000, "a batch of 63 fits, by this tool's account of memory; the rest queues"),
        ),
        (1, Prediction(10, 6_400, "a batch of 1 fits, by this tool's account of memory; the rest queues")),
        (0, Prediction(None, None, "not one request fits, by this tool's account of memory")),
    ],
)
def test_what_does_not_fit_queues(limit: int, expected: Prediction) -> None:
    assert closed_loop(lambda cell, batch: serves_up_to(limit, cell, batch), CELL) == expected


def test_an_answer_that_lacks_a_figure_is_none(tmp_path: Path) -> None:
    path = tmp_path / "tool.csv"
    path.write_text(
        "model,instance_type,tp_degree,instance_count,input_tokens,output_tokens,concurrency,own,"
        "predicted_throughput_tok_s,predicted_latency_ms_per_token\n"
        "any,ml.g5.2xlarge,1,1,256,256,64,passed through,500.5,\n",
        encoding="utf-8",
    )

    assert read_predictions(path) == {CELL: Prediction(500.5, None)}


def test_the_error_is_the_mean_of_absolute_percentages() -> None:
    assert compare.mape([1.1, 0.7]) == pytest.approx(20)


def test_the_best_factor_mends_a_constant_error() -> None:
    assert compare.best_factor([4.0, 4.0, 4.0]) == 0.25


@given(st.lists(st.floats(0.05, 50), min_size=1, max_size=20), st.floats(0.01, 30))
def test_no_factor_is_better_than_the_best(ratios: list[float], other: float) -> None:
    best = compare.best_factor(ratios)

    assert compare.mape([ratio * best for ratio in ratios]) <= compare.mape([ratio * other for ratio in ratios]) + 1e-6


def test_the_roofline_reads_the_weights_or_computes() -> None:
    assert roofline.serve(CELL, 1) == pytest.approx(600e9 / (2 * 6_738_415_616))  # 44.5 tok/s
    assert roofline.serve(CELL, 512) == pytest.approx(70e12 / (2 * 6_738_415_616))  # 5,194 tok/s: beyond 117


def test_the_peers_are_told_the_catalogs_a10g() -> None:
    instance = find_instance("ml.g5.2xlarge")
    told = yaml.safe_load((FOLDER / "given" / "systems" / "a10g.yaml").read_text(encoding="utf-8"))

    assert instance is not None
    assert (
        instance.flops_16bit,
        instance.memory_bandwidth_bytes_s,
        instance.accelerator_memory_bytes,
    ) == (a10g.FLOPS, a10g.MEMORY_BANDWIDTH_BYTES_S, a10g.MEMORY_BYTES)
    assert [told["gpu"][name] for name in ("bfloat16_tc_flops", "mem_bw", "mem_capacity")] == [
        a10g.FLOPS,
        a10g.MEMORY_BANDWIDTH_BYTES_S,
        a10g.MEMORY_BYTES,
    ]
    assert told["node"]["intra_node_bw"] == a10g.LINK_BYTES_S


def test_the_peers_are_told_the_catalogs_model() -> None:
    model = find_model(MODEL)
    told = json.loads((FOLDER / "given" / "llama-2-7b" / "config.json").read_text(encoding="utf-8"))
    keys = ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size")

    assert model is not None
    assert [told[key] for key in keys] == [
        model.layers,
        model.hidden_size,
        model.attention_heads,
        model.kv_heads,
        model.vocab,
    ]
