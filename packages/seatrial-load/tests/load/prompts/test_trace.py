from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.documents.arrivals import replay
from seatrial_load.prompts.trace import TracePrompts, read_trace

if TYPE_CHECKING:
    from pathlib import Path

MOONCAKE = """\
{"timestamp": 0, "input_length": 1100, "output_length": 52, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 600, "output_length": 26, "hash_ids": [0, 3]}
{"timestamp": 1500, "input_length": 512, "output_length": 10, "hash_ids": [4]}
"""
BURSTGPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
50,ChatGPT,0,0,0,Conversation log
60,GPT-4,417,0,417,API log
118.5,GPT-4,417,276,693,Conversation log
"""
AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
AZURE_2024 = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2162,5
2024-05-10 00:00:00.017335+00:00,2399,6
"""


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def shared_words(one: str, other: str) -> int:
    pairs = zip(one.split(), other.split(), strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), 0)


def test_mooncakes_times_are_milliseconds_and_come_into_order(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "trace.jsonl", MOONCAKE))
    assert list(trace.due_s) == [0.0, 1.5, 3.0]
    assert list(trace.tokens_in) == [1100, 512, 600]
    assert list(trace.tokens_out) == [52, 10, 26]
    assert trace.blocks == ((0, 1, 2), (4,), (0, 3))


def test_mooncakes_names_may_stand_in_a_csv(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "t.CSV", "timestamp,input_length,output_length\n100,3,4\n350,5,6\n"))
    assert list(trace.due_s) == pytest.approx([0.0, 0.25])
    assert (list(trace.tokens_in), trace.blocks) == ([3, 5], ())


def test_burstgpts_times_are_seconds_and_its_failures_are_skipped(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "burst.csv", BURSTGPT))
    assert list(trace.due_s) == [0.0, 40.0, 113.5]
    assert list(trace.tokens_in) == [472, 1087, 417]
    assert (trace.tokens_out_mean, trace.skipped) == ((18 + 230 + 276) / 3, 2)


@pytest.mark.parametrize(("text", "gap_s"), [(AZURE, 4.314579), (AZURE_2024, 0.007405)])
def test_azures_times_are_dates(tmp_path: Path, text: str, gap_s: float) -> None:
    assert list(read_trace(written(tmp_path, "azure.csv", text)).due_s) == pytest.approx([0.0, gap_s], abs=1e-6)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert len(read_trace(written(tmp_path, "azure.csv", "\ufeff" + AZURE))) == 2


def test_a_trace_gives_due_times_and_lengths(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "trace.jsonl", MOONCAKE))
    prompts = TracePrompts(trace=trace, seed="seed")
    assert replay(trace.due_s, speed=2.0) == (0.0, 0.75, 1.5)
    assert [prompts.input_tokens(index) for index in range(4)] == [1100, 512, 600, 1100]
    assert [prompts.output_tokens(index) for index in range(3)] == [52, 10, 26]
    assert [len(prompts.content(index).split()) for index in range(3)] == [1100, 512, 600]


def test_equal_blocks_are_equal_words(tmp_path: Path) -> None:
    """The first and the third request share block 0 and go on differently; the second shares nothing."""
    prompts = TracePrompts(trace=read_trace(written(tmp_path, "trace.jsonl", MOONCAKE)), seed="seed")
    first, second, third = (prompts.content(index) for index in range(3))
    assert shared_words(first, third) == 512
    assert shared_words(first, second) == 0


def test_calibrated_words_keep_the_shared_share(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "trace.jsonl", MOONCAKE))
    prompts = TracePrompts(trace=trace, seed="seed", words_per_token=0.5)
    assert [len(prompts.content(index).split()) for index in range(3)] == [550, 256, 300]
    assert shared_words(prompts.content(0), prompts.content(2)) == 256


def test_without_blocks_no_two_prompts_share_a_beginning(tmp_path: Path) -> None:
    prompts = TracePrompts(trace=read_trace(written(tmp_path, "azure.csv", AZURE)), seed="seed")
    assert shared_words(prompts.content(0), prompts.content(1)) == 0
    assert prompts.content(0) != prompts.content(2)


def test_a_replay_may_begin_after_other_requests(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "azure.csv", AZURE))
    prompts = TracePrompts(trace=trace, seed="seed", first=7)
    assert [prompts.input_tokens(index) for index in (7, 8, 9)] == [374, 396, 374]


COUNT = "a whole number from 0 to 1,000,000,000"
BAD_JSONL = [
    ("{", "", "not JSON: Expecting property name enclosed in double quotes (column 2)"),
    ("7", "", "not a JSON object"),
    ('{"timestamp": 0, "output_length": 3}', "input_length", "missing"),
    ('{"timestamp": "a", "input_length": 1, "output_length": 3}', "timestamp", '"a" is not a number of ms'),
    ('{"timestamp": 0, "input_length": 1.5, "output_length": 3}', "input_length", f"1.5 is not {COUNT}"),
    ('{"timestamp": 0, "input_length": 1, "output_length": -3}', "output_length", f"-3 is not {COUNT}"),
    (
        '{"timestamp": 0, "input_length": 1, "output_length": 3, "hash_ids": ["a"]}',
        "hash_ids",
        '["a"] is not a list of whole numbers',
    ),
    (
        '{"timestamp": 0, "input_length": 512, "output_length": 3, "hash_ids": [1, 2]}',
        "hash_ids",
        "2 blocks of 512 tokens are more than 512 tokens",
    ),
]


def test_every_bad_line_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "bad.jsonl", "\n".join(line for line, _, _ in BAD_JSONL))
    with pytest.raises(BenchError) as caught:
        read_trace(path)
    assert str(caught.value).split("\n") == [
        f"{path}:{number}: {field + ': ' if field else ''}SEA510: {message}"
        for number, (_, field, message) in enumerate(BAD_JSONL, start=1)
    ]


def test_every_bad_cell_of_a_csv_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "bad.csv", AZURE + "yesterday,many,5\n2023-11-16 18:15:51,7\n")
    with pytest.raises(BenchError) as caught:
        read_trace(path)
    assert str(caught.value).split("\n") == [
        f'{path}:4: TIMESTAMP: SEA510: "yesterday" is not a date and time',
        f'{path}:4: ContextTokens: SEA510: "many" is not a whole number from 0 to 1,000,000,000',
        f"{path}:5: GeneratedTokens: SEA510: missing",
    ]


def test_unknown_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "other.csv", "time,in,out\n1,2,3\n")
    with pytest.raises(BenchError) as caught:
        read_trace(path)
    assert str(caught.value).split("\n") == [
        f"{path}:1: SEA510: the columns are time, in, out",
        "  hint: required: timestamp, input_length, output_length; or Timestamp, Request tokens, Response tokens; or "
        "TIMESTAMP, ContextTokens, GeneratedTokens",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no request has a prompt and an answer"),
        (b'{"timestamp": 0, "input_length": 1, "output_length": 0}', "no request has a prompt and an answer"),
        (b"\xff\xfe\x00", "not UTF-8: invalid start byte"),
    ],
)
def test_files_that_are_no_trace(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    with pytest.raises(BenchError) as caught:
        read_trace(path)
    assert str(caught.value) == f"{path}: SEA510: {message}"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as caught:
        read_trace(tmp_path / "none.csv")
    assert str(caught.value) == f"{tmp_path / 'none.csv'}: SEA510: can't be read: No such file or directory"


@given(
    rows=st.lists(
        st.tuples(
            st.integers(min_value=0, max_value=10**9),
            st.integers(min_value=1, max_value=10**6),
            st.integers(min_value=1, max_value=10**5),
        ),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=50)
def test_what_was_recorded_is_read_in_order_of_time(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]
) -> None:
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    keys = ("timestamp", "input_length", "output_length")
    path.write_text("\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows))
    trace = read_trace(path)
    ordered = sorted(rows, key=lambda row: row[0])
    assert list(trace.tokens_in) == [row[1] for row in ordered]
    assert list(trace.due_s) == pytest.approx([(row[0] - ordered[0][0]) / 1000 for row in ordered])


@given(content=st.binary(max_size=200), name=st.sampled_from(["trace.csv", "trace.jsonl"]))
def test_any_bytes_are_a_trace_or_a_told_problem(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("trace") / name
    path.write_bytes(content)
    try:
        trace = read_trace(path)
    except BenchError as told:
        rules = {problem.rule for problem in told.problems}
    else:
        rules = {"SEA510"} if len(trace) else set()
    assert rules == {"SEA510"}


def test_the_blocks_of_a_recording_are_not_a_prompts_own(tmp_path: Path) -> None:
    prompts = TracePrompts(trace=read_trace(written(tmp_path, "trace.jsonl", MOONCAKE)), seed="seed")
    assert [prompts.own_tokens(index) for index in range(3)] == [0, 0, 0]
    azure = TracePrompts(trace=read_trace(written(tmp_path, "trace.csv", AZURE)), seed="seed", words_per_token=0.5)
    assert [azure.own_tokens(index) for index in range(2)] == [187, 198]
