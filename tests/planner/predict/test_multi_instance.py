# ruff: noqa: S311 (chance with a seed, in the reference that the model is held against)
from __future__ import annotations

import math
import random
from bisect import bisect_right, insort
from collections import deque
from itertools import combinations_with_replacement, product
from statistics import mean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.simulation import PUBLISHED
from seatrial.planner.tables.predictions import copy_of, predict_csv_row
from seatrial.planner.tables.rows import RowSpec
from seatrial.planner.tables.steady import InstanceLevel, even_split, fleet, product_form, rising
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.tables.predictions import Form


def level(rates: Sequence[float], load: int) -> InstanceLevel:
    latency = load / rates[min(load, len(rates)) - 1]
    return InstanceLevel(output_tok_s=rates[min(load, len(rates)) - 1], ms_per_token=latency * 1e3, longest_s=latency)


def solved_step_by_step(rates: Sequence[float], concurrency: int, stations: int) -> float:
    """Throughput of the Markov chain itself: its states are the loads of the stations, its steps single answers."""
    states = [state for state in product(range(concurrency + 1), repeat=stations) if sum(state) == concurrency]
    share = dict.fromkeys(states, 1 / len(states))
    pause = 1 / (stations * max(rates) * 1.1)
    for _ in range(4_000):
        following = dict.fromkeys(states, 0.0)
        for state, weight in share.items():
            stays = 1.0
            for source in (station for station in range(stations) if state[station]):
                leaves = rates[state[source] - 1] * pause
                stays -= leaves
                for target in range(stations):
                    moved = list(state)
                    moved[source] -= 1
                    moved[target] += 1
                    following[tuple(moved)] += weight * leaves / stations
            following[state] += weight * stays
        share = following
    return sum(weight * sum(rates[load - 1] for load in state if load) for state, weight in share.items())


class TestProductForm:
    @pytest.mark.parametrize(("concurrency", "stations"), [(1, 3), (4, 2), (4, 3), (6, 2)])
    def test_it_is_the_steady_state_of_the_markov_chain(self, concurrency: int, stations: int) -> None:
        rates = (30.0, 55.0, 75.0, 80.0, 80.0, 80.0)[:concurrency]

        exact = solved_step_by_step(rates, concurrency, stations)

        assert product_form(rates, concurrency, stations).throughput == pytest.approx(exact, rel=1e-6)

    @given(st.integers(1, 300), st.integers(2, 20))
    def test_saturated_stations_idle_when_chance_leaves_them_empty(self, concurrency: int, stations: int) -> None:
        # every composition of C over n stations is equally likely, so a station is busy with C / (C + n - 1)
        found = product_form((80.0,) * concurrency, concurrency, stations)

        assert found.throughput == pytest.approx(stations * 80 * concurrency / (concurrency + stations - 1))

    @given(st.integers(1, 300), st.integers(2, 20))
    def test_stations_that_never_slow_down_lose_nothing(self, concurrency: int, stations: int) -> None:
        rates = tuple(30.0 * load for load in range(1, concurrency + 1))
        found = product_form(rates, concurrency, stations)

        assert found.throughput == pytest.approx(30 * concurrency)
        assert found.deviation == pytest.approx((concurrency / stations * (1 - 1 / stations)) ** 0.5)

    def test_a_thousand_requests_neither_overflow_nor_vanish(self) -> None:
        rates = tuple(min(30.0 * load, 6_000.0) for load in range(1, 2_001))

        assert 11_000 < product_form(rates, 2_000, 2).throughput < 12_000


class TestFleet:
    def test_one_instance_is_that_instance(self) -> None:
        rates = (30.0, 55.0, 75.0)

        assert fleet(lambda load: level(rates, load), concurrency=3, instances=1, requests_per_client=3) == level(
            rates, 3
        )

    def test_a_single_request_has_an_instance_for_itself(self) -> None:
        found = fleet(lambda load: level((30.0, 55.0), load), concurrency=1, instances=4, requests_per_client=3)

        assert found.output_tok_s == pytest.approx(30)
        assert found.ms_per_token == pytest.approx(1e3 / 30)

    def test_least_outstanding_routing_deals_requests_out_evenly(self) -> None:
        rates = (30.0, 55.0, 75.0)
        found = fleet(
            lambda load: level(rates, load),
            concurrency=5,
            instances=2,
            requests_per_client=3,
            routing="least_outstanding",
        )

        assert found.output_tok_s == 75 + 55
        assert found.ms_per_token == pytest.approx(3 / 75 * 1e3)

    def test_chance_costs_throughput_and_latency(self) -> None:
        rates = (30.0, 55.0, 75.0, 80.0)
        alike = even_split(lambda load: level(rates, load), 16, 4)
        found = fleet(lambda load: level(rates, load), concurrency=16, instances=4, requests_per_client=3)

        assert 0.65 * alike.output_tok_s < found.output_tok_s < alike.output_tok_s
        assert found.ms_per_token > alike.ms_per_token

    def test_a_rate_never_falls(self) -> None:
        rates = (30.0, 55.0, 75.0, 50.0)

        assert rising(lambda load: rates[load - 1], 4, 4.0) == (30.0, 55.0, 55.0, 55.0)


def asked(instance_count: int, concurrency: int) -> RowSpec:
    architecture, instance = find_model("meta-llama/Llama-2-7b-hf"), find_instance("ml.g5.2xlarge")
    assert architecture is not None
    assert instance is not None
    return RowSpec(
        architecture=architecture,
        engine=find_engine("tgi", "1.1"),
        engine_version="1.1",
        instance=instance,
        degree=1,
        instance_count=instance_count,
        copies_per_instance=1,
        input_tokens=256,
        output_tokens=256,
        concurrency=concurrency,
        max_num_seqs=0,
        batching="continuous",
        batch_size=1,
        max_batch_delay_ms=100,
        quantization=None,
    )


def throughput(instance_count: int, concurrency: int, form: Form) -> float:
    found = predict_csv_row(asked(instance_count, concurrency), form).output_tok_s
    assert found is not None
    return found


@given(st.integers(1, 15), st.integers(1, 400))
def test_throughput_never_falls_when_an_instance_is_added(count: int, concurrency: int) -> None:
    assert throughput(count + 1, concurrency, "closed") >= throughput(count, concurrency, "closed") * (1 - 1e-9)


@pytest.mark.parametrize(
    ("count", "fewer"),
    [(more, fewer) for fewer, more in combinations_with_replacement([1, 2, 4, 8], 2) if more > fewer],
)
def test_nor_does_it_when_it_is_simulated(count: int, fewer: int) -> None:
    for concurrency in (1, 4, 16, 64, 256):
        assert throughput(count, concurrency, "simulation") >= throughput(fewer, concurrency, "simulation") * 0.975


class Engine:
    """One instance that takes a decode step at a time, with the costs and the admission rule of the predictions."""

    def __init__(self, copy: Copy) -> None:
        self.copy, self.costs = copy, costs_of(copy)
        self.now, self.step, self.waited, self.context = 0.0, 0, 0, 0
        self.arrivals: list[float] = []
        self.running: deque[tuple[float, int]] = deque()  # arrival, and the step at which it ends

    @property
    def due(self) -> float:
        if self.running:
            return self.now
        return max(self.now, self.arrivals[0]) if self.arrivals else math.inf

    def advance(self) -> list[float]:
        """Admit what may enter, take a step, and return the arrivals of the requests that end."""
        self.now = self.due
        rule, running = self.copy.engine, len(self.running)
        prompts = min(
            bisect_right(self.arrivals, self.now), self.copy.prompts_per_prefill, self.copy.most_running - running
        )
        timely = not running or self.waited >= rule.steps_between_prefills
        if prompts > 0 and (timely or prompts >= math.floor(running * rule.waiting_served_ratio)):
            self.now += self.costs.prefill(prompts, self.copy.input_tokens)
            entering, self.arrivals = self.arrivals[:prompts], self.arrivals[prompts:]
            self.running += [(arrival, self.step + self.copy.decode_steps) for arrival in entering]
            self.context += prompts * (self.copy.input_tokens + 1)
            self.waited = 1
        batch = len(self.running)
        self.now += self.costs.step(batch) + self.context * self.costs.attention(batch)
        self.step, self.waited, self.context = self.step + 1, self.waited + 1, self.context + batch
        ended = []
        while self.running and self.running[0][1] == self.step:
            ended.append(self.running.popleft()[0])
            self.context -= self.copy.input_tokens + 1 + self.copy.decode_steps
        return ended


def routed(copy: Copy, concurrency: int, count: int, seed: int) -> tuple[float, float]:
    """Route every request to an instance by chance; return output tokens per second and p90 ms per token."""
    chance, half = random.Random(seed), PUBLISHED.round_trip_s / 2
    every = [Engine(copy) for _ in range(count)]
    total = concurrency * PUBLISHED.requests_per_concurrency
    unsent = total - concurrency
    for client in range(concurrency):
        insort(chance.choice(every).arrivals, half + client * PUBLISHED.stagger_s)
    waits: list[float] = []
    while len(waits) < total:
        engine = min(every, key=lambda one: one.due)
        for arrival in engine.advance():
            waits.append(engine.now - arrival + 2 * half)
            if unsent:
                insort(chance.choice(every).arrivals, engine.now + 2 * half)
                unsent -= 1
    wall_s = max(engine.now for engine in every) + half
    late = sorted(waits)[math.ceil(0.9 * total) - 1]
    return total * copy.output_tokens / wall_s, late / copy.output_tokens * 1e3


@pytest.mark.parametrize(("count", "concurrency"), [(2, 16), (2, 128), (4, 64), (4, 128), (8, 64)])
def test_it_is_near_a_simulation_of_every_request(count: int, concurrency: int) -> None:
    row = asked(count, concurrency)
    found = predict_csv_row(row)
    runs = [routed(copy_of(row), concurrency, count, seed) for seed in range(4)]

    assert found.output_tok_s == pytest.approx(mean(tok_s for tok_s, _ in runs), rel=0.1)
    assert found.ms_per_token == pytest.approx(mean(latency for _, latency in runs), rel=0.12)


def test_a_fleet_of_one_is_the_simulation_of_an_instance() -> None:
    found = predict_csv_row(asked(1, 32))

    tok_s, late = routed(copy_of(asked(1, 32)), 32, 1, seed=0)

    assert found.output_tok_s == pytest.approx(tok_s, rel=0.02)
    assert found.ms_per_token == pytest.approx(late, rel=0.02)
