"""The tables of instance types and recipes as they are first shown: few columns, ten rows, 80 characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.comparison import Basis, InstanceComparison, PredictedRecipe, RecipeRow, TypeAtLoad
from seatrial.documents.prediction import Band
from seatrial.report.terminal.alternatives import first_instances_view, first_recipes_view, recipes_view

if TYPE_CHECKING:
    from tests.report.terminal.conftest import Shown

BAND = Band(throughput=0.16, latency=0.2, measured=True, because="Of rows.")


def compared(name: str, *, usd_per_hour: float | None = 8.0, fits: bool = True) -> InstanceComparison:
    return InstanceComparison(
        instance_type=name,
        accelerators=8,
        tensor_parallel_degree=8,
        copies_per_instance=1,
        kv_limited_batch=64,
        ms_per_token_alone=19.2,
        highest_concurrency=1024,
        highest_tok_s=18_882.0,
        usd_per_hour=usd_per_hour,
        usd_per_million_output_tokens=None if usd_per_hour is None else 22.32,
        blended_usd_per_million_tokens=None,
        fits=fits,
        because="",
    )


def kept(name: str, usd_per_hour: float, count: int = 1) -> TypeAtLoad:
    return TypeAtLoad(
        instance_type=name,
        tensor_parallel_degree=8,
        instance_count=count,
        usd_per_hour=usd_per_hour,
        output_tok_s=1841.6,
    )


def types_shown(shown: Shown, rows: list[InstanceComparison], loads: list[TypeAtLoad]) -> list[str]:
    basis = Basis("lmi", "0.36", "vllm-v1", "9 + 9 tokens", 0.0, {row.instance_type: BAND for row in rows})
    lines = shown(first_instances_view(rows, loads, basis, "Instance types for chat in dev")).splitlines()
    (heading,) = (number for number, line in enumerate(lines) if line.startswith("instance type "))
    return lines[heading + 1 :]


def recipe(*names: str, usd: float = 4.2, tok_s: float = 400.0, needs: str = "", refused: str = "") -> RecipeRow:
    predicted = PredictedRecipe(
        instance_type="ml.p6-b300.48xlarge",
        instance_count=2,
        tensor_parallel_degree=8,
        copy_count=2,
        output_tok_s=tok_s,
        ttft_ms=300.0,
        tpot_ms=36.3,
        weights_bytes=1,
        kv_room_bytes=1,
        usd_per_hour=usd,
        usd_per_million_output_tokens=2.0,
        blended_usd_per_million_tokens=1.0,
        times_throughput=None,
        times_price=None,
        throughput_band=0.16,
        latency_band=0.2,
        band_because="Of rows.",
    )
    return RecipeRow(
        recipe="+".join(names) or "none",
        names=names,
        rule=refused,
        because=refused,
        needs=(needs,) if needs else (),
        predicted=None if refused else predicted,
        gives_up=tuple(f"{name}: quality" for name in names),
    )


class TestInstanceTypes:
    def test_those_that_keep_the_slo_come_first_the_cheapest_of_them_at_the_top(self, shown: Shown) -> None:
        names = ("ml.p5en.48xlarge", "ml.g6.xlarge", "ml.p5.4xlarge")
        rows = [compared(name) for name in names]
        lines = types_shown(
            shown, rows, [kept(names[0], 72.8), TypeAtLoad(instance_type=names[1]), kept(names[2], 7.9)]
        )
        words = [line.split()[:3] for line in lines[:3]]
        assert words == [
            ["ml.p5.4xlarge", "met", "$7.90"],
            ["ml.p5en.48xlarge", "met", "$72.80"],
            ["ml.g6.xlarge", "missed", "$8.00"],
        ]

    def test_without_an_slo_a_type_carries_the_load_in_time_or_does_not(self, shown: Shown) -> None:
        rows = [compared("ml.p5.4xlarge"), compared("ml.g6.xlarge")]
        loads = [kept("ml.p5.4xlarge", 7.9), TypeAtLoad(instance_type="ml.g6.xlarge")]
        basis = Basis("lmi", "0.36", "vllm-v1", "9 + 9 tokens", 0.0, {row.instance_type: BAND for row in rows})
        text = shown(first_instances_view(rows, loads, basis, "Types", has_slo=False))
        assert "SLO" not in text
        lines = [line.split()[:2] for line in text.splitlines() if line.startswith("ml.")]
        assert lines == [["ml.p5.4xlarge", "yes"], ["ml.g6.xlarge", "no"]]

    def test_more_than_one_instance_is_told_and_an_unknown_price_is_no_miss(self, shown: Shown) -> None:
        rows = [compared("ml.g7e.2xlarge"), compared("ml.p6-b200.48xlarge", usd_per_hour=None)]
        loads = [kept("ml.g7e.2xlarge", 8.4, count=2), TypeAtLoad(instance_type="ml.p6-b200.48xlarge", exceeds="price")]
        lines = types_shown(shown, rows, loads)
        assert lines[0].split()[:4] == ["2", "x", "ml.g7e.2xlarge", "met"]
        assert lines[1].split()[:2] == ["ml.p6-b200.48xlarge", "?"]

    def test_a_type_above_the_budget_or_with_too_many_copies_misses_no_slo(self, shown: Shown) -> None:
        names = ("ml.p5en.48xlarge", "ml.g6.xlarge")
        loads = [
            TypeAtLoad(instance_type=names[0], exceeds="budget"),
            TypeAtLoad(instance_type=names[1], exceeds="copies"),
        ]
        lines = types_shown(shown, [compared(name) for name in names], loads)
        assert [line.split()[:2] for line in lines[:2]] == [["ml.p5en.48xlarge", "budget"], ["ml.g6.xlarge", "copies"]]

    def test_ten_rows_of_at_most_80_characters_and_how_many_more_there_are(self, shown: Shown) -> None:
        rows = [compared(f"ml.p6-b300.{index}xlarge", fits=index < 23) for index in range(30)]
        lines = types_shown(shown, rows, [kept(row.instance_type, 1234.5, count=12) for row in rows])
        assert sum("ml.p6-b300" in line for line in lines) == 10
        assert max(map(len, lines)) <= 80
        assert lines[-1] == "--wide shows 13 more, 7 that can't run the model, bands and all columns."


class TestRecipes:
    def test_ten_rows_the_plain_one_among_them_and_how_many_more_there_are(self, shown: Shown) -> None:
        rows = [recipe(f"awq+speculative{index:02}", usd=index) for index in range(1, 30)]
        lines = shown(first_recipes_view((*rows, recipe(usd=99.0)), "Recipes for chat in dev")).splitlines()
        names = [line.split()[0] for line in lines if "ml.p6-b300" in line]
        assert names == [*(f"awq+speculative{index:02}" for index in range(1, 10)), "none"]
        assert max(map(len, lines)) <= 80
        assert "--wide shows 20 more, bands and all columns." in lines

    def test_an_optimization_that_changes_nothing_is_left_to_the_wide_table(self, shown: Shown) -> None:
        rows = (recipe("fp8"), recipe("fp8", "prefix_cache"), recipe("fp8", "kv_fp8", tok_s=500.0), recipe(usd=9.0))
        text = shown(first_recipes_view(rows, "Recipes"))
        assert "fp8+prefix_cache" not in text
        assert "fp8+kv_fp8" in text
        assert "prefix_cache: quality" not in text

    def test_without_an_slo_none_is_said_to_keep_it(self, shown: Shown) -> None:
        assert "Without an SLO: all end in time." in shown(first_recipes_view((recipe(),), "Recipes", has_slo=False))

    def test_the_wide_table_tells_band_and_type_of_each_in_80_columns(self, shown: Shown) -> None:
        lines = shown(recipes_view((recipe("smoothquant+speculative"), recipe()), "Recipes")).splitlines()
        assert max(map(len, lines)) <= 80
        assert [line.split()[-2:] for line in lines if line.startswith("none")] == [["±16", "%"]]
        assert "type 1: 2 x ml.p6-b300.48xlarge, tensor parallel degree 8" in lines
        assert "band ±16 %: latency ±20 %. Of rows." in lines

    def test_what_is_shown_needs_and_gives_up(self, shown: Shown) -> None:
        text = shown(first_recipes_view((recipe("awq", needs="awq: a checkpoint"), recipe(usd=9.0)), "Recipes"))
        assert "awq *" in text
        assert "Needs\nawq: a checkpoint" in text
        assert "Gives up\nawq: quality" in text

    def test_where_none_runs_each_is_told_why(self, shown: Shown) -> None:
        text = shown(first_recipes_view((recipe("fp8", refused="SEA233"),), "Recipes"))
        assert "No recipe has a deployment that meets the requirements." in text
        assert "SEA233" in text
