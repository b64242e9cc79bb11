"""Every request of a trial as one line of JSON, for computations of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from seatrial_base.field_facts import made_of
from seatrial_base.units import MS_PER_S
from seatrial_load.decode.failure import ErrorClass  # noqa: TC001 (the strict reader resolves the fields' types)
from seatrial_load.decode.response import TokenSource  # noqa: TC001 (likewise)
from seatrial_load.documents.result import DoubtKind  # noqa: TC001 (likewise)
from seatrial_load.documents.strict_json import read_document, write_document
from seatrial_load.metrics.request_metrics import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.decode.response import RequestRecord


DIGITS = 3  # of a millisecond: whole microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """One request; times are milliseconds since the first sending of its level, as in `RequestRecord` otherwise.

    Attributes:
        concurrency: Requests in flight per copy, of its level.
        ramp: Whether it is one of those that aren't measured.
    """

    concurrency: int
    ramp: bool
    index: int
    sent_ms: float
    due_ms: float | None
    first_token_ms: float | None
    last_token_ms: float | None
    ended_ms: float
    token_times_ms: tuple[float, ...]
    input_tokens: int | None
    output_tokens: int | None
    output_tokens_from: TokenSource | None
    parts: int | None
    error: ErrorClass | None
    status: int | None
    detail: str
    retried: tuple[ErrorClass, ...]
    doubts: tuple[DoubtKind, ...] = ()
    turn: int = 0
    cached_tokens: int | None = None


def write_records(into: TextIO | Path, records: Sequence[RequestRecord], *, concurrency: int, ramp: int = 0) -> None:
    """Append the requests of one level, a line each, in the order of their numbers.

    Args:
        concurrency: Requests in flight per copy, of the level.
        ramp: Number of first requests that aren't measured.
    """
    if isinstance(into, Path):
        with into.open("a", encoding="utf-8") as file:
            write_records(file, records, concurrency=concurrency, ramp=ramp)
        return
    first, measured = split(records, ramp)
    began_s = min((record.sent_s for record in records), default=0.0)

    def since(at_s: float) -> float:
        return round((at_s - began_s) * MS_PER_S, DIGITS)

    for is_ramp, part in ((True, first), (False, measured)):
        for record in part:
            raw = made_of(
                RawRequest,
                record,
                concurrency=concurrency,
                ramp=is_ramp,
                sent_ms=since(record.sent_s),
                due_ms=None if record.due_s is None else since(record.due_s),
                first_token_ms=None if record.first_token_s is None else since(record.first_token_s),
                last_token_ms=None if record.last_token_s is None else since(record.last_token_s),
                ended_ms=since(record.ended_s),
                token_times_ms=tuple(map(since, record.token_times_s)),
            )
            into.write(f"{write_document(raw)}\n")


def read_records(path: Path) -> Iterator[RawRequest]:
    """Read what `write_records` wrote, strictly.

    Raises:
        BenchError: SEA501, with every problem of the first line that has one.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            yield read_document(RawRequest, line, where=f"{path}:{number}")
