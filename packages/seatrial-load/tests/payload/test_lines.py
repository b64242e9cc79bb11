"""Lines of JSON and server-sent events (WHATWG HTML, sections 9.2.5 and 9.2.6), in pieces of any size."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.payload.answer import DONE, MAX_LINE_BYTES, LineReader
from seatrial_load.payload.json_text import AnswerError

BODY = (
    '\ufeff: ping\r\n\r\nevent: message\r\ndata:{"a":"ü"}\r\n\r\n{"b":2}\n\ndata\rdata: {"c"\rdata::3} \r\rdata: [DONE]'
).encode()
LINES = ['{"a":"ü"}'.encode(), b'{"b":2}', b'{"c"\n:3}', b"[DONE]"]


def read(pieces: list[bytes]) -> list[bytes]:
    reader = LineReader()
    return [line for piece in pieces for line in reader.feed(piece)] + reader.finish()


def cut(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, *(at % (len(body) + 1) for at in cuts), len(body)})
    return [body[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(st.integers(min_value=0, max_value=len(BODY))))
def test_any_split_gives_the_same_lines_even_inside_a_character(cuts: list[int]) -> None:
    assert read(cut(BODY, cuts)) == LINES


@pytest.mark.parametrize(
    "nothing",
    [b"", b"\n", b"\r\n\r\n", b"data:\n\n", b"data\n\n", b": comment\n\n", b"event: x\nid: 1\nretry: 3\nid\n\n"],
)
def test_what_carries_nothing(nothing: bytes) -> None:
    assert read([nothing]) == []


STANDARD: dict[str, tuple[bytes, list[bytes]]] = {
    "several lines of data": (b'data: {"a":\ndata: 1,\ndata:"b":2}\n\n', [b'{"a":\n1,\n"b":2}']),
    "a comment within an event": (b'data: {"a":\n: ping\ndata: 1}\n\n', [b'{"a":\n1}']),
    "other fields within an event": (b'id: 7\ndata: {"a":\nevent: message\nretry: 9\ndata: 1}\n\n', [b'{"a":\n1}']),
    "a field that nobody knows": (b'data: {"a":1}\nsequence: 7\n\n', [b'{"a":1}']),
    "a line without a colon": (b'data: {"a":1}\nwhatever\n\n', [b'{"a":1}']),
    "data without a colon": (b'data\ndata: {"a":1}\ndata\n\n', [b'{"a":1}']),
    "no space, and two": (b'data:{"a":1}\n\ndata:  {"b":2}\n\n', [b'{"a":1}', b'{"b":2}']),
    "a name that begins alike": (b'data: {"a":1}\n\ndatabase: {"b":2}\n\n', [b'{"a":1}']),
    "carriage returns": (b'data: {"a":\rdata: 1}\r\rdata: [DONE]\r\r', [b'{"a":\n1}', DONE]),
    "both ends of a line": (b'data: {"a":\r\ndata: 1}\r\n\r\ndata: [DONE]\r\n\r\n', [b'{"a":\n1}', DONE]),
    "ends of every kind": (b'data: {"a":\r\ndata: 1}\n\r\ndata: [DONE]\r\n\n', [b'{"a":\n1}', DONE]),
    "a byte order mark": (b'\xef\xbb\xbfdata: {"a":1}\n\n', [b'{"a":1}']),
    "a byte order mark later on": (b'data: {"a":1}\n\n\xef\xbb\xbfdata: {"b":2}\n\n', [b'{"a":1}']),
    "an event that the stream ended in": (b'data: {"a":1}\n\ndata: {"b":2}\n', [b'{"a":1}']),
    "a line that the stream ended in": (b'data: {"a":1}\n\ndata: {"b":2}', [b'{"a":1}']),
}
"""What the standard says of a stream; leading spaces but one are JSON's or `[DONE]`'s and mean nothing."""
LENIENT: dict[str, tuple[bytes, list[bytes]]] = {
    "the end without its empty line": (b'data: {"a":1}\n\ndata: [DONE]', [b'{"a":1}', DONE]),
    "the end without an empty line before it": (b'data: {"a":1}\n\ndata: [DONE]\n', [b'{"a":1}', DONE]),
    "no empty lines at all": (
        b'data: {"a":{}}\ndata: {"b":[]}\ndata: {"c":\ndata: 3}\ndata: [DONE]\n',
        [b'{"a":{}}', b'{"b":[]}', b'{"c":\n3}', DONE],
    ),
    "JSON among events": (b'data: {"a":1}\n{"error":"x"}\n', [b'{"a":1}', b'{"error":"x"}']),
    "lines of JSON": (b'{"a":1}\n [{"b":2}] \n\n{"c":3}', [b'{"a":1}', b'[{"b":2}]', b'{"c":3}']),
    "no stream": (b"<html>\nhello: you\n", [b"<html>", b"hello: you"]),
}
"""What engines and their containers do beside it."""


@pytest.mark.parametrize(("body", "documents"), [*STANDARD.values(), *LENIENT.values()], ids=[*STANDARD, *LENIENT])
def test_a_stream_is_read_as_the_standard_has_it_however_it_is_cut(body: bytes, documents: list[bytes]) -> None:
    assert read([body]) == documents
    assert read([body[at : at + 1] for at in range(len(body))]) == documents
    assert [read([body[:at], body[at:]]) for at in range(len(body))] == [documents] * len(body)


def by_the_standard(body: bytes) -> list[bytes]:
    """What a reader has that follows the steps of section 9.2.6 for a whole stream, without the empty data."""
    buffer, dispatched = "", []
    lines = re.split("\r\n|\r|\n", body.decode().removeprefix("\ufeff"))
    for line in lines[:-1]:
        name, _, value = line.partition(":")
        if not line:
            dispatched += [buffer.removesuffix("\n")] if buffer else []
            buffer = ""
        elif name == "data":
            buffer += value.removeprefix(" ") + "\n"
    return [data.encode() for data in dispatched if data.strip()]


ENDS = st.sampled_from(["\n", "\r", "\r\n"])
PARTS = st.sampled_from(["data: ", "data:", ": ", "event: ", "id", "retry:3", "other: "])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Events of JSON, each over several lines of data with other fields between, with ends of lines of any kind."""
    end = draw(ENDS)
    text = "\ufeff" if draw(st.booleans()) else ""
    for value in draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=5)):
        whole = json.dumps({"text": value, "of": [1, 2]}, ensure_ascii=False, indent=draw(st.sampled_from([None, 1])))
        for line in whole.split("\n"):
            text += f"data:{draw(st.sampled_from(['', ' ']))}{line.strip()}{end}"
            text += draw(st.sampled_from(["", f": ping{end}", f"id: 7{end}", f"x{end}", f"retry:3{end}"]))
        text += end
    return text.encode()


@given(streams(), st.lists(st.integers(min_value=0)))
def test_any_stream_of_events_in_any_pieces_is_what_the_standard_says(body: bytes, cuts: list[int]) -> None:
    assert read(cut(body, cuts)) == by_the_standard(body)


def test_a_line_is_there_as_soon_as_it_is_complete() -> None:
    reader = LineReader()
    assert reader.feed(b'{"a"') == []
    assert reader.feed(b":1}") == []
    assert reader.feed(b'\n{"b"') == [b'{"a":1}']


def test_an_event_is_there_with_its_empty_line_and_not_with_the_next_byte() -> None:
    reader = LineReader()
    assert reader.feed(b'data: {"a":1}\r\n') == []
    assert reader.feed(b"\r") == [b'{"a":1}']
    assert reader.feed(b'\ndata: {"b":2}\n\n') == [b'{"b":2}']
    assert reader.feed(b'data: {"c":3}\n\n') == [b'{"c":3}']
    assert reader.feed(b'data: {"d":\n') == []
    assert reader.feed(b"data: 4}\n\n") == [b'{"d":\n4}']


def test_a_long_line_in_small_pieces_takes_linear_time() -> None:
    reader = LineReader()
    assert [line for _ in range(200_000) for line in reader.feed(b"xxxx")] == []
    assert reader.feed(b"\n") == [b"xxxx" * 200_000]


def test_an_event_of_more_than_a_mebibyte_is_refused_however_many_lines_it_has() -> None:
    reader, line = LineReader(), b"data: " + b"x" * 1_023 + b"\n"
    assert [each for _ in range(MAX_LINE_BYTES // 1_023) for each in reader.feed(line)] == []
    with pytest.raises(AnswerError, match="1 MiB"):
        reader.feed(line)
