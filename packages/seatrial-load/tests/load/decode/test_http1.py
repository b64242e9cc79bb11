from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.decode.http1 import MAX_HEAD_BYTES, ProtocolError, ResponseParser, parse_head

BY_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + BY_LENGTH
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello world"


def read(pieces: list[bytes]) -> tuple[int, bytes]:
    parser = ResponseParser()
    body = b"".join(part for piece in pieces for part in parser.feed(piece))
    parser.close()
    assert parser.head is not None
    return parser.head.status, body


@pytest.mark.parametrize("response", [BY_LENGTH, CHUNKED, CONTINUED, UNTIL_CLOSE])
def test_body_is_read_whatever_its_framing(response: bytes) -> None:
    assert read([response]) == (200, b"hello world")


@given(
    st.sampled_from([BY_LENGTH, CHUNKED, CONTINUED, UNTIL_CLOSE]),
    st.lists(st.integers(min_value=0, max_value=len(CONTINUED))),
)
def test_any_split_gives_the_same_body(response: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(response)]
    assert read([response[a:b] for a, b in itertools.pairwise(edges)]) == (200, b"hello world")


@pytest.mark.parametrize("response", [BY_LENGTH, CHUNKED])
def test_complete_exactly_at_the_last_byte(response: bytes) -> None:
    parser = ResponseParser()
    parser.feed(response[:-1])
    assert not parser.complete
    parser.feed(response[-1:])
    assert parser.complete


@pytest.mark.parametrize("empty", [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
def test_a_response_without_body_is_complete_after_its_head(empty: bytes) -> None:
    parser = ResponseParser()
    assert parser.feed(empty) == []
    assert parser.complete


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (b"SSH-2.0-x", "not an HTTP/1 response: b'SSH-2.0-x'"),
        (b"HTTP/1.1 abc\r\n\r\n", "not a status line: 'HTTP/1.1 abc'"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not a header: 'no colon'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not a content length: '-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "1 bytes follow the end of the response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\n", "not a chunk size: b'+5'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "a chunk ends with b'bc', not with CRLF"),
    ],
)
def test_malformed_responses(response: bytes, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        ResponseParser().feed(response)
    assert str(caught.value) == message


def test_headers_are_bounded() -> None:
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1" + b" " * (MAX_HEAD_BYTES - 8))
    with pytest.raises(ProtocolError, match="within 65536 bytes"):
        parser.feed(b" ")


@pytest.mark.parametrize("response", [BY_LENGTH, CHUNKED])
def test_an_early_close_is_malformed(response: bytes) -> None:
    parser = ResponseParser()
    parser.feed(response[:-3])
    with pytest.raises(ProtocolError, match="closed in the middle"):
        parser.close()


def test_header_names_are_lower_case_and_close_is_understood() -> None:
    head = parse_head(b"HTTP/1.1 200 OK\r\nCONNECTION:  Close ")
    assert head.headers == {"connection": "Close"}
    assert not head.keeps_alive
    assert parse_head(b"HTTP/1.1 200 OK").keeps_alive


@given(st.lists(st.binary(max_size=200)))
def test_random_bytes_raise_nothing_but_a_protocol_error(pieces: list[bytes]) -> None:
    for prefix in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        parser = ResponseParser()
        try:
            parser.feed(prefix)
            for piece in pieces:
                parser.feed(piece)
        except ProtocolError:
            continue


@given(
    st.lists(st.binary(min_size=1, max_size=30), max_size=8),
    st.lists(st.integers(min_value=0, max_value=600)),
    st.integers(min_value=0, max_value=2),
    st.booleans(),
)
def test_any_chunks_in_any_split_after_any_preamble(
    chunks: list[bytes],
    cuts: list[int],
    interim: int,
    trailer: bool,  # noqa: FBT001 (drawn)
) -> None:
    body = b"".join(b"%X;ext=1\r\n%b\r\n" % (len(part), part) for part in chunks)
    end = b"0\r\nX-Checksum: 1\r\n\r\n" if trailer else b"0\r\n\r\n"
    head = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * interim
    response = head + b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n" + body + end
    edges = [0, *sorted(min(cut, len(response)) for cut in cuts), len(response)]
    assert read([response[a:b] for a, b in itertools.pairwise(edges)]) == (200, b"".join(chunks))


@given(st.sampled_from([BY_LENGTH, CHUNKED, CONTINUED]), st.data())
def test_a_truncated_response_is_never_complete(response: bytes, data: st.DataObject) -> None:
    parser = ResponseParser()
    parser.feed(response[: data.draw(st.integers(min_value=0, max_value=len(response) - 1))])
    assert not parser.complete
    with pytest.raises(ProtocolError):
        parser.close()


def outcome(pieces: list[bytes]) -> tuple[bytes, bool, bool]:
    parser = ResponseParser()
    body = b""
    try:
        for piece in pieces:
            body += b"".join(parser.feed(piece))
    except ProtocolError:
        return b"", False, True
    return body, parser.complete, False


@given(
    st.sampled_from([BY_LENGTH, CHUNKED, CONTINUED]),
    st.lists(st.integers(min_value=0, max_value=len(CHUNKED))),
    st.integers(min_value=0, max_value=len(BY_LENGTH) - 1),
    st.integers(min_value=0, max_value=255),
)
def test_a_corrupted_response_reads_alike_in_every_split(
    response: bytes, cuts: list[int], position: int, value: int
) -> None:
    damaged = bytearray(response)
    damaged[position] = value
    edges = [0, *sorted(min(cut, len(damaged)) for cut in cuts), len(damaged)]
    assert outcome([bytes(damaged[a:b]) for a, b in itertools.pairwise(edges)]) == outcome([bytes(damaged)])
