from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.measure.lengths import RequestLengths, TokenLengths
from seatrial_load.prompts.synthetic import FIRST_WORDS_PER_TOKEN, WORDS, SyntheticPrompts, calibrated

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.decode.response import RequestRecord


def fixed(tokens_in: int, tokens_out: int) -> RequestLengths:
    return RequestLengths(input=TokenLengths(mean=tokens_in), output=TokenLengths(mean=tokens_out))


def prompts(tokens_in: int = 16, **changes: object) -> SyntheticPrompts:
    fields = {"seed": "seed", "lengths": fixed(tokens_in, 64), **changes}
    return SyntheticPrompts(**fields)  # type: ignore[arg-type]  # a maker for tests: keywords of any type


def common_words(one: str, other: str) -> int:
    pairs = zip(one.split(), other.split(), strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), len(one.split()))


def test_a_prompt_has_as_many_words_as_tokens_and_is_the_same_for_the_same_seed() -> None:
    assert len(prompts(500).content(3).split()) == 500
    assert prompts(500).content(3) == prompts(500).content(3)


def test_prompts_of_a_trial_and_of_the_next_share_no_beginning() -> None:
    beginnings = {
        " ".join(prompts(64, seed=seed).content(index).split()[:8]) for seed in ("one", "two") for index in range(500)
    }
    assert len(beginnings) == 1000


@pytest.mark.parametrize("count", [16, 27, 255, 256, 560, 1024])
def test_prompts_of_one_length_are_the_same_words_in_different_orders(count: int) -> None:
    """So that they are as many tokens, however a tokenizer cuts them."""
    drawn = [prompts(count, seed=seed).content(index).split() for seed in ("one", "two") for index in range(50)]
    assert len({tuple(sorted(each)) for each in drawn}) == 1
    assert len({tuple(each) for each in drawn}) == 100


@pytest.mark.parametrize("count", [1, 8, 15])
def test_the_shortest_prompts_have_words_of_their_own(count: int) -> None:
    drawn = {prompts(count).content(index) for index in range(100)}
    assert len(drawn) > 50


def test_the_whole_list_comes_in_another_order_each_time() -> None:
    drawn = prompts(5 * len(WORDS)).content(0).split()
    rounds = [tuple(drawn[start : start + len(WORDS)]) for start in range(0, len(drawn), len(WORDS))]
    assert len(set(rounds)) == 5
    assert {tuple(sorted(each)) for each in rounds} == {tuple(sorted(WORDS))}


@pytest.mark.parametrize("tokens", [100, 256, 1000])
def test_no_prompt_of_2000_trials_is_more_than_a_few_percent_longer_than_is_wanted(
    record: Callable[..., RequestRecord], tokens: int
) -> None:
    """One of 15 trials had a prompt that its endpoint refused: 1,059 tokens of 1,000, by a vocabulary of 2,048."""

    def counted(source: SyntheticPrompts, index: int) -> int:
        return 13 + sum(-(-len(word) // 3) for word in source.content(index).split())

    longest = 0
    for trial in range(2000):
        source = prompts(tokens, seed=f"0123456789abcdef:{trial}", words_per_token=FIRST_WORDS_PER_TOKEN)
        for first, last in ((0, 1), (1, 3)):
            told = [record(index=index, input_tokens=counted(source, index)) for index in range(first, last)]
            ratio = calibrated(source.words_per_token, told, source.input_tokens)
            assert ratio is not None
            source = replace(source, words_per_token=ratio)
        longest = max(longest, counted(source, 3), counted(source, 4))
    assert tokens * 0.98 < longest < tokens * 1.03


def test_lengths_are_those_of_the_workload() -> None:
    assert (prompts(16).input_tokens(7), prompts(16).output_tokens(7)) == (16, 64)


@pytest.mark.parametrize(("ratio", "count"), [(0.75, 75), (1.25, 125), (0.001, 1)])
def test_the_words_per_token_scale_the_words(ratio: float, count: int) -> None:
    assert len(prompts(100, words_per_token=ratio).content(0).split()) == count


def test_a_shared_prefix_is_that_of_the_whole_trial() -> None:
    source = prompts(100, shared_prefix_tokens=80)
    assert {common_words(source.content(0), source.content(index)) for index in range(1, 9)} == {80}
    assert {len(source.content(index).split()) for index in range(9)} == {100}


def test_groups_are_taken_in_turn_and_share_nothing_with_each_other() -> None:
    source = prompts(100, shared_prefix_tokens=80, prefix_groups=3)
    shared = [common_words(source.content(0), source.content(index)) for index in range(1, 7)]
    assert shared == [0, 0, 80, 0, 0, 80]


def test_another_trial_has_another_shared_prefix() -> None:
    one, other = (prompts(100, seed=seed, shared_prefix_tokens=80) for seed in ("one", "two"))
    assert common_words(one.content(0), other.content(0)) == 0


def test_a_prompt_that_is_no_longer_than_the_prefix_keeps_a_word_of_its_own() -> None:
    source = prompts(16, shared_prefix_tokens=16)
    assert common_words(source.content(0), source.content(1)) == 15


@given(
    tokens=st.integers(min_value=1, max_value=300),
    share=st.floats(min_value=0, max_value=1),
    ratio=st.floats(min_value=0.1, max_value=4),
    index=st.integers(min_value=0, max_value=1000),
)
def test_a_shared_prefix_never_changes_the_length(tokens: int, share: float, ratio: float, index: int) -> None:
    shared = round(tokens * share)
    source = prompts(tokens, words_per_token=ratio, shared_prefix_tokens=shared, prefix_groups=2)
    assert len(source.content(index).split()) == max(1, round(tokens * ratio))


def test_the_endpoints_own_count_calibrates(record: Callable[..., RequestRecord]) -> None:
    """100 tokens were wanted, 125 counted: 0.8 words make a token."""
    records = [record(input_tokens=120), record(input_tokens=130), record(input_tokens=None)]
    assert calibrated(1.0, records, prompts(100).input_tokens) == pytest.approx(0.8)


def test_calibration_goes_on_from_the_ratio_that_the_requests_were_written_with(
    record: Callable[..., RequestRecord],
) -> None:
    assert calibrated(0.8, [record(input_tokens=80)], prompts(100).input_tokens) == pytest.approx(1.0)


@pytest.mark.parametrize("counted", [None, 0])
def test_without_a_count_nothing_is_calibrated(record: Callable[..., RequestRecord], counted: int | None) -> None:
    assert calibrated(1.0, [record(input_tokens=counted)], prompts(100).input_tokens) is None


@given(tokens_per_word=st.floats(min_value=0.5, max_value=5), template=st.integers(min_value=0, max_value=30))
def test_a_calibrated_prompt_is_nearer_to_its_length(
    record: Callable[..., RequestRecord], tokens_per_word: float, template: int
) -> None:
    """An endpoint that counts so many tokens a word, and a template of its own."""

    def counted(source: SyntheticPrompts) -> int:
        return template + round(tokens_per_word * len(source.content(0).split()))

    first = prompts(1000)
    ratio = calibrated(1.0, [record(input_tokens=counted(first))], first.input_tokens)
    assert ratio is not None
    second = prompts(1000, words_per_token=ratio)
    assert abs(counted(second) - 1000) <= max(abs(counted(first) - 1000), 6)


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({}, 100),
        ({"shared_prefix_tokens": 60}, 40),
        ({"shared_prefix_tokens": 300}, 1),
        ({"words_per_token": 0.5}, 50),  # a word may be one token, and not two
        ({"words_per_token": 2.0}, 100),  # two words are one token
        ({"words_per_token": 0.5, "shared_prefix_tokens": 60}, 20),
    ],
)
def test_so_many_tokens_at_least_are_a_prompts_own(changes: dict[str, object], own: int) -> None:
    source = prompts(100, **changes)
    assert source.own_tokens(3) == own
    shared = common_words(source.content(3), source.content(4))
    assert own <= (len(source.content(3).split()) - shared + 2)  # two first words may be the same by chance
