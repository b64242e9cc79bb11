from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.workload import exact_text, token_count
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("tokens", [2, 3, 7, 64, 512, 2048])
def test_a_text_has_exactly_as_many_tokens_as_were_asked_for(tokenizer_file: Path, tokens: int) -> None:
    count = token_count(tokenizer_file)
    assert count(exact_text(count, tokens, "seed")) == tokens


def test_the_same_seed_gives_the_same_text_another_one_another_beginning(tokenizer_file: Path) -> None:
    count = token_count(tokenizer_file)
    texts = {exact_text(count, 256, seed) for seed in ("one", "two", "one")}
    beginnings = {text[:24] for text in texts}
    assert (len(texts), len(beginnings)) == (2, 2)


@given(
    tokens=st.integers(min_value=10, max_value=400),
    letters_per_token=st.integers(min_value=1, max_value=12),
    special=st.integers(min_value=0, max_value=3),
)
def test_any_tokenizer_of_equal_pieces_is_met_exactly(tokens: int, letters_per_token: int, special: int) -> None:
    """Each run of so many letters is a token, and so is what is left: words merge over their borders."""

    def count(text: str) -> int:
        return special + -(-len(text) // letters_per_token)

    assert count(exact_text(count, tokens, "seed")) == tokens


def test_a_length_that_special_tokens_alone_exceed() -> None:
    with pytest.raises(BenchError) as caught:
        exact_text(lambda text: 5 + len(text.split()), 3, "seed")
    assert str(caught.value) == (
        "tokenizer: SEA509: no text of exactly 3 tokens exists: an empty text has 5 with this tokenizer"
    )


def test_a_tokenizer_that_counts_in_pairs_meets_no_odd_number() -> None:
    with pytest.raises(BenchError, match="no text of exactly 7 tokens exists"):
        exact_text(lambda text: 2 * len(text.split()), 7, "seed")


def test_a_tokenizer_that_counts_nothing_ends_the_search() -> None:
    with pytest.raises(BenchError, match="no text of exactly 16 tokens exists"):
        exact_text(lambda _text: 0, 16, "seed")
