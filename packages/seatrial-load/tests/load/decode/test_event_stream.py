from __future__ import annotations

import itertools
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.decode.event_stream import Frame, FrameDecoder, encode_frame
from seatrial_load.decode.http1 import ProtocolError

EVENT = {":message-type": "event", ":event-type": "PayloadPart"}
STREAM = encode_frame(EVENT, b"first") + encode_frame(EVENT, b"") + encode_frame({}, b"third")


def raw_frame(headers: bytes, payload: bytes) -> bytes:
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    frame = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_any_split_gives_the_same_frames(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    decoder = FrameDecoder()
    frames = [frame for a, b in itertools.pairwise(edges) for frame in decoder.feed(STREAM[a:b])]
    decoder.finish()
    assert frames == [Frame(EVENT, b"first"), Frame(EVENT, b""), Frame({}, b"third")]


def test_headers_of_every_type_are_stepped_over() -> None:
    others = b"".join(
        b"\x01" + bytes([ord("k") + kind, kind]) + value
        for kind, value in [
            (0, b""), (1, b""), (2, b"x"), (3, b"xx"), (4, b"xxxx"), (5, b"x" * 8),
            (6, b"\x00\x02xx"), (8, b"x" * 8), (9, b"x" * 16),
        ]
    )  # fmt: skip
    frame = raw_frame(others + b"\x01b\x07\x00\x03yes", b"payload")
    assert FrameDecoder().feed(frame) == [Frame({"b": "yes"}, b"payload")]


@pytest.mark.parametrize("position", [0, 5, 9, 14, len(STREAM) - 1])
def test_a_flipped_bit_fails_a_checksum(position: int) -> None:
    damaged = bytearray(STREAM)
    damaged[position] ^= 1
    decoder = FrameDecoder()
    with pytest.raises(ProtocolError, match="fails its checksum"):  # noqa: PT012 (a frame before it may be whole)
        decoder.feed(bytes(damaged))
        decoder.finish()


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_the_frames_before_a_broken_one_are_read_however_the_stream_is_cut(cuts: list[int]) -> None:
    damaged = STREAM[:-1] + bytes([STREAM[-1] ^ 1])
    decoder = FrameDecoder()
    frames: list[Frame] = []
    with pytest.raises(ProtocolError, match="fails its checksum"):  # noqa: PT012 (it depends on the cuts, which one)
        for start, end in itertools.pairwise([0, *sorted(cuts), len(damaged)]):
            frames += decoder.feed(damaged[start:end])
        decoder.finish()
    assert frames == [Frame(EVENT, b"first"), Frame(EVENT, b"")]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((15, 0), "claims 15 bytes with 0 bytes of headers"),
        ((20, 5), "claims 20 bytes with 5 bytes of headers"),
        ((2**31, 0), "Payload length of 2147483632 exceeded the maximum"),
    ],
)
def test_impossible_lengths_are_refused_at_once(lengths: tuple[int, int], message: str) -> None:
    prelude = struct.pack(">II", *lengths)
    with pytest.raises(ProtocolError, match=message):
        FrameDecoder().feed(prelude + struct.pack(">I", zlib.crc32(prelude)))


@pytest.mark.parametrize("headers", [b"\x09x", b"\x01a\x0c", b"\x01a\x07\x00", b"\x01\xff\x07\x00\x00"])
def test_malformed_headers(headers: bytes) -> None:
    with pytest.raises(ProtocolError, match="an event frame is malformed"):
        FrameDecoder().feed(raw_frame(headers, b""))


def test_a_stream_that_ends_inside_a_frame() -> None:
    decoder = FrameDecoder()
    decoder.feed(STREAM[:-4])
    with pytest.raises(ProtocolError, match="ended inside a frame"):
        decoder.finish()


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_random_bytes_raise_nothing_but_a_protocol_error(headers: bytes, noise: bytes) -> None:
    for data in (noise, raw_frame(headers, noise)):
        try:
            FrameDecoder().feed(data)
        except ProtocolError:
            continue


def outcome(pieces: list[bytes]) -> tuple[list[bytes], bool]:
    decoder, payloads = FrameDecoder(), []
    try:
        for piece in pieces:
            payloads += [frame.payload for frame in decoder.feed(piece)]
        decoder.finish()
    except ProtocolError:
        return [], False
    return payloads, True


@given(
    st.lists(st.integers(min_value=0, max_value=len(STREAM))),
    st.integers(min_value=0, max_value=len(STREAM) - 1),
    st.integers(min_value=1, max_value=255),
)
def test_a_corrupted_stream_is_refused_in_every_split(cuts: list[int], position: int, flip: int) -> None:
    damaged = bytearray(STREAM)
    damaged[position] ^= flip
    edges = [0, *sorted(cuts), len(damaged)]
    assert outcome([bytes(damaged[a:b]) for a, b in itertools.pairwise(edges)]) == ([], False)


@given(st.integers(min_value=1, max_value=len(STREAM)))
def test_a_truncated_stream_is_whole_only_between_frames(missing: int) -> None:
    payloads, whole = outcome([STREAM[:-missing]])
    frame_ends = [0, *itertools.accumulate(len(encode_frame(*frame)) for frame in
                                           [(EVENT, b"first"), (EVENT, b""), ({}, b"third")])]  # fmt: skip
    assert whole == (len(STREAM) - missing in frame_ends)
    assert payloads in ([], [b"first"], [b"first", b""])
