"""How requests make conversations: what a prompt holds, how many turns there are, what an endpoint saw before."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest

from seatrial_load.documents.request import Workload
from seatrial_load.measure.lengths import Conversations, cached_share, conversations_of, request_lengths


def asked(**changes: object) -> Conversations:
    fields: dict[str, object] = {
        "input_tokens": 100,
        "output_tokens": 20,
        "schema": "openai_chat",
        "turns": 4,
        **changes,
    }
    found = conversations_of(Workload(**fields))  # type: ignore[arg-type]  # keywords of any type
    assert found is not None
    return found


def test_a_prompt_holds_what_was_said_before() -> None:
    """100 tokens a turn, 20 an answer."""
    assert asked().prompts(0, 4) == (100, 220, 340, 460)


def test_an_endpoint_gets_every_turn() -> None:
    lengths = request_lengths(asked())
    assert (lengths.input.mean, lengths.output.mean, lengths.longest) == (280, 20, 480)


def test_of_a_prompt_all_but_what_its_turn_adds_was_seen_before() -> None:
    """Of 1,120 tokens of four prompts, 400 are new; 50 of the first are shared."""
    assert cached_share(asked(), 0) == pytest.approx(1 - 400 / 1120)
    assert cached_share(asked(), 50) == pytest.approx(1 - 350 / 1120)


def test_turns_have_mean_and_deviation() -> None:
    conversations = asked(turns=8, turns_stddev=3.0)
    turns = [conversations.turns_of(number) for number in range(64)]
    assert fmean(turns) == pytest.approx(8, rel=0.05)
    assert pstdev(turns) == pytest.approx(3, rel=0.1)
    assert min(turns) >= 1


def test_users_think_as_long_as_was_asked() -> None:
    conversations = asked(turn_delay_s=10.0, turn_delay_stddev_s=3.0)
    delays = [conversations.delay_before(row) for row in range(64)]
    assert fmean(delays) == pytest.approx(10, rel=0.05)
    assert pstdev(delays) == pytest.approx(3, rel=0.1)
    assert {asked(turn_delay_s=2.0).delay_before(row) for row in range(9)} == {2.0}


def test_the_first_conversations_have_one_turn_two_and_so_on() -> None:
    assert [asked().warming(number) for number in range(6)] == [1, 2, 3, 4, 1, 2]


def test_those_of_a_file_are_taken_in_order() -> None:
    conversations = asked(turns=1, lengths=((10, 1), (20, 2), (30, 3)), conversations=(1, 2), delays_s=(0.0, 0.0, 5.0))
    assert [conversations.turns_of(number) for number in range(4)] == [1, 2, 1, 2]
    assert conversations.prompts(1, 2) == (20, 52)
    assert [conversations.delay_before(row) for row in range(4)] == [0.0, 0.0, 5.0, 0.0]
    assert request_lengths(conversations).pairs == ((10, 1), (20, 2), (52, 3))


def test_single_requests_are_no_conversations() -> None:
    assert conversations_of(Workload(input_tokens=1, output_tokens=1, schema="lmi")) is None


def test_cached_turns_are_as_much_to_compute_however_long_the_conversation_is() -> None:
    lengths = request_lengths(asked())
    assert {lengths.longer(row, cached=True) for row in range(8)} == {0}
    assert {lengths.longer(row, cached=False) for row in range(256)} == {-180, -60, 60, 180}
