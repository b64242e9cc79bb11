"""Turns that wait for the answers before them: order, think time, failures, the prompts that come of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from seatrial_load.client.event_loop import RecordedTurns, Wave, WaveConversations, run_wave
from seatrial_load.client.request_writer import PREFIX_HEADER, conversation, request_writer
from seatrial_load.decode.exchange import Exchange, Inbox
from seatrial_load.decode.response import answer_text
from seatrial_load.documents.request import TrialTarget, Workload
from seatrial_load.prompts.choose import prompts_of
from tests.load.client.test_loop import OK, Answering, FastClock, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.client.event_loop import WaveResult

BROKEN = refusal("500 Internal Server Error")


def numbers(*turns: int) -> tuple[range, ...]:
    found, first = [], 0
    for count in turns:
        found.append(range(first, first + count))
        first += count
    return tuple(found)


def carried(
    turns: Sequence[range], answers: Sequence[bytes], *, streams: int = 1, requests: int, delay_s: float = 0.0
) -> tuple[list[tuple[int, tuple[str, ...]]], WaveResult]:
    """Return number and answers before it of every request that was written, and how the wave ended."""
    written: list[tuple[int, tuple[str, ...]]] = []
    conversations = WaveConversations(
        numbers=turns,
        delay_s=lambda _number: delay_s,
        write=lambda number, before: written.append((number, before)) or b"turn",  # type: ignore[func-returns-value]
        read=lambda exchange: answer_text(exchange, stream=False),
    )
    wave = Wave(streams=streams, requests=requests, timeout_s=60.0, deadline_s=900.0, conversations=conversations)
    script = iter(answers)

    def first(number: int) -> bytes:
        written.append((number, ()))
        return b"opening"

    return written, run_wave(wave, first, lambda: Answering(script), clock=FastClock())


def test_a_turn_follows_the_answer_before_it_and_gets_all_of_them() -> None:
    written, result = carried(numbers(3, 2), [OK] * 5, requests=5)
    turns = [(0, ()), (1, ("x",)), (2, ("x", "x")), (3, ()), (4, ("x",))]
    assert sorted(written) == turns
    assert [(one.index, one.turn) for one in result.exchanges] == [(0, 1), (1, 2), (2, 3), (3, 1), (4, 2)]
    assert not result.cut


def test_a_failed_turn_ends_its_conversation_and_the_next_one_takes_its_place() -> None:
    written, result = carried(numbers(3, 3), [OK, BROKEN, OK, OK], requests=4)
    assert sorted(number for number, _ in written) == [0, 1, 3, 4]
    assert [one.turn for one in result.exchanges] == [1, 2, 1, 2]
    assert not result.cut


def test_what_is_open_when_all_requests_are_sent_is_left_open() -> None:
    written, result = carried(numbers(9), [OK] * 2, requests=2)
    assert sorted(number for number, _ in written) == [0, 1]
    assert (len(result.exchanges), result.cut, result.unanswered) == (2, False, ())


# A turn starts two others, the last waits for both; a second session has one turn, a third two.
WAITS: dict[int, tuple[int, ...]] = {1: (0,), 2: (0,), 3: (1, 2), 6: (5,)}


def replayed(
    answers: Sequence[bytes], *, streams: int, gap_s: float = 0.1, due_s: tuple[float, ...] | None = None
) -> tuple[list[int], WaveResult]:
    """Return the numbers of the requests of three recorded sessions as they were written, and how the wave ended."""
    written: list[int] = []
    recorded = RecordedTurns(
        waits=lambda number: WAITS[number],
        after=lambda number: [later for later, waits in WAITS.items() if number in waits],
        gap_s=lambda _number: gap_s,
    )
    talks = WaveConversations(
        numbers=numbers(4, 1, 2), delay_s=lambda _: 0.0, write=lambda *_: b"", read=lambda _: None
    )
    wave = Wave(
        streams=streams, requests=7, timeout_s=60.0, deadline_s=900.0, conversations=talks, recorded=recorded,
        most_streams=8, due_s=due_s,
    )  # fmt: skip
    script = iter(answers)

    def write(number: int) -> bytes:
        written.append(number)
        return b"request"

    return written, run_wave(wave, write, lambda: Answering(script), clock=FastClock(0.001))


def test_a_session_keeps_its_place_while_tools_run_and_its_parallel_turns_share_it() -> None:
    _, result = replayed([OK] * 7, streams=1)
    assert [(one.index, one.turn) for one in result.exchanges] == [
        (0, 1), (1, 2), (2, 3), (3, 4), (4, 1), (5, 1), (6, 2)
    ]  # fmt: skip
    ended_s = {one.index: one.ended_s for one in result.exchanges}
    sent_s = {one.index: one.sent_s for one in result.exchanges}
    assert not result.cut
    for number, waits in WAITS.items():
        assert sent_s[number] >= max(ended_s[before] for before in waits) + 0.1
    assert sent_s[2] < ended_s[1] or sent_s[2] - sent_s[1] < 0.1  # in parallel: neither waits for the other's gap
    assert sent_s[4] >= ended_s[3]


def test_a_failed_turn_ends_its_session_whose_unsent_turns_are_not_awaited() -> None:
    _, result = replayed([OK, BROKEN, OK, OK, OK, OK], streams=1)
    assert [one.index for one in result.exchanges] == [0, 1, 2, 4, 5, 6]
    assert not result.cut


def test_sessions_begin_at_their_own_times() -> None:
    _, result = replayed([OK] * 7, streams=4, gap_s=0.3, due_s=(0.0, 0.1, 0.2))
    began_s = {one.index: one.sent_s - result.started_s for one in result.exchanges}
    assert [began_s[number] for number in (0, 4, 5)] == pytest.approx([0.0, 0.1, 0.2], abs=0.05)
    assert [one.index for one in result.exchanges][:3] == [0, 4, 5]
    assert not result.cut


def test_a_user_who_thinks_leaves_the_stream_to_others() -> None:
    _, result = carried(numbers(2, 2, 2, 2), [OK] * 4, requests=4, delay_s=0.1)
    first, second = result.exchanges[:2]
    assert (first.index, second.index) == (0, 2)
    back = next(one for one in result.exchanges if one.index == 1)
    assert back.sent_s >= first.ended_s + 0.1


def test_shares_take_whole_conversations() -> None:
    conversations = WaveConversations(
        numbers=numbers(1, 2, 3), delay_s=lambda _: 0.0, write=lambda *_: b"", read=lambda _: None
    )
    wave = Wave(streams=2, requests=6, timeout_s=1, deadline_s=9, conversations=conversations)
    parts = [part.conversations for part in (wave.share(0, 2), wave.share(1, 2)) if part.conversations is not None]
    assert [part.numbers for part in parts] == [(range(1), range(3, 6)), (range(1, 3),)]


def test_a_chat_gets_messages_and_other_schemas_the_texts_in_order() -> None:
    asked, answers = ["Hello?", "And then?"], ["Hi."]
    assert conversation("openai_chat", asked, answers) == [
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "And then?"},
    ]
    assert conversation("lmi", asked, answers) == "Hello?\n\nHi.\n\nAnd then?"


def test_a_written_turn_has_prompts_answers_and_its_conversations_identifier() -> None:
    """Turn three of the conversation that begins with request 4; only the first turn has the shared prefix."""
    target = TrialTarget(endpoint_name="chat", inference_component=None, region="eu-central-1", kind="openai",
                         endpoint_url="http://localhost:8000/v1")  # fmt: skip
    workload = Workload(input_tokens=20, output_tokens=5, schema="openai_chat", turns=3, shared_prefix_tokens=10,
                        sends_prefix_id=True)  # fmt: skip
    prompts = prompts_of(workload, seed="s", first=4)
    writer = request_writer(target, workload, prompts, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    head, _, body = writer.turn(6, ("one", "two")).partition(b"\r\n\r\n")
    assert f"{PREFIX_HEADER}: conversation-4".encode() in head
    messages = json.loads(body)["messages"]
    assert [said["role"] for said in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [said["content"] for said in messages[1::2]] == ["one", "two"]
    opening = json.loads(writer(4).partition(b"\r\n\r\n")[2])["messages"]
    assert messages[0] == opening[0]
    shared = messages[0]["content"].split()[:10]
    assert all(said["content"].split()[:10] != shared for said in messages[2::2])


def streamed(*lines: str, kind: str = "text/event-stream") -> Exchange:
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    inbox = Inbox()
    inbox.add(0.5, f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return Exchange(0.0, 0.5, inbox, None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"choices":[{"delta":{"content":"a"}}]}', '{"choices":[{"delta":{"content":" b"}}]}', "[DONE]"], "a b"),
        (['{"choices":[{"delta":{"reasoning_content":"hm"}}]}', '{"choices":[{"delta":{"content":"a"}}]}'], "a"),
        (['{"choices":[{"text":"a"}]}', '{"choices":[],"usage":{"prompt_tokens":1}}'], "a"),
        (['{"token":{"text":"a"}}', '{"token":{"text":"</s>","special":true},"generated_text":"a"}'], "a"),
        (['{"choices":[{"delta":{"content":"a"}}]}', '{"error":{"message":"out of memory"}}'], None),
        (['{"choices":[{"delta":'], None),
    ],
)
def test_an_answer_is_read_for_the_next_turn(lines: list[str], said: str | None) -> None:
    assert answer_text(streamed(*lines), stream=True) == said
