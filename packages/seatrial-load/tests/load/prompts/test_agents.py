"""Recordings of agents become sessions: turns, gaps, sub-agents, what prompts share; every mistake is listed."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.prompts.trace import TracePrompts, read_trace
from tests.load.prompts.test_trace import shared_words, written

if TYPE_CHECKING:
    from seatrial_load.prompts.trace import Trace


def call(at_s: float, tokens: int, ids: list[int], **more: object) -> dict[str, object]:
    return {"t": at_s, "type": "s", "model": "m", "in": tokens, "out": 10, "hash_ids": ids, **more}


def subagent(at_s: float, *requests: dict[str, object]) -> dict[str, object]:
    return {"t": at_s, "type": "subagent", "agent_id": "a", "requests": requests, "status": "completed"}


# The agent calls, starts two in parallel that share its first block, waits for both, and calls again.
WEKA: dict[str, Any] = {
    "id": "one",
    "models": ["m"],
    "block_size": 4,
    "hash_id_scope": "local",
    "requests": [
        call(0, 8, [1, 2], api_time=1.0),
        subagent(2, call(0.5, 5, [1], api_time=1.0), call(3, 9, [1, 7], think_time=0.25, api_time=1.0)),
        subagent(2, call(2.5, 4, [9], api_time=1.0)),
        call(8, 13, [1, 2, 3], api_time=1.0),
    ],
}
USAGE = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}


def span(name: str, parent: str, start_s: float, end_s: float, **attributes: object) -> dict[str, object]:
    listed = [{"key": f"gen_ai.{key}", "value": {"stringValue": value}} for key, value in attributes.items()]
    counts = [] if attributes else [{"key": key, "value": {"intValue": str(value)}} for key, value in USAGE.items()]
    times = {
        "startTimeUnixNano": str(int((1_700_000_000 + start_s) * 1e9)),
        "endTimeUnixNano": f"{1_700_000_000 + end_s}e9",
    }
    return {"traceId": "t1", "spanId": name, "parentSpanId": parent, **times, "attributes": listed + counts}


AGENT = {"operation.name": "invoke_agent"}
SPANS = [
    span("root", "", 0, 20, **AGENT),
    span("c1", "root", 0, 1),
    span("tool", "root", 1, 9, **{"operation.name": "execute_tool"}),
    span("left", "tool", 2, 6, **AGENT),
    span("l1", "left", 2, 3),
    span("l2", "left", 5, 6),
    span("right", "tool", 2, 9, **AGENT),
    span("r1", "right", 3, 9),
    span("c2", "root", 7, 8),
    span("c3", "root", 10.5, 12),
]
OTLP = {"resourceSpans": [{"scopeSpans": [{"spans": SPANS}]}]}
MOONCAKE = """\
{"session_id": "a", "timestamp": 2000, "input_length": 600, "output_length": 100, "hash_ids": [5]}
{"session_id": "b", "timestamp": 1000, "input_length": 600, "output_length": 9, "hash_ids": [5]}
{"session_id": "a", "delay": 1500, "input_length": 700, "output_length": 20}
"""


def read(tmp_path: Path, text: object, name: str = "trace.json") -> Trace:
    return read_trace(written(tmp_path, name, text if isinstance(text, str) else json.dumps(text)))


@pytest.mark.parametrize("indent", [None, 1])
def test_weka(tmp_path: Path, indent: int | None) -> None:
    trace = read(tmp_path, json.dumps(WEKA, indent=indent))
    assert (list(trace.tokens_in), trace.turns, list(trace.due_s)) == ([8, 5, 9, 4, 13], (5,), [])
    assert tuple(trace.waits) == ((), (1,), (1,), (3,), (4, 2, 1))
    # From the end of what is waited for; a recorded think time before it; sub-agents count from their start.
    assert tuple(trace.gaps_s) == pytest.approx((0.0, 1.5, 0.25, 1.5, 2.0))
    assert [list(trace.blocks_of(row)) for row in range(5)] == [[1, 2], [1], [1, 7], [9], [1, 2, 3]]
    assert tuple(trace.kept) == (0, 1, 1, 0, 2)


def test_wekas_times_may_count_from_the_sessions_start(tmp_path: Path) -> None:
    inner = [call(at_s, 5, [1], api_time=1.0) for at_s in (2.5, 5)]
    trace = read(tmp_path, WEKA | {"requests": [WEKA["requests"][0], subagent(2, *inner)]})
    assert tuple(trace.gaps_s) == pytest.approx((0.0, 1.5, 1.5))


def test_weka_with_a_request_a_line(tmp_path: Path) -> None:
    rows = [
        {"id": name, "t": at_s, "in": 130, "out": 7, "hash_ids": [3, 4]}
        for name, at_s in (("a", 0), ("a", 5), ("b", 0))
    ]
    trace = read(tmp_path, "\n".join(map(json.dumps, rows)))
    assert (trace.turns, tuple(trace.gaps_s)) == ((2, 1), (0.0, 5.0, 0.0))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(OTLP),
        json.dumps(OTLP, indent=2),
        json.dumps({"spans": SPANS}),
        "\n".join(map(json.dumps, reversed(SPANS))),
    ],
)
def test_opentelemetry(tmp_path: Path, text: str) -> None:
    """Two sub-agents run beside each other; one has ended at the next call, the other at the last."""
    trace = read(tmp_path, text)
    assert (trace.turns, list(trace.due_s)) == ((6,), [0.0])
    assert tuple(trace.waits) == ((), (1,), (2,), (2,), (4, 1), (1, 3))
    assert tuple(trace.gaps_s) == pytest.approx((0.0, 1.0, 2.0, 2.0, 1.0, 1.5), abs=1e-3)


def test_a_prompt_without_ids_begins_with_the_one_before_it_unless_it_is_shorter(tmp_path: Path) -> None:
    calls = [{"t": at_s, "in": tokens, "out": 5} for at_s, tokens in ((0, 200), (1, 300), (2, 100))]
    prompts = TracePrompts(trace=read(tmp_path, {"requests": calls}), seed="seed")
    first, second, third = (prompts.content(index) for index in range(3))
    assert [len(text.split()) for text in (first, second, third)] == [200, 300, 100]
    assert (shared_words(first, second), shared_words(second, third)) == (3 * 64, 0)
    assert [prompts.trace.added(row) for row in range(3)] == [200, 300 - 3 * 64, 100]


def test_mooncakes_sessions_add_to_their_history_and_share_blocks(tmp_path: Path) -> None:
    trace = read(tmp_path, MOONCAKE)
    assert (trace.turns, list(trace.due_s), list(trace.tokens_in)) == ((1, 2), [0.0, 1.0], [600, 600, 1400])
    assert list(trace.gaps_s) == [0.0, 0.0, 1.5]
    prompts = TracePrompts(trace=trace, seed="seed")
    assert shared_words(prompts.content(0), prompts.content(1)) == 512
    assert shared_words(prompts.content(1), prompts.content(2)) == 512


def test_a_second_replay_shares_nothing_with_the_first(tmp_path: Path) -> None:
    prompts = TracePrompts(trace=read(tmp_path, WEKA), seed="seed", first=7)
    assert shared_words(prompts.content(9), prompts.content(11)) == 4
    assert shared_words(prompts.content(9), prompts.content(14)) == 0


BAD_WEKA = [
    ({"requests": 7}, ["requests: SEA550: not a list of objects"]),
    ({"requests": [{"t": -1, "in": 1.5, "out": 3}]},
     ["requests[0].t: SEA550: -1 is not a number of s from 0",
      "requests[0].in: SEA550: 1.5 is not a whole number from 0 to 1,000,000,000"]),
    ({"requests": [call(0, 8, [1]), subagent(1, subagent(2), call(3, 60, [1, 2]))]},
     ["requests[1].requests[0].type: SEA550: a sub-agent has no sub-agents\n  hint: list them beside it",
      "requests[1].requests[1].hash_ids: SEA550: 2 blocks of 64 tokens are more than 60 tokens"]),
    ({"requests": [call(0, 10**12, [1])]},
     ["requests[0].in: SEA550: 1000000000000 is not a whole number from 0 to 1,000,000,000"]),
    ({"requests": [call(0, 8, ["a"])]},  # type: ignore[list-item]
     ['requests[0].hash_ids: SEA550: ["a"] is not a list of whole numbers from 0 to 4,611,686,018,427,387,903']),
]  # fmt: skip


def test_every_bad_line_is_listed_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, "bad.jsonl", "\n".join([*(json.dumps(line) for line, _ in BAD_WEKA), "{"]))
    with pytest.raises(BenchError) as caught:
        read_trace(path)
    wanted = [f"{path}:{number}: {text}" for number, (_, texts) in enumerate(BAD_WEKA, start=1) for text in texts]
    assert str(caught.value).split("\n")[:-1] == "\n".join(wanted).split("\n")
    assert str(caught.value).split("\n")[-1].startswith(f"{path}:6: SEA550: not JSON")


def test_a_call_without_usage_or_time_is_a_bad_line(tmp_path: Path) -> None:
    spans = [{"span_id": "a", "attributes": {"gen_ai.operation.name": "chat"}, "start_time": "2026-11-27T10:00:00Z"}]
    spans += [{"span_id": "b", "attributes": USAGE}]
    with pytest.raises(BenchError) as caught:
        read(tmp_path, "\n".join(map(json.dumps, spans)))
    assert [(one.rule, one.field) for one in caught.value.problems] == [
        ("SEA551", "attributes.gen_ai.usage.input_tokens"),
        ("SEA551", "attributes.gen_ai.usage.output_tokens"),
        ("SEA551", "startTimeUnixNano"),
    ]


LENGTHS = st.tuples(st.integers(1, 900), st.integers(1, 50), st.floats(0, 9_000))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.lists(LENGTHS, min_size=1, max_size=6), st.booleans()), min_size=1, max_size=5))
def test_every_request_is_replayed_once_after_what_it_waits_for(parts: list[tuple[list[Any], bool]]) -> None:
    """Whatever is recorded: lengths stay, gaps are within bounds, each turn comes after those that it waits for."""
    requests: list[dict[str, object]] = [call(0, 64, [])]
    for lengths, nested in parts:
        inner = [{"t": at_s, "in": tokens, "out": out} for tokens, out, at_s in lengths]
        requests += [subagent(1, *inner)] if nested else inner
    with TemporaryDirectory() as folder:
        trace = read(Path(folder), {"requests": requests})
    wanted = [64, *(tokens for lengths, _ in parts for tokens, _, _ in lengths)]
    assert list(trace.tokens_in) == wanted
    assert all(0 <= gap_s <= 3_600 for gap_s in trace.gaps_s)
    assert [row for row, waits in enumerate(trace.waits) if not waits] == [0]
    assert all(0 < back <= row for row, waits in enumerate(trace.waits) for back in waits)
    assert all(trace.kept[row] <= tokens // 64 for row, tokens in enumerate(wanted))
