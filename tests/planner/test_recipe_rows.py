"""The recipes of one model beside each other."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.comparisons import recipe_rows
from seatrial.planner.planner import make_plan
from seatrial.report.terminal.alternatives import recipe_documents, recipes_csv
from seatrial.specs.load import with_recipe
from seatrial.specs.recipe import parse_recipe

if TYPE_CHECKING:
    from seatrial.documents.comparison import RecipeRow
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask


@pytest.fixture
def loaded(ask: Ask) -> LoadedSpec:
    return ask(
        model={"hub_id": "meta-llama/Llama-3.1-8B-Instruct"},
        serving={"instance_types": ["ml.g6e.xlarge"]},
        optimization=[{"awq": {"checkpoint": "org/llama-awq"}}, "ngram"],
    )


@pytest.fixture
def rows(loaded: LoadedSpec) -> dict[str, RecipeRow]:
    return {row.recipe: row for row in recipe_rows(loaded)}


def test_each_row_is_what_its_own_plan_says(loaded: LoadedSpec, rows: dict[str, RecipeRow]) -> None:
    for name in ("none", "fp8", "awq=org/llama-awq+ngram"):
        plan, found = make_plan(with_recipe(loaded, parse_recipe(name))), rows[name].predicted
        assert found is not None
        assert (found.instance_type, found.instance_count) == (plan.instance_type.value, plan.instance_count.value)
        assert (found.usd_per_hour, found.weights_bytes) == (plan.cost.usd_per_hour, plan.memory.weights_bytes)
        assert found.usd_per_million_output_tokens == plan.cost.usd_per_million_output_tokens


def test_the_plain_recipe_is_what_the_others_are_compared_with(rows: dict[str, RecipeRow]) -> None:
    plain, fp8 = rows["none"].predicted, rows["fp8"].predicted
    assert plain is not None
    assert fp8 is not None
    assert (plain.times_throughput, plain.times_price) == (1, 1)
    assert fp8.times_throughput == pytest.approx(fp8.output_tok_s / plain.output_tok_s, abs=2e-3)
    assert fp8.weights_bytes < plain.weights_bytes


def test_what_the_spec_names_needs_nothing_and_the_rest_says_what(rows: dict[str, RecipeRow]) -> None:
    assert rows["awq=org/llama-awq"].needs == ()
    stand_in = next(row for row in rows.values() if row.names == ("smoothquant",))
    assert stand_in.needs == ("smoothquant: a checkpoint or an optimization job",)
    assert stand_in.predicted is not None


def test_a_refused_recipe_has_its_rule_and_stands_last(rows: dict[str, RecipeRow]) -> None:
    refused = [row for row in rows.values() if row.predicted is None]

    assert {row.rule for row in refused} == {"SEA233", "SEA234", "SEA236"}
    assert list(rows.values())[-len(refused) :] == refused


def test_the_documents_and_the_csv_say_the_same(rows: dict[str, RecipeRow]) -> None:
    documents = recipe_documents(tuple(rows.values()))
    lines = list(csv.DictReader(io.StringIO(recipes_csv(tuple(rows.values())))))

    assert [line["recipe"] for line in lines] == [document["recipe"] for document in documents]
    assert {frozenset(line) for line in lines} == {frozenset(documents[0])}
    assert [line["tpot_ms"] == "" for line in lines] == [document["tpot_ms"] is None for document in documents]
