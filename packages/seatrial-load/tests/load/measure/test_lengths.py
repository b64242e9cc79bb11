"""How long prompts and answers are: moments, bounds, the same again, and that one block has the whole distribution."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.bounds import wrong_stddev
from seatrial_load.documents.request import Workload
from seatrial_load.measure.lengths import BLOCK, TokenLengths, lengths_of, paired_lengths

CHAT = Workload(
    input_tokens=550, output_tokens=150, schema="openai_chat", input_tokens_stddev=150.0, output_tokens_stddev=50.0
)
MEANS = st.integers(min_value=20, max_value=200_000)
SHARES = st.floats(min_value=0.01, max_value=1.0)


def lengths(mean: int, of_widest: float) -> TokenLengths:
    return TokenLengths(mean=mean, stddev=of_widest * (mean - 1) / 2)


@given(mean=MEANS, of_widest=SHARES)
def test_mean_and_deviation_are_those_asked_for(mean: int, of_widest: float) -> None:
    """Over 1,000 evenly spaced shares; whole tokens move the deviation by less than a third."""
    asked = lengths(mean, of_widest)
    drawn = [asked.at((place + 0.5) / 1_000) for place in range(1_000)]
    assert fmean(drawn) == pytest.approx(mean, rel=1e-3, abs=0.01)
    assert pstdev(drawn) == pytest.approx(asked.stddev, rel=0.02, abs=1 / 3)


@given(mean=MEANS, of_widest=SHARES, share=st.floats(min_value=0, max_value=1))
def test_no_length_is_further_than_three_deviations_or_below_one(mean: int, of_widest: float, share: float) -> None:
    asked = lengths(mean, of_widest)
    assert max(1, mean - 3 * asked.stddev - 1) <= asked.at(share) <= mean + 3 * asked.stddev + 1
    assert asked.shortest <= asked.at(share) <= asked.longest


def test_lengths_without_a_deviation_are_one_length() -> None:
    assert {TokenLengths(mean=550).at(share) for share in (0.0, 0.05, 0.5, 0.95, 1.0)} == {550}


def test_the_percentiles_of_a_normal_distribution() -> None:
    """1.645 deviations above the mean lie 95 %; what the bounds cut off moves it by less than one percent."""
    assert TokenLengths(mean=4_000, stddev=400).at(0.95) == pytest.approx(4_000 + 1.645 * 400, rel=0.01)


def test_the_same_request_has_the_same_length_every_time() -> None:
    assert [lengths_of(CHAT).of(row) for row in range(100)] == [lengths_of(CHAT).of(row) for row in range(100)]


def test_the_first_requests_of_every_trial_ever() -> None:
    """These numbers hold from release to release: another draw makes two trials incomparable in silence."""
    assert [lengths_of(CHAT).of(row) for row in range(4)] == [(483, 109), (516, 178), (552, 119), (759, 125)]


@pytest.mark.parametrize("block", range(3))
def test_each_block_has_the_whole_distribution(block: int) -> None:
    rows = [lengths_of(CHAT).of(row) for row in range(block * BLOCK, (block + 1) * BLOCK)]
    assert fmean(prompt for prompt, _ in rows) == pytest.approx(550, rel=0.02)
    assert fmean(answer for _, answer in rows) == pytest.approx(150, rel=0.02)
    assert pstdev(prompt for prompt, _ in rows) == pytest.approx(150, rel=0.06)


def test_prompts_and_answers_do_not_hang_together() -> None:
    """Over 6,400 requests; the correlation of independent ones has a deviation of 0.0125."""
    rows = [lengths_of(CHAT).of(row) for row in range(6_400)]
    moment = fmean((prompt - 550) * (answer - 150) for prompt, answer in rows)
    assert abs(moment / (150 * 50)) < 0.05


def test_neighbours_do_not_hang_together() -> None:
    prompts = [lengths_of(CHAT).of(row)[0] for row in range(6_400)]
    moment = fmean((one - 550) * (other - 550) for one, other in pairwise(prompts))
    assert abs(moment / 150**2) < 0.08


def test_counted_lengths_stay_together_and_each_is_taken_once_a_turn() -> None:
    pairs = ((10, 100), (20, 200), (30, 300), (40, 400))
    counted = lengths_of(Workload(input_tokens=25, output_tokens=250, schema="lmi", lengths=pairs))
    turns = [[counted.of(row) for row in range(first, first + 4)] for first in (0, 4, 8)]
    assert [sorted(turn) for turn in turns] == [list(pairs)] * 3
    assert turns[0] != turns[1] or turns[1] != turns[2]


def test_counted_lengths_tell_their_moments() -> None:
    counted = paired_lengths([(10, 100), (20, 100), (30, 400)])
    assert (counted.input.mean, counted.output.mean) == (20, 200)
    assert counted.input.stddev == pytest.approx(math.sqrt(200 / 3))
    assert (counted.input.at(0.5), counted.output.longest, counted.longest) == (20, 400, 430)


def test_the_longest_request_of_a_distribution() -> None:
    """Three deviations above the mean, 550 + 3 x 150; an answer is no more above its mean than it can be below: 149."""
    assert lengths_of(CHAT).longest == (550 + 450) + (150 + 149)


@pytest.mark.parametrize(
    ("mean", "stddev", "is_wrong"), [(101, 50, False), (101, 50.1, True), (1, 0, False), (9, -1, True)]
)
def test_a_deviation_of_more_than_half_the_mean_is_no_distribution(mean: int, stddev: float, is_wrong: bool) -> None:  # noqa: FBT001
    assert bool(wrong_stddev(mean, stddev)) is is_wrong
