"""Lengths that differ: what they cost in KV cache, and what they add to the latencies."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.memory import sequences_held
from seatrial.planner.predict.simulation import TRIAL, outcome
from seatrial_load.measure.lengths import RequestLengths, normal_lengths, paired_lengths
from tests.planner.predict.conftest import placed

ALIKE = replace(placed(), max_num_seqs=64)


def spread(prompt: float, answer: float) -> RequestLengths:
    return normal_lengths(input_tokens=256, output_tokens=256, input_tokens_stddev=prompt, output_tokens_stddev=answer)


def test_sequences_of_one_length_are_what_the_room_holds() -> None:
    assert sequences_held(10_000, 300) == 33


def test_sequences_that_differ_leave_a_margin() -> None:
    """n x 300 + 1.645 x 150 x sqrt(n) <= 10,000: 29 x 300 + 1,329 = 10,029 is too much, 28 is not."""
    assert sequences_held(10_000, 300, 150) == 28


@given(room=st.floats(1_000, 1e7), tokens=st.floats(10, 1_000), share=st.floats(0.01, 1))
def test_the_sum_of_the_sequences_fits_with_its_margin(room: float, tokens: float, share: float) -> None:
    stddev = share * tokens
    held = sequences_held(room, tokens, stddev)

    def needed(sequences: int) -> float:
        return sequences * tokens + 1.645 * stddev * math.sqrt(sequences)

    assert needed(held) <= room * (1 + 1e-9) < needed(held + 1) * (1 + 1e-6)
    assert held <= room / tokens


def test_lengths_that_differ_need_more_of_the_cache() -> None:
    """Long answers run longer, so that more of the running requests are long ones."""
    varied = replace(ALIKE, lengths=spread(100, 120))
    assert varied.running_output_tokens == pytest.approx(256 * (1 + (120 / 256) ** 2))
    assert varied.tokens_reserved > ALIKE.tokens_reserved
    assert varied.kv_limited_batch < ALIKE.kv_limited_batch


def test_prompts_alone_that_differ_need_a_margin_only() -> None:
    varied = replace(ALIKE, lengths=spread(100, 0))
    assert varied.tokens_reserved == ALIKE.tokens_reserved
    assert varied.kv_limited_batch < ALIKE.kv_limited_batch


def test_long_answers_show_in_the_high_percentiles_and_not_in_the_median() -> None:
    alike, varied = (outcome(copy, 16, TRIAL) for copy in (ALIKE, replace(ALIKE, lengths=spread(0, 64))))
    assert varied.e2e_latency_ms.p95 > 1.2 * alike.e2e_latency_ms.p95
    assert varied.e2e_latency_ms.p50 == pytest.approx(alike.e2e_latency_ms.p50, rel=0.15)
    assert varied.output_tok_s == pytest.approx(alike.output_tok_s, rel=0.05)


def test_prompts_that_come_one_by_one_stop_the_others_more_often() -> None:
    """Requests of one length that begin together end and prefill together; TGI stops decoding for each prefill."""
    together = replace(TRIAL, start="together")
    alike, varied = (outcome(copy, 16, together) for copy in (ALIKE, replace(ALIKE, lengths=spread(0, 64))))
    assert alike.tpot_ms.p95 < varied.tpot_ms.p95 < 1.3 * alike.tpot_ms.p95
    assert varied.ttft_ms.p95 < alike.ttft_ms.p95


def test_long_prompts_show_in_the_time_to_first_token() -> None:
    alike, varied = (outcome(copy, 1, TRIAL) for copy in (ALIKE, replace(ALIKE, lengths=spread(100, 0))))
    assert varied.ttft_ms.max > 1.1 * alike.ttft_ms.max
    assert varied.e2e_latency_ms.mean == pytest.approx(alike.e2e_latency_ms.mean, rel=0.05)


def test_counted_lengths_are_taken_as_the_trial_takes_them() -> None:
    """Half of the answers are short and half are long: so are those of a single client, whose mean is as before."""
    copy = replace(ALIKE, lengths=paired_lengths([(256, 12), (256, 500)]))
    alike, counted = outcome(ALIKE, 1, TRIAL).e2e_latency_ms, outcome(copy, 1, TRIAL).e2e_latency_ms
    assert counted.mean == pytest.approx(alike.mean, rel=0.05)
    assert counted.p95 == pytest.approx(alike.mean * 500 / 256, rel=0.05)
