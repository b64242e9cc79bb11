"""A sparse HDR histogram of microseconds, and its standard encoding, which every HdrHistogram library reads.

Layout and encoding are those of HdrHistogram (Gil Tene, hdrhistogram.org; the reference is the Java library's
`AbstractHistogram`, encoding V2): values below 2,048 µs have a slot each; above, each doubling of the value is cut into
1,024 slots. So a value is known within 1/1,024 of itself, which is called three significant digits.
"""

from __future__ import annotations

import base64
import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from seatrial_load.measure.interval import (
    percentile_interval,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial_load.documents.distribution import Distribution, Interval
    from seatrial_load.measure.interval import Ranked


PERCENTS: Mapping[str, float] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}

US_PER_MS = 1_000.0
SIGNIFICANT_DIGITS = 3
LOWEST_US = 1
HIGHEST_US = 24 * 3600 * 1_000_000
HALF_BITS = 10  # 2,048 slots resolve three digits in a doubling; the lower half of them belongs to the one before
HALF = 1 << HALF_BITS
COMPRESSED_COOKIE = 0x1C849314
COOKIE = 0x1C849313
WORD_SIZE_BITS = 0xF0  # of a cookie; other writers leave them empty
OUTER = struct.Struct(">ii")  # cookie, bytes that follow
INNER = struct.Struct(">iiiiqqd")  # cookie, bytes of counts, offset, digits, lowest, highest, ratio to a floating value
MAX_VARINT_BYTES = 9
GROUP_BITS = 7
MORE = 1 << GROUP_BITS


def slot_of(value_us: int) -> int:
    """Return the slot of a value."""
    doublings = max(value_us.bit_length() - HALF_BITS - 1, 0)
    return doublings * HALF + (value_us >> doublings)


def middle_of(slot: int) -> float:
    """Return the middle of the values of a slot, µs: never further than 1/2,048 from any of them, below 2,048 exact."""
    doublings = max((slot >> HALF_BITS) - 1, 0)
    lowest = (slot - doublings * HALF) << doublings
    return lowest + ((1 << doublings) - 1) / 2


SLOTS = slot_of(HIGHEST_US) + 1
MAX_PAYLOAD_BYTES = INNER.size + SLOTS * MAX_VARINT_BYTES
MAX_TEXT_CHARACTERS = 4 * MAX_PAYLOAD_BYTES // 3  # zlib and base64 may lengthen what doesn't compress


@dataclass(slots=True)
class Histogram:
    """Counts of whole microseconds by slot.

    Attributes:
        counts: Number of values of each slot that has any.
    """

    counts: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts.values())

    def add(self, value_us: float, count: int = 1) -> None:
        """Add a value `count` times, rounded to a whole microsecond.

        Raises:
            ValueError: The value is below 0 or above 24 hours.
        """
        whole = round(value_us)
        if not 0 <= whole <= HIGHEST_US:
            raise ValueError(f"{value_us:g} µs is not between 0 and {HIGHEST_US} µs (24 hours)")
        slot = slot_of(whole)
        self.counts[slot] = self.counts.get(slot, 0) + count

    def merge(self, other: Histogram) -> None:
        """Add another histogram's values to this one's."""
        for slot, count in other.counts.items():
            self.counts[slot] = self.counts.get(slot, 0) + count

    def ranked(self, *, lowest_us: float = 0.0, highest_us: float = HIGHEST_US) -> RankedSlots:
        """Return the values in ascending order, within the width of their slots."""
        slots = sorted(self.counts)
        return RankedSlots(
            values_us=tuple(min(max(middle_of(slot), lowest_us), highest_us) for slot in slots),
            ends=tuple(accumulate(self.counts[slot] for slot in slots)),
        )

    def encode(self) -> str:
        """Write the histogram in the compressed V2 encoding, base64."""
        counts = b"".join(map(_varint, _runs(self.counts)))
        header = INNER.pack(COOKIE, len(counts), 0, SIGNIFICANT_DIGITS, LOWEST_US, HIGHEST_US, 1.0)
        packed = zlib.compress(header + counts)
        return base64.b64encode(OUTER.pack(COMPRESSED_COOKIE, len(packed)) + packed).decode()

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """Read the compressed V2 encoding strictly; no text makes it use more memory than the largest histogram.

        Raises:
            ValueError: The text is no such histogram, or not one of microseconds with three significant digits.
        """
        payload = _unpacked(text)
        if len(payload) < INNER.size:
            raise ValueError(f"{len(payload)} bytes are too few for a histogram's header of {INNER.size}")
        cookie, length, offset, digits, lowest, highest, ratio = INNER.unpack_from(payload)
        _expect("inner cookie", hex(cookie & ~WORD_SIZE_BITS), hex(COOKIE & ~WORD_SIZE_BITS))
        _expect("length of the counts", length, len(payload) - INNER.size)
        _expect("index offset", offset, 0)
        _expect("number of significant digits", digits, SIGNIFICANT_DIGITS)
        _expect("lowest value", lowest, LOWEST_US)
        _expect("ratio", ratio, 1.0)
        if not 2 * LOWEST_US <= highest <= HIGHEST_US:
            raise ValueError(f"the highest value {highest} is not between {2 * LOWEST_US} and {HIGHEST_US}")
        return cls(counts=dict(_slots(_numbers(payload[INNER.size :]))))


@dataclass(frozen=True, slots=True)
class RankedSlots:
    """A histogram's values in ascending order.

    Attributes:
        values_us: The value of each slot.
        ends: Number of values of this slot and the ones below.
    """

    values_us: tuple[float, ...]
    ends: tuple[int, ...]

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def __getitem__(self, rank: int, /) -> float:
        return self.values_us[bisect_right(self.ends, rank)]


def _runs(counts: Mapping[int, int]) -> Iterator[int]:
    # From slot 0 to the last used one: a count as it is, empty slots as minus their number.
    at = 0
    for slot in sorted(slot for slot, count in counts.items() if count):
        if slot > at:
            yield at - slot
        yield counts[slot]
        at = slot + 1


def _varint(number: int) -> bytes:
    # ZigZag LEB128: seven bits a byte, least first, but eight in the ninth.
    left = number << 1 if number >= 0 else (-number << 1) - 1
    groups = bytearray()
    while left >= MORE and len(groups) < MAX_VARINT_BYTES - 1:
        groups.append(left % MORE | MORE)
        left >>= GROUP_BITS
    groups.append(left)
    return bytes(groups)


def _unpacked(text: str) -> bytes:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ValueError(f"{len(text)} characters are more than {MAX_TEXT_CHARACTERS}, those of the largest histogram")
    packed = base64.b64decode(text, validate=True)  # binascii.Error is a ValueError
    if len(packed) < OUTER.size:
        raise ValueError(f"{len(packed)} bytes are too few for a histogram")
    cookie, length = OUTER.unpack_from(packed)
    _expect("cookie", hex(cookie & ~WORD_SIZE_BITS), hex(COMPRESSED_COOKIE & ~WORD_SIZE_BITS))
    _expect("length", length, len(packed) - OUTER.size)
    unpacker = zlib.decompressobj()
    try:
        payload = unpacker.decompress(packed[OUTER.size :], MAX_PAYLOAD_BYTES)
    except zlib.error as broken:
        raise ValueError(f"not zlib: {broken}") from broken
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("the compressed part ends too early or too late")
    return payload


def _expect(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise ValueError(f"the {what} is {actual}, not {expected}")


def _numbers(data: bytes) -> Iterator[int]:
    number = groups = 0
    for byte in data:
        last = groups == MAX_VARINT_BYTES - 1
        number |= (byte if last else byte % MORE) << GROUP_BITS * groups
        groups += 1
        if last or byte < MORE:
            yield -(number + 1 >> 1) if number & 1 else number >> 1
            number = groups = 0
    if groups:
        raise ValueError("the counts end in the middle of a number")


def _slots(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    slot = 0
    for number in numbers:
        after = slot + max(-number, 1)
        if after > SLOTS:
            raise ValueError(f"the counts reach past slot {SLOTS - 1}, that of 24 hours")
        if number > 0:
            yield slot, number
        slot = after


def percentile_bounds(values: Distribution, percent: float, *, tail: float) -> Interval | None:
    """Bound a percentile of a distribution with other confidence than its own intervals; None without a histogram."""
    if not values.histogram:
        return None
    ranked = Histogram.decode(values.histogram).ranked(highest_us=min(values.max * US_PER_MS, HIGHEST_US))
    return percentile_interval(Milliseconds(ranked), percent, tail=tail)


@dataclass(frozen=True, slots=True)
class Milliseconds:
    """Ranked values in microseconds, read as milliseconds."""

    ranked_us: Ranked

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.ranked_us)

    def __getitem__(self, rank: int, /) -> float:
        """Return one of them, in milliseconds."""
        return self.ranked_us[rank] / US_PER_MS
