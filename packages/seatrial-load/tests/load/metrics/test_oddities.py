from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.metrics.counts import MOST_KEPT, added_oddities, doubts_of, oddities_of
from seatrial_load.metrics.level import level_of_records
from seatrial_load.metrics.request_metrics import FASTEST_TPOT_MS, is_burst

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.decode.response import RequestRecord

    MakeRecord = Callable[..., RequestRecord]


def test_shares_add_up_to_the_whole(record: MakeRecord) -> None:
    early = [record(doubts=("ended_early",)) for _ in range(3)]
    canned = [record(text_digest=7) for _ in range(9)]
    named = [record(other_model="tiny"), record(other_model="tiny"), record(other_model="small")]
    every = [*early, *canned, *named]
    shares = [oddities_of(every[part::4]) for part in range(4)]
    assert added_oddities(shares) == oddities_of(every)
    assert [(doubt.kind, doubt.answers, doubt.of) for doubt in doubts_of(added_oddities(shares))] == [
        ("ended_early", 3, 15), ("same_text", 9, 15), ("other_model", 3, 15)
    ]  # fmt: skip


def test_a_share_keeps_few_names_and_texts(record: MakeRecord) -> None:
    odd = oddities_of([record(other_model=f"m{number}", text_digest=number) for number in range(100)])
    assert (len(odd.models), len(odd.texts)) == (MOST_KEPT, MOST_KEPT)


@pytest.mark.parametrize(("canned", "told"), [(3, ()), (4, ("same_text",))])
def test_a_few_answers_of_the_same_text_are_chance(record: MakeRecord, canned: int, told: tuple[str, ...]) -> None:
    odd = oddities_of([*(record(text_digest=7) for _ in range(canned)), record(text_digest=8)])
    assert tuple(doubt.kind for doubt in doubts_of(odd)) == told


def test_nothing_answered_is_nothing_odd() -> None:
    assert doubts_of(oddities_of([])) == ()


@pytest.mark.parametrize(("per_token_ms", "burst"), [(FASTEST_TPOT_MS * 0.99, True), (FASTEST_TPOT_MS * 1.01, False)])
def test_no_time_per_token_comes_from_answers_half_of_which_arrived_at_one_instant(
    record: MakeRecord, per_token_ms: float, *, burst: bool
) -> None:
    last_s = 10.2 + 3 * per_token_ms / 1e3
    fast = record(token_times_s=(10.2, last_s), last_token_s=last_s)
    assert is_burst(fast) == burst
    assert (level_of_records(4, [fast, record()], ()).tpot_ms is None) == burst
    assert level_of_records(4, [fast, record(), record()], ()).tpot_ms is not None


def test_an_answer_that_is_fast_as_a_whole_hides_nothing(record: MakeRecord) -> None:
    at_once = {"token_times_s": (10.019,), "first_token_s": 10.019, "last_token_s": 10.019}
    assert not is_burst(record(**at_once))  # 19 ms for four tokens
    assert is_burst(record(**at_once, sent_s=9.99))


def test_a_local_engine_shares_its_cores_with_the_client_and_makes_no_bursts(record: MakeRecord) -> None:
    at_once = {"token_times_s": (10.5,) * 4, "first_token_s": 10.5, "last_token_s": 10.5, "output_tokens": 4}
    local = record(**at_once, engine="small random model")
    assert (is_burst(record(**at_once)), is_burst(local)) == (True, False)
    level = level_of_records(4, [local, local], ())
    assert level.tpot_ms is not None
    assert level.tpot_ms.p95 == 0.0


def test_an_answer_of_one_token_or_none_that_streamed_is_no_burst(record: MakeRecord) -> None:
    assert not is_burst(record(output_tokens=1, token_times_s=(10.2,), last_token_s=10.2))
    assert not is_burst(record(first_token_s=None, token_times_s=(), last_token_s=11.0))
    assert not is_burst(record(output_tokens=None))
