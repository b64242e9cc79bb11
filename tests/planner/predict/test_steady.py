"""The steady state of a closed loop: Little's law, no artefact of the ramp, and one answer either side of a border."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.planner.predict.simulation import Batches
from seatrial.planner.tables.predictions import predict_csv_row, steady_fleet, steady_split
from seatrial.planner.tables.rows import read_engine, read_rows
from seatrial.planner.tables.steady import SteadyLevel, steady, steady_mean
from seatrial_base.catalog.engines import find_engine

if TYPE_CHECKING:
    from seatrial.planner.tables.predictions import Form, RowPrediction
    from seatrial.planner.tables.rows import Asked, Load
    from tests.planner.predict.conftest import PlaceCopy

VLLM = find_engine("vllm", "0.11.0")
HEAD = "model,instance_type,tp_degree,instance_count,copies_per_instance,input_tokens,output_tokens,concurrency"


def asked(row: str, head: str = HEAD) -> Asked:
    (read,) = read_rows(f"{head}\n{row}\n".encode(), "rows.csv", engine=read_engine("vllm-0.11.0"), load="saturated")[1]
    assert read.asked is not None
    return read.asked


def predicted(row: str, *, form: Form = "simulation", load: Load = "steady", concurrency: int = 8) -> RowPrediction:
    return predict_csv_row(replace(asked(row), concurrency=concurrency), form, load)


class TestOneCopy:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(1, 200), st.integers(1, 4_000), st.integers(1, 400))
    def test_littles_law_holds_and_the_parts_add_up(self, concurrency: int, prompt: int, output: int) -> None:
        row = f"meta-llama/Llama-3.1-8B,ml.g6e.2xlarge,1,1,1,{prompt},{output},1"
        found = predicted(row, concurrency=concurrency)
        level = found.steady

        assert level is not None
        assert found.output_tok_s == pytest.approx(concurrency * output / level.e2e_ms * 1e3)
        assert level.e2e_ms == pytest.approx(level.ttft_ms + level.tpot_ms * (output - 1 or 1))
        assert level.e2e_p50_ms is not None
        assert 0 < level.ttft_ms <= level.e2e_ms * (1 + 1e-9)
        assert level.e2e_p50_ms <= level.late_ms
        assert found.ms_per_token == pytest.approx(level.late_ms / output)

    def test_prompts_do_not_wait_for_each_other_in_every_round(self, copy_of: PlaceCopy) -> None:
        copy = copy_of("meta-llama/Llama-3.1-8B", "ml.g6e.2xlarge", input_tokens=1_000, output_tokens=500, engine=VLLM)
        alone, many = steady(copy, 1), steady(copy, 16)

        assert many.ttft_ms < 2 * alone.ttft_ms
        assert many.e2e_ms == pytest.approx(steady_mean(copy, 16).e2e_ms, rel=0.1)

    def test_requests_beyond_the_batch_wait(self, copy_of: PlaceCopy) -> None:
        copy = replace(copy_of("meta-llama/Llama-3.1-8B", "ml.g6e.2xlarge", engine=VLLM), max_num_seqs=32)
        full, twice = steady(copy, 32), steady(copy, 64)

        assert twice.output_tok_s == pytest.approx(full.output_tok_s, rel=0.05)
        assert twice.ttft_ms > 0.4 * twice.e2e_ms
        assert twice.tpot_ms == pytest.approx(full.tpot_ms, rel=0.05)

    @pytest.mark.parametrize("limit", [64, 1_000])
    def test_there_is_no_step_where_the_closed_form_takes_over(self, copy_of: PlaceCopy, limit: int) -> None:
        copy = replace(copy_of("meta-llama/Llama-3.1-8B", "ml.g6e.2xlarge", engine=VLLM), max_num_seqs=limit)
        below, above = steady(copy, 512), steady(copy, 513)

        assert above.e2e_ms == pytest.approx(below.e2e_ms, rel=0.02)
        assert above.tpot_ms == pytest.approx(below.tpot_ms, rel=0.02)
        assert above.late_ms == pytest.approx(below.late_ms, rel=0.02)
        assert steady(copy, 2_048).ttft_ms > above.ttft_ms

    def test_a_prompt_of_a_million_tokens_is_answered(self) -> None:
        level = predicted("meta-llama/Llama-3.1-8B,ml.p5.48xlarge,8,1,1,1000000,100,1", concurrency=64).steady

        assert level is not None
        assert 0 < level.ttft_ms < level.e2e_ms

    def test_the_closed_form_has_no_percentiles(self) -> None:
        found = predicted("meta-llama/Llama-3.1-8B,ml.g6e.2xlarge,1,1,1,500,100,1", form="closed")

        assert found.steady is not None
        assert (found.steady.e2e_p50_ms, found.steady.e2e_p90_ms) == (None, None)

    def test_the_tokens_of_a_dynamic_batch_come_at_its_end(self, copy_of: PlaceCopy) -> None:
        batches, copy = Batches(4, 0.1), copy_of()
        found, mean = steady(copy, 8, batches), steady_mean(copy, 8, batches)

        assert found.tpot_ms == 0
        assert found.ttft_ms == found.e2e_ms == pytest.approx(mean.e2e_ms, rel=0.1)


class TestDeployments:
    ROW = "meta-llama/Llama-3.1-8B,ml.g6e.2xlarge,1,{},1,500,100,1"

    def test_copies_share_the_requests(self) -> None:
        one = predicted("meta-llama/Llama-3.1-8B,ml.g6e.12xlarge,1,1,1,500,100,1", concurrency=8)
        four = predicted("meta-llama/Llama-3.1-8B,ml.g6e.12xlarge,1,1,4,500,100,1", concurrency=32)

        assert four.output_tok_s == pytest.approx(4 * (one.output_tok_s or 0))
        assert four.ms_per_token == pytest.approx(one.ms_per_token)

    def test_an_uneven_share_lies_between(self) -> None:
        def level(load: int) -> SteadyLevel:
            return SteadyLevel(load, 100, 10.0 * load, 1_000.0 * load, 1_000.0 * load, 1_100.0 * load)

        found = steady_split(level, 5, 2)

        assert found.output_tok_s == pytest.approx(level(2).output_tok_s + level(3).output_tok_s)
        assert 2_000 < found.e2e_ms < 3_000
        assert found.e2e_p90_ms == 3_300
        assert steady_split(level, 1, 4).concurrency == 1

    @pytest.mark.parametrize("concurrency", [1, 7, 64])
    def test_chance_costs_a_fleet_throughput(self, concurrency: int) -> None:
        one = predicted(self.ROW.format(1), concurrency=-(-concurrency // 4))
        four = predicted(self.ROW.format(4), concurrency=concurrency)
        level = four.steady

        assert level is not None
        assert four.output_tok_s == pytest.approx(concurrency * 100 / level.e2e_ms * 1e3)
        assert (four.output_tok_s or 0) <= 4 * (one.output_tok_s or 0) * 1.001
        assert level.late_ms >= (level.e2e_p50_ms or 0) > level.ttft_ms > 0

    def test_a_fleet_in_closed_form_has_no_percentiles(self) -> None:
        def level(load: int) -> SteadyLevel:
            return SteadyLevel(load, 100, 10.0 * load, 1_000.0, None, None)

        found = steady_fleet(level, concurrency=8, instances=2)

        assert (found.e2e_p50_ms, found.e2e_p90_ms) == (None, None)
        assert found.e2e_ms == pytest.approx(1_000)


class TestSaturated:
    ROW = "meta-llama/Llama-3.1-8B,ml.g6e.12xlarge,1,{},{},500,100,inf"

    def test_every_copy_is_full(self) -> None:
        one, eight = (predict_csv_row(asked(self.ROW.format(*each)), load="saturated") for each in ((1, 1), (2, 4)))

        assert eight.output_tok_s == pytest.approx(8 * (one.output_tok_s or 0))
        assert (one.ms_per_token, one.steady) == (None, None)
        assert one.limit == "batch limit"

    def test_it_is_the_most_that_a_steady_load_reaches(self) -> None:
        full = predict_csv_row(asked(self.ROW.format(1, 1)), load="saturated").output_tok_s or 0
        steady_ones = [predicted(self.ROW.format(1, 1), concurrency=level).output_tok_s or 0 for level in (8, 64, 256)]

        assert steady_ones == sorted(steady_ones)
        assert full == pytest.approx(steady_ones[-1], rel=0.01)

    def test_what_does_not_fit_has_no_numbers(self) -> None:
        found = predict_csv_row(asked("meta-llama/Llama-3.1-70B,ml.g5.xlarge,1,1,1,500,100,inf"), load="saturated")

        assert (found.output_tok_s, found.limit) == (None, "does not fit")
