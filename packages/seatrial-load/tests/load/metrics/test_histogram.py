from __future__ import annotations

import base64
import zlib
from collections import Counter

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.metrics.histogram import (
    COMPRESSED_COOKIE,
    COOKIE,
    HIGHEST_US,
    INNER,
    OUTER,
    Histogram,
    middle_of,
    slot_of,
)

VALUES = st.one_of(st.integers(0, 5_000), st.integers(0, 120_000_000), st.integers(0, HIGHEST_US))


def histogram(*values_us: float) -> Histogram:
    made = Histogram()
    for value in values_us:
        made.add(value)
    return made


def encoded(payload: bytes, *, cookie: int = COMPRESSED_COOKIE, more: bytes = b"") -> str:
    packed = zlib.compress(payload) + more
    return base64.b64encode(OUTER.pack(cookie, len(packed)) + packed).decode()


def payload(counts: bytes = b"", **changes: float) -> bytes:
    header = {"cookie": COOKIE, "length": len(counts), "offset": 0, "digits": 3, "lowest": 1, "highest": HIGHEST_US}
    return INNER.pack(*{**header, "ratio": 1.0, **changes}.values()) + counts


@pytest.mark.parametrize(
    ("value_us", "slot", "middle_us"),
    [
        (0, 0, 0.0),
        (2_047, 2_047, 2_047.0),
        (2_048, 2_048, 2_048.5),  # from here a slot holds two values
        (2_049, 2_048, 2_048.5),
        (4_095, 3_071, 4_094.5),
        (4_096, 3_072, 4_097.5),  # from here four
        (1_000_000, 11_169, 1_000_191.5),  # 20 bits, 9 above 11: 9 x 1,024 + 10^6 / 512; the slot begins at 999,936
    ],
)
def test_slots(value_us: int, slot: int, middle_us: float) -> None:
    assert slot_of(value_us) == slot
    assert middle_of(slot) == middle_us


@given(VALUES)
def test_a_value_is_known_within_a_two_thousandth(value_us: int) -> None:
    assert abs(middle_of(slot_of(value_us)) - value_us) <= value_us / 2_048


def test_values_by_rank() -> None:
    ranked = histogram(30, 10, 20, 10).ranked()
    assert [ranked[rank] for rank in range(len(ranked))] == [10, 10, 20, 30]
    assert len(Histogram().ranked()) == 0


def test_no_rank_lies_beyond_a_least_and_greatest_that_are_known() -> None:
    ranked = histogram(3_000_000, 3_000_000).ranked(lowest_us=3_000_000, highest_us=3_000_000)
    assert (ranked[0], ranked[1]) == (3_000_000, 3_000_000)  # the slot's middle is 3,000,319.5


def test_whole_microseconds() -> None:
    assert histogram(0.4, 0.6, 1.4).counts == {0: 1, 1: 2}


@pytest.mark.parametrize("value_us", [-1, HIGHEST_US + 1])
def test_what_no_request_takes_is_refused(value_us: int) -> None:
    with pytest.raises(ValueError, match=r"µs is not between 0 and 86400000000 µs \(24 hours\)"):
        Histogram().add(value_us)


def test_merging_adds_counts() -> None:
    merged = histogram(10, 20)
    merged.merge(histogram(20, 30))
    assert merged.counts == {10: 1, 20: 2, 30: 1}
    assert merged.count == 4


@given(st.lists(st.tuples(VALUES, st.integers(1, 2**40)), max_size=40))
def test_the_reference_library_reads_what_we_write(values: list[tuple[int, int]]) -> None:
    ours = Histogram()
    theirs = HdrHistogram(1, HIGHEST_US, 3)
    for value_us, count in values:
        ours.add(value_us, count)
        theirs.record_value(value_us, count)
    read = HdrHistogram.decode(ours.encode().encode())
    assert read.get_total_count() == ours.count == theirs.get_total_count()
    assert {slot: read.get_count_at_index(slot) for slot in ours.counts} == ours.counts
    assert zlib.decompress(base64.b64decode(ours.encode())[8:]) == zlib.decompress(
        base64.b64decode(theirs.encode())[8:]
    )


@given(st.lists(VALUES, max_size=40))
def test_we_read_what_the_reference_library_writes(values_us: list[int]) -> None:
    theirs = HdrHistogram(1, HIGHEST_US, 3)
    for value_us in values_us:
        theirs.record_value(value_us)
    assert Histogram.decode(theirs.encode().decode()).counts == Counter(map(slot_of, values_us))


@given(st.dictionaries(st.integers(0, slot_of(HIGHEST_US)), st.integers(1, 2**62)))
def test_round_trip(counts: dict[int, int]) -> None:
    assert Histogram.decode(Histogram(counts).encode()).counts == counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 bytes are too few for a histogram"),
        ("ü", "string argument should contain only ASCII characters"),
        ("????", "Only base64 data is allowed"),
        (encoded(payload(), cookie=5), "the cookie is 0x5, not 0x1c849304"),
        (base64.b64encode(OUTER.pack(COMPRESSED_COOKIE, 9)).decode(), "the length is 9, not 0"),
        (base64.b64encode(OUTER.pack(COMPRESSED_COOKIE, 1) + b"?").decode(), "the compressed part ends too early"),
        (base64.b64encode(OUTER.pack(COMPRESSED_COOKIE, 3) + b"???").decode(), "not zlib: "),
        (encoded(payload(), more=b"x"), "the compressed part ends too early or too late"),
        (encoded(b"short"), "5 bytes are too few for a histogram's header of 40"),
        (encoded(payload(cookie=7)), "the inner cookie is 0x7, not 0x1c849303"),
        (encoded(payload(length=1)), "the length of the counts is 1, not 0"),
        (encoded(payload(offset=1)), "the index offset is 1, not 0"),
        (encoded(payload(digits=2)), "the number of significant digits is 2, not 3"),
        (encoded(payload(lowest=1_000)), "the lowest value is 1000, not 1"),
        (encoded(payload(ratio=0.5)), "the ratio is 0.5, not 1.0"),
        (encoded(payload(highest=1)), "the highest value 1 is not between 2 and 86400000000"),
        (encoded(payload(b"\x80")), "the counts end in the middle of a number"),
        (encoded(payload(b"\xff" * 9)), "the counts reach past slot"),
    ],
)
def test_what_is_no_histogram_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(")):
        Histogram.decode(text)


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(ValueError, match="the compressed part ends too early or too late"):
        Histogram.decode(encoded(bytes(50_000_000)))


def test_a_long_text_is_not_read() -> None:
    with pytest.raises(ValueError, match="those of the largest histogram"):
        Histogram.decode("A" * 1_000_000)


@given(st.text())
def test_any_text_is_a_histogram_or_an_error_of_one_kind(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (any words)
        Histogram.decode(text)


@given(st.binary(max_size=80))
def test_any_counts_are_a_histogram_or_an_error_of_one_kind(counts: bytes) -> None:
    try:
        read = Histogram.decode(encoded(payload(counts)))
    except ValueError:
        return
    assert all(count > 0 for count in read.counts.values())
