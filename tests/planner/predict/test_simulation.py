from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.copy_model import Speculation
from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.simulation import PUBLISHED, TRIAL, Protocol, outcome, simulate
from seatrial_base.catalog.engines import find_engine
from tests.planner.predict.conftest import placed

if TYPE_CHECKING:
    from seatrial_base.catalog import engines
    from tests.planner.predict.conftest import PlaceCopy

PUBLISHED_ROWS = Path(__file__).parents[1] / "data" / "llama_2_7b_tgi.csv"
TOGETHER = replace(TRIAL, start="together")
AT_ONCE = Protocol(requests_per_concurrency=1, stagger_s=0.0, round_trip_s=0.0)
LONG = Protocol(requests_per_concurrency=12, stagger_s=0.0, round_trip_s=0.0)
LMI = find_engine("lmi", "0.36.0")
TGI = find_engine("tgi", "1.1.0")


def test_the_published_rows_are_met() -> None:
    lines = [line for line in PUBLISHED_ROWS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    throughput, latency = [], []
    for row in csv.DictReader(lines):
        copy = placed(
            instance_type=row["instance_type"],
            degree=int(row["tp_degree"]),
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
        )
        found = outcome(copy, int(row["concurrency"]), PUBLISHED)
        throughput.append(abs(found.output_tok_s / float(row["throughput_tok_s"]) - 1))
        latency.append(abs(found.ms_per_token.p90 / float(row["latency_ms_per_token"]) - 1))

    assert len(throughput) == 52
    assert sum(throughput) / 52 < 0.045  # 3.5 % measured
    assert sum(latency) / 52 < 0.055  # 4.8 % measured


def test_a_request_alone_takes_its_prefill_and_its_steps(copy_of: PlaceCopy) -> None:
    copy = copy_of()
    costs = costs_of(copy)
    (request,) = simulate(copy, 1, AT_ONCE)

    assert request.first_token_s == pytest.approx(costs.prefill(1, 256))
    context = 255 * (257 + 511) / 2  # tokens of context over the 255 steps after the first token
    assert request.last_token_s - request.first_token_s == pytest.approx(
        255 * costs.step(1) + costs.attention(1) * context, rel=0.002
    )


def test_tgi_prefills_what_fits_and_lets_the_rest_wait_twenty_steps(copy_of: PlaceCopy) -> None:
    copy = copy_of(instance_type="ml.p4d.24xlarge", degree=8)
    firsts = sorted({request.first_token_s for request in simulate(copy, 40, AT_ONCE)})

    assert len(firsts) == 3  # 16, 16 and 8 prompts of 256 tokens
    steps = 19 * costs_of(copy).step(16)
    assert firsts[1] - firsts[0] > steps
    assert firsts[1] - firsts[0] < steps + 2 * costs_of(copy).prefill(16, 256)


def test_enough_waiting_prompts_enter_at_once(copy_of: PlaceCopy) -> None:
    eager = replace(TGI, waiting_served_ratio=1.0)
    copy = replace(copy_of(instance_type="ml.p4d.24xlarge", degree=8), engine=eager)
    first, second = sorted({request.first_token_s for request in simulate(copy, 32, AT_ONCE)})

    costs = costs_of(copy)
    one_step = costs.step(16) + costs.attention(16) * 16 * 257
    assert second - first == pytest.approx(costs.prefill(16, 256) + one_step, rel=0.01)


def test_the_kv_room_lets_a_second_wave_wait_for_the_first(copy_of: PlaceCopy) -> None:
    copy = copy_of()
    assert copy.kv_limited_batch == 28
    requests = simulate(copy, 56, AT_ONCE)

    first_end = min(request.last_token_s for request in requests)
    assert sum(request.first_token_s < first_end for request in requests) == 28


def test_chunks_never_stop_decoding(copy_of: PlaceCopy) -> None:
    mixed, stopped = (
        copy_of(engine=engine, input_tokens=2_000) for engine in (LMI, replace(LMI, scheduler="separate"))
    )
    slowest = [outcome(copy, 3, AT_ONCE).tpot_ms.max for copy in (mixed, stopped)]

    assert mixed.batched_tokens == 2_048
    assert all(tpot_ms > 0 for tpot_ms in slowest)


def test_a_prompt_longer_than_the_budget_takes_several_iterations(copy_of: PlaceCopy) -> None:
    copy = replace(copy_of(engine=LMI, input_tokens=2_000), batched_tokens=500)
    (request,) = simulate(copy, 1, AT_ONCE)

    costs = costs_of(copy)
    assert request.first_token_s >= 4 * costs.device(500)


@pytest.mark.parametrize("sliding_layers", [None, 8])
def test_a_window_that_the_prompt_fills_is_the_limit_of_one_that_it_nearly_fills(sliding_layers: int | None) -> None:
    def throughput(window: int) -> float:
        plain = placed()
        shape = replace(plain.architecture, sliding_window=window, sliding_layers=sliding_layers)
        return outcome(replace(plain, architecture=shape), 16, TOGETHER).output_tok_s

    prompt = placed().input_tokens

    assert throughput(prompt) == pytest.approx(throughput(prompt + 1), rel=0.002)
    assert throughput(prompt) < throughput(prompt // 2)


def test_speculation_needs_fewer_steps(copy_of: PlaceCopy) -> None:
    plain = copy_of()
    drafted = replace(plain, speculation=Speculation(draft_tokens=3, acceptance_rate=0.8, draft_cost=0.02))

    assert outcome(drafted, 1, AT_ONCE).tpot_ms.mean < 0.5 * outcome(plain, 1, AT_ONCE).tpot_ms.mean


def test_clients_start_one_by_one(copy_of: PlaceCopy) -> None:
    requests = simulate(copy_of(), 4, replace(PUBLISHED, requests_per_concurrency=1))

    assert sorted(request.sent_s for request in requests) == pytest.approx([0.0, 0.03, 0.06, 0.09])


def test_a_level_without_a_ramp_takes_its_whole_time(copy_of: PlaceCopy) -> None:
    whole = replace(TOGETHER, ramp_per_concurrency=0)
    requests = simulate(copy_of(), 8, whole)

    wall_s = max(request.last_token_s for request in requests)
    assert len(requests) == 3 * 8
    assert outcome(copy_of(), 8, whole).output_tok_s == pytest.approx(3 * 8 * 256 / wall_s)


def test_a_ramp_is_not_measured(copy_of: PlaceCopy) -> None:
    copy = copy_of()
    requests = sorted(simulate(copy, 8, TOGETHER), key=lambda request: request.sent_s)
    measured = [request.last_token_s - request.sent_s for request in requests[8:]]

    assert len(requests) == (1 + 3) * 8
    assert outcome(copy, 8, TOGETHER).e2e_latency_ms.mean == pytest.approx(1_000 * sum(measured) / len(measured))


def test_the_steady_window_of_a_client_alone_is_its_requests_but_the_last(copy_of: PlaceCopy) -> None:
    # the window opens with request 2 and closes with request 4, both answered at once: 2 answers of 256 tokens in it
    second, third, fourth = simulate(copy_of(), 1, TOGETHER)[1:]
    window_s = fourth.sent_s - second.sent_s

    assert third.last_token_s == pytest.approx(fourth.sent_s)
    assert outcome(copy_of(), 1, TOGETHER).output_tok_s == pytest.approx(2 * 256 / window_s)


def test_every_token_inside_the_window_counts_whosever_it_is(copy_of: PlaceCopy) -> None:
    copy = copy_of()
    requests = sorted(simulate(copy, 40, TOGETHER), key=lambda request: request.sent_s)
    opens, closes = requests[40].sent_s, requests[-1].sent_s
    tokens = sum(
        opens < at <= closes
        for request in requests
        for at in (
            request.first_token_s + token * (request.last_token_s - request.first_token_s) / 255 for token in range(256)
        )
    )

    assert copy.kv_limited_batch == 28  # so 12 of the ramp's requests wait, and are answered inside the window
    assert outcome(copy, 40, TOGETHER).output_tok_s == pytest.approx(tokens / (closes - opens), rel=0.005)


def test_a_level_too_short_for_a_window_takes_its_whole_time_with_the_ramp(copy_of: PlaceCopy) -> None:
    once = replace(TOGETHER, requests_per_concurrency=1)
    wall_s = max(request.last_token_s for request in simulate(copy_of(), 4, once))

    assert outcome(copy_of(), 4, once).output_tok_s == pytest.approx((1 + 1) * 4 * 256 / wall_s)


def test_steady_throughput_is_nearer_to_the_closed_form(copy_of: PlaceCopy) -> None:
    copy = copy_of()
    steady, whole = (outcome(copy, 64, replace(TOGETHER, ramp_per_concurrency=ramp)).output_tok_s for ramp in (1, 0))

    closed = predict_at(copy, 64).output_tok_s
    assert abs(steady / closed - 1) < abs(whole / closed - 1) < 0.03


def test_a_late_request_is_counted(copy_of: PlaceCopy) -> None:
    copy = copy_of(input_tokens=3_840)

    assert outcome(copy, 8, PUBLISHED, timeout_s=60).late == 0
    assert outcome(copy, 16, PUBLISHED, timeout_s=60).late > 0.5


def test_percentiles_are_in_order(copy_of: PlaceCopy) -> None:
    found = outcome(copy_of(), 64, TOGETHER).e2e_latency_ms

    assert found.p50 <= found.p90 <= found.p95 <= found.p99 <= found.max
    assert found.p50 < found.mean < found.max


@pytest.mark.parametrize("engine", [TGI, LMI], ids=["separate", "chunked"])
@pytest.mark.parametrize("concurrency", [1, 2, 8, 16, 28])
def test_both_forms_agree_in_the_steady_state(engine: engines.Engine, concurrency: int, copy_of: PlaceCopy) -> None:
    copy = copy_of(engine=engine)
    closed, simulated = predict_at(copy, concurrency), outcome(copy, concurrency, LONG)

    assert simulated.output_tok_s == pytest.approx(closed.output_tok_s, rel=0.08)
    assert simulated.e2e_latency_ms.mean == pytest.approx(closed.e2e_latency_ms, rel=0.08)


@settings(max_examples=60, deadline=None)
@given(
    concurrency=st.integers(1, 200),
    input_tokens=st.integers(1, 3_000),
    output_tokens=st.integers(1, 400),
    batched=st.integers(1, 8_192),
    scheduler=st.sampled_from(["separate", "chunked"]),
    max_num_seqs=st.integers(1, 300),
)
def test_every_request_is_answered_after_its_first_token(
    concurrency: int, input_tokens: int, output_tokens: int, batched: int, scheduler: str, max_num_seqs: int
) -> None:
    engine = TGI if scheduler == "separate" else LMI
    copy = replace(
        placed(
            instance_type="ml.p4d.24xlarge",
            degree=8,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            engine=engine,
        ),
        batched_tokens=batched,
        max_num_seqs=max_num_seqs,
    )
    requests = simulate(copy, concurrency, TOGETHER)

    assert len(requests) == (1 + 3) * concurrency
    alone = costs_of(copy).device(1)
    for request in requests:
        assert request.sent_s < request.first_token_s <= request.last_token_s
        assert request.first_token_s - request.sent_s >= TOGETHER.round_trip_s + alone - 1e-9
    assert sorted(requests, key=lambda request: request.last_token_s) == requests
