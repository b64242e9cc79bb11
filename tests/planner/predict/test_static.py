"""Dynamic batching, and the article's comparison of it with continuous batching."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory
from seatrial.planner.predict.simulation import (
    PUBLISHED,
    TRIAL,
    Batches,
    batch_time_s,
    closed_static,
    outcome,
    simulate_static,
)
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_base.catalog.operators import find_operator

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Request

TOGETHER = replace(TRIAL, start="together")
PUBLISHED_ROWS = Path(__file__).parent / "data" / "falcon_40b_batching.csv"
FOUR_IN_100_MS = Batches(size=4, delay_s=0.1)


def falcon(input_tokens: int = 32, output_tokens: int = 128) -> Copy:
    """Falcon 40B on ml.g5.48xlarge, with the article's limits of continuous batching."""
    engine, architecture = find_engine("tgi", "1.1"), find_model("tiiuae/falcon-40b")
    instance = find_instance("ml.g5.48xlarge")
    assert architecture is not None
    assert instance is not None
    hardware = hardware_of(instance)
    assert hardware is not None
    memory = fit_memory(
        architecture,
        instance,
        engine,
        degree=8,
        quantization=None,
        tokens=input_tokens + output_tokens,
        batched_tokens=1_024,
    )
    return place_copy(
        architecture,
        hardware,
        engine,
        memory,
        degree=8,
        quantization=None,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        batched_tokens=1_024,
        max_num_seqs=32,
    )


def tok_s(requests: list[Request], output_tokens: int) -> float:
    return len(requests) * output_tokens / max(request.last_token_s for request in requests)


class TestBatches:
    def test_a_full_batch_starts_at_once(self) -> None:
        copy = falcon()
        first = simulate_static(copy, 4, TOGETHER, FOUR_IN_100_MS)[0]

        assert first.last_token_s == pytest.approx(TOGETHER.round_trip_s + batch_time_s(copy, 4))

    def test_a_batch_that_is_not_full_waits_for_its_delay(self) -> None:
        copy = falcon()
        first = simulate_static(copy, 3, TOGETHER, FOUR_IN_100_MS)[0]

        assert first.last_token_s == pytest.approx(TOGETHER.round_trip_s + 0.1 + batch_time_s(copy, 3))

    def test_the_fifth_waits_for_the_whole_batch(self) -> None:
        copy = falcon()
        requests = simulate_static(copy, 5, TOGETHER, FOUR_IN_100_MS)

        assert requests[4].last_token_s - requests[3].last_token_s > 0.99 * batch_time_s(copy, 1)

    def test_nothing_is_streamed(self) -> None:
        assert all(
            request.first_token_s == request.last_token_s
            for request in simulate_static(falcon(), 5, TOGETHER, FOUR_IN_100_MS)
        )

    def test_a_batch_is_no_larger_than_the_kv_room(self) -> None:
        assert Batches(size=64, delay_s=0.1).most(replace(falcon(), kv_room_tokens=3 * 160)) == 3

    def test_layers_that_follow_one_another_read_at_the_speed_of_one_accelerator(self) -> None:
        copy = falcon()
        product = find_operator(copy.hardware.accelerator, "product", None)
        bandwidth = copy.hardware.memory_bandwidth_bytes_s * product.memory_efficiency
        reading_s = copy.decode_steps * copy.weights_bytes / bandwidth * copy.engine.performance.product_factor

        assert batch_time_s(copy, 1) == pytest.approx(reading_s, rel=0.05)

    @given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 2_000))
    def test_every_request_is_answered_after_it_was_sent(self, concurrency: int, size: int, delay_ms: int) -> None:
        copy = falcon()
        requests = simulate_static(copy, concurrency, PUBLISHED, Batches(size, delay_ms / 1e3))

        assert len(requests) == 3 * concurrency
        assert all(request.last_token_s - request.sent_s > batch_time_s(copy, 1) for request in requests)

    @pytest.mark.parametrize("concurrency", [1, 2, 4, 8, 64])
    def test_the_closed_form_agrees(self, concurrency: int) -> None:
        copy = falcon()
        simulated = simulate_static(copy, concurrency, PUBLISHED, FOUR_IN_100_MS)

        assert closed_static(copy, concurrency, FOUR_IN_100_MS)[0] == pytest.approx(tok_s(simulated, 128), rel=0.1)


def published() -> list[dict[str, str]]:
    lines = PUBLISHED_ROWS.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def concurrency_of(row: dict[str, str]) -> int:
    """By Little's law, from the published p90 in place of the mean: the article does not give it."""
    requests_s = float(row["throughput_tok_s"]) / int(row["output_tokens"])
    return round(requests_s * float(row["latency_p90_s"]))


def predicted(row: dict[str, str]) -> tuple[float, float]:
    """Throughput in tokens/s and p90 latency in seconds."""
    copy = falcon(int(row["input_tokens"]), int(row["output_tokens"]))
    if row["batching"] != "Dynamic Batching":
        found = outcome(copy, concurrency_of(row), PUBLISHED)
        return found.output_tok_s, found.e2e_latency_ms.p90 / 1e3
    requests = simulate_static(copy, concurrency_of(row), PUBLISHED, FOUR_IN_100_MS)
    waits = sorted(request.last_token_s - request.sent_s for request in requests)
    return tok_s(requests, copy.output_tokens), waits[math.ceil(0.9 * len(waits)) - 1]


class TestTheArticle:
    """docs/how-to/predict.md has the whole table; nothing was tuned on these rows."""

    def test_it_lacks_the_concurrency_which_follows_by_little_s_law(self) -> None:
        assert [concurrency_of(row) for row in published()] == [3, 2, 2, 37, 6, 4]

    @pytest.mark.parametrize("row", [row for row in published() if row["scenario"] == "1"][1:])
    def test_continuous_batching_of_short_prompts(self, row: dict[str, str]) -> None:
        throughput, latency = predicted(row)

        assert throughput == pytest.approx(float(row["throughput_tok_s"]), rel=0.15)
        assert latency == pytest.approx(float(row["latency_p90_s"]), rel=0.15)

    @pytest.mark.parametrize("row", [row for row in published() if row["scenario"] == "2"])
    def test_the_second_payload_is_further_off(self, row: dict[str, str]) -> None:
        throughput, latency = predicted(row)

        assert throughput == pytest.approx(float(row["throughput_tok_s"]), rel=0.45)
        assert latency == pytest.approx(float(row["latency_p90_s"]), rel=0.45)

    def test_dynamic_batching_of_the_first_payload_looks_like_batches_of_one(self) -> None:
        row = published()[0]
        copy, measured = falcon(), float(row["throughput_tok_s"])

        assert predicted(row)[0] > 2 * measured
        assert copy.output_tokens / batch_time_s(copy, 1) == pytest.approx(measured, rel=0.15)
