"""The column `optimization` of `seatrial predict`."""

from __future__ import annotations

import pytest

from seatrial.planner.tables.options import ReadOptimization, read_optimization
from seatrial.planner.tables.predictions import answered
from seatrial.planner.tables.rows import read_rows

HEAD = "model,engine,engine_version,instance_type,tp_degree,input_tokens,output_tokens,concurrency,prefix_hit_rate"
ROW = "Qwen/Qwen3-32B,vLLM,0.11.0,ml.g5.12xlarge,4,557,512,1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ReadOptimization()),
        ("vanilla", ReadOptimization()),
        (" EAGLE-3 ", ReadOptimization(method="eagle3")),
        ("n-gram", ReadOptimization(method="ngram")),
        ("prefix_cache", ReadOptimization(prefix_cache=True)),
        ("eagle3 + Prefix Caching+kv_fp8", ReadOptimization("eagle3", prefix_cache=True, kv_fp8=True)),
        ("vanilla+eagle3", ReadOptimization("eagle3")),
        (
            "fp8+speculative=org/small,draft_tokens=2",
            ReadOptimization("draft_model", weights="fp8", draft="org/small", unread=("draft_tokens=2",)),
        ),
        ("awq=org/x-awq+fp8", ReadOptimization(weights="awq", unread=("fp8",))),
        ("lmcache+ngram+eagle3", ReadOptimization("ngram", unread=("lmcache", "eagle3"))),
    ],
)
def test_names_are_read_in_any_spelling(text: str, expected: ReadOptimization) -> None:
    assert read_optimization(text) == expected


def test_nothing_is_modelled_for_compiled_shapes() -> None:
    assert read_optimization("eagle3", compiled_shapes=True) == ReadOptimization(unread=("eagle3",))


def table(column: str, *cells: str, hit_rate: str = "0.9") -> list[dict[str, str | float | int | None]]:
    text = "\n".join([f"{HEAD},{column}", *(f"{ROW},{hit_rate},{cell}" for cell in cells)])
    columns, rows = read_rows(text.encode(), "rows.csv")
    return list(answered(columns, rows, "closed", "steady").rows)


def test_a_precision_of_the_row_wins_over_the_recipes() -> None:
    assert read_optimization("fp8", precision="awq") == ReadOptimization(unread=("fp8",))


def test_quantized_weights_of_a_recipe_are_predicted_as_those_of_the_precision() -> None:
    plain, quantized = table("optimization", "", "fp8")
    (by_hand,) = table("precision", "fp8")

    key = "predicted_throughput_tok_s"
    assert plain[key] != quantized[key] == by_hand[key]


@pytest.mark.parametrize("column", ["optimization", "optimisation"])
def test_a_row_is_predicted_with_what_its_column_says(column: str) -> None:
    plain, drafted, unknown, blank = table(column, "vanilla", "eagle3", "lmcache", "")

    key = "predicted_throughput_tok_s"
    assert float(drafted[key] or 0) > 1.4 * float(plain[key] or 0)
    assert drafted["predicted_optimization"] == "eagle3: 4 drafted tokens, acceptance rate 0.564: fitted"
    assert unknown[key] == plain[key] == blank[key]
    assert unknown["predicted_optimization"] == "without 'lmcache': not read"
    assert not plain.get("predicted_optimization")


def test_a_prefix_cache_without_a_hit_rate_takes_an_assumed_one_and_says_so() -> None:
    (given,), (assumed,) = (table("optimization", "prefix-cache", hit_rate=rate) for rate in ("0.9", ""))

    key = "predicted_throughput_tok_s"
    assert given[key] == assumed[key]
    assert (given["uncertainty"], assumed["uncertainty"]) == ("measured", "assumed")
    assert assumed["predicted_optimization"] == "prefix cache: hit rate 0.9: assumed"


def test_a_table_without_the_column_gets_no_further_one() -> None:
    columns, rows = read_rows(f"{HEAD}\n{ROW},0.9".encode(), "rows.csv")
    assert "predicted_optimization" not in answered(columns, rows, "closed").columns
