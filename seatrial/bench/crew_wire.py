"""What a worker of the crew tells its parent over a socket pair, and back: frames of kind, length and content.

A report is one line of JSON, then all times of tokens as doubles: a record's times are taken from there in turn.
"""

from __future__ import annotations

import json
import struct
from array import array
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from seatrial.bench.evidence import ClientEvidence
from seatrial.bench.record import RequestRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READY = b"R"
SECONDS = b"S"
REPORT = b"D"
REFUSED = b"E"
BROKEN = b"X"
_FRAME = struct.Struct("!cQ")
_LENGTH = struct.Struct("!Q")
_PLAIN_FIELDS = tuple(field.name for field in fields(RequestRecord) if field.name != "token_times_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """What one worker brought home."""

    records: tuple[RequestRecord, ...]
    evidence: ClientEvidence
    cut: bool
    started_s: float
    ended_s: float


def frame(kind: bytes, content: bytes = b"") -> bytes:
    """Write one frame."""
    return _FRAME.pack(kind, len(content)) + content


class FrameReader:
    """Takes bytes in pieces of any size and returns the frames that they completed."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Take the next bytes."""
        self._buffer += data
        while len(self._buffer) >= _FRAME.size:
            kind, length = _FRAME.unpack_from(self._buffer)
            end = _FRAME.size + length
            if len(self._buffer) < end:
                return
            content = bytes(self._buffer[_FRAME.size : end])
            del self._buffer[:end]
            yield kind, content


def write_report(report: WorkerReport) -> bytes:
    """Write a report."""
    times_s = array("d")
    rows = []
    for record in report.records:
        times_s.extend(record.token_times_s)
        rows.append([len(record.token_times_s), *[getattr(record, name) for name in _PLAIN_FIELDS]])
    head = {
        "records": rows,
        "evidence": asdict(report.evidence),
        "cut": report.cut,
        "started_s": report.started_s,
        "ended_s": report.ended_s,
    }
    line = json.dumps(head).encode()
    return _LENGTH.pack(len(line)) + line + times_s.tobytes()


def read_report(content: bytes) -> WorkerReport:
    """Read a report; it comes from this very program, so that what is wrong in it is a defect."""
    (length,) = _LENGTH.unpack_from(content)
    head = json.loads(content[_LENGTH.size : _LENGTH.size + length])
    times_s = array("d")
    times_s.frombytes(content[_LENGTH.size + length :])
    return WorkerReport(
        records=tuple(_records(head["records"], times_s)),
        evidence=ClientEvidence(**head["evidence"]),
        cut=head["cut"],
        started_s=head["started_s"],
        ended_s=head["ended_s"],
    )


def write_seconds(seconds: Sequence[float]) -> bytes:
    """Write durations."""
    return array("d", seconds).tobytes()


def read_seconds(content: bytes) -> array[float]:
    """Read durations."""
    seconds = array("d")
    seconds.frombytes(content)
    return seconds


def _records(rows: list[list[object]], times_s: array[float]) -> Iterator[RequestRecord]:
    start = 0
    for count, *values in rows:
        end = start + count  # type: ignore[operator]  # written above
        plain = dict(zip(_PLAIN_FIELDS, values, strict=True))
        plain["retried"] = tuple(plain["retried"])  # type: ignore[arg-type]  # likewise
        yield RequestRecord(token_times_s=tuple(times_s[start:end]), **plain)  # type: ignore[arg-type]  # likewise
        start = end
