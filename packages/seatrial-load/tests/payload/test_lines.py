from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.payload.reader import LineReader

BODY = ': ping\r\n\r\nevent: message\r\ndata:{"a":"ü"}\r\n\r\n{"b":2}\n\n data: {"c":3} \ndata: [DONE]'.encode()
LINES = ['{"a":"ü"}'.encode(), b'{"b":2}', b'{"c":3}', b"[DONE]"]


def read(pieces: list[bytes]) -> list[bytes]:
    reader = LineReader()
    return [line for piece in pieces for line in reader.feed(piece)] + reader.finish()


@given(st.lists(st.integers(min_value=0, max_value=len(BODY))))
def test_any_split_gives_the_same_lines_even_inside_a_character(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(BODY)})
    assert read([BODY[a:b] for a, b in itertools.pairwise(edges)]) == LINES


@pytest.mark.parametrize("nothing", [b"", b"\n", b"\r\n\r\n", b"data:\n", b": comment", b"event: x\nid: 1\nretry: 3\n"])
def test_what_carries_nothing(nothing: bytes) -> None:
    assert read([nothing]) == []


def test_a_line_is_there_as_soon_as_it_is_complete() -> None:
    reader = LineReader()
    assert reader.feed(b'{"a"') == []
    assert reader.feed(b":1}") == []
    assert reader.feed(b'\n{"b"') == [b'{"a":1}']


def test_a_long_line_in_small_pieces_takes_linear_time() -> None:
    reader = LineReader()
    assert [line for _ in range(200_000) for line in reader.feed(b"xxxx")] == []
    assert reader.feed(b"\n") == [b"xxxx" * 200_000]
