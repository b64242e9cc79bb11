"""From raw exchange to request record: HTTP body, event stream, token lines; every malformation becomes a record."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO, TypeAlias
from urllib.parse import urlsplit

from seatrial_base.field_facts import made_of
from seatrial_base.units import MS_PER_S
from seatrial_load.decode.event_stream import MEDIA_TYPE, FrameDecoder
from seatrial_load.decode.failure import (
    ErrorClass,
    Failure,
    failure_of_malformed,
    failure_of_response,
    failure_of_type,
    masked,
    shorten,
)
from seatrial_load.decode.http1 import ProtocolError
from seatrial_load.decode.timed_answer import (
    ANYTHING,
    Judged,
    TimedAnswer,
    TimedAnswerReader,
    contradiction,
    judged,
    read_whole,
)
from seatrial_load.documents.result import DoubtKind  # noqa: TC001 (likewise)
from seatrial_load.documents.strict_json import read_document, write_document
from seatrial_load.payload.answer import DONE, LineReader, generated_text, settled_count
from seatrial_load.payload.json_text import AnswerError, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.decode.exchange import Exchange, Inbox
    from seatrial_load.decode.http1 import ResponseHead
    from seatrial_load.decode.timed_answer import AnswerTerms

TokenSource: TypeAlias = Literal["events", "reported"]
ENGINE_HEADER = "x-seatrial-engine"
# Of the embedded AWS: no model serves this address.
NO_MODEL_HEADER = "x-seatrial-no-model"
MAX_EARLY_BYTES = 4_096
# Read of a response that isn't 200: the message of an error is at its beginning.
MAX_ERROR_BYTES = 65_536
_NOTHING = TimedAnswer((), finished=False, finished_at_s=None, reported_tokens=None, input_tokens=None,
                      finish_reason=None, failure=None)  # fmt: skip
_REDIRECTS = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)
DIGITS = 3  # of a millisecond: whole microseconds


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of the trial; times are seconds of the trial's monotonic clock, `None` is "not known".

    Attributes:
        sent_s: Just before the first byte of the request was handed to the socket.
        first_token_s: Arrival of the bytes that completed the first token event; None when no token streamed.
        token_times_s: Arrival of every token event; bytes that arrived together share their time.
        last_token_s: Arrival of the last token event, or of the whole answer when nothing streamed; None on failure.
        ended_s: When the answer was complete, or the request was given up.
        input_tokens: Length of the prompt, where the endpoint reported it.
        output_tokens: Number of generated tokens.
        output_tokens_from: `events` when token events were counted, `reported` when the endpoint's own count is used.
        error: The class of the failure; None on success.
        status: The HTTP status; None without a response.
        detail: The service's message on the failure; empty on success.
        engine: The header by which a simulated or local engine announces itself; empty on AWS.
        index: The request's number in the trial; the prompts and a trace's lengths follow from it.
        due_s: When an open loop had to send it; None in a closed loop. Its latencies count from then: what it waited
            for a free connection, a user would have waited too.
        parts: Pieces that carried the answer: frames of an event stream, SSE events or chunks; None when not streamed.
        retried: The failures that were repeated before this answer, in order; its times start with the first attempt.
        doubts: What is doubtful of an answer that succeeded.
        other_model: The first model that it names, where another was requested or named before; else empty.
        text_digest: CRC-32 of its text, where no other request has the same prompt; else None.
        turn: Which turn of its conversation it is, from 1; 0 of a single request.
        cached_tokens: Tokens of the prompt that came from a cache, where the endpoint reported both; at most all.
    """

    sent_s: float
    first_token_s: float | None
    token_times_s: tuple[float, ...]
    last_token_s: float | None
    ended_s: float
    input_tokens: int | None
    output_tokens: int | None
    output_tokens_from: TokenSource | None
    error: ErrorClass | None
    status: int | None
    detail: str
    engine: str = ""
    index: int = 0
    due_s: float | None = None
    parts: int | None = None
    retried: tuple[ErrorClass, ...] = ()
    doubts: tuple[DoubtKind, ...] = ()
    other_model: str = ""
    text_digest: int | None = None
    turn: int = 0
    cached_tokens: int | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the request was answered in full."""
        return self.error is None

    @property
    def order(self) -> tuple[float, int]:
        """Its place among a level's requests: by number; of turns by time, since their numbers go by conversation."""
        return (self.sent_s if self.turn else 0.0, self.index)


class _Body(NamedTuple):
    completion: TimedAnswer = _NOTHING
    failure: Failure | None = None
    parts: int | None = None


def record_of(exchange: Exchange, *, stream: bool, secret: str = "", terms: AnswerTerms = ANYTHING) -> RequestRecord:
    """Decode an exchange. The endpoint's own error outranks how the connection ended.

    Args:
        secret: The key that was sent, hidden where the endpoint repeats it.
    """
    answer, body_failure, parts = _read(exchange.inbox, stream=stream)
    failure = _outranking(exchange, body_failure) or contradiction(answer, terms)
    head = exchange.inbox.head
    count, source = (None, None) if failure else generated_tokens(answer, terms.most_tokens)
    seen = Judged() if failure else judged(answer, terms)
    times_s = tuple([event.at_s for event in answer.events])
    detail = failure.detail if failure else ""
    if failure and times_s:
        detail = shorten(f"{detail} (after {len(times_s)} token events)")
    return RequestRecord(
        sent_s=exchange.sent_s,
        first_token_s=times_s[0] if times_s else None,
        token_times_s=times_s,
        last_token_s=None if failure else times_s[-1] if times_s else answer.finished_at_s,
        ended_s=exchange.ended_s,
        input_tokens=answer.input_tokens,
        output_tokens=count,
        output_tokens_from=source,
        error=failure.error if failure else None,
        status=head.status if head else None,
        detail=masked(detail, secret),
        engine=shorten(head.headers.get(ENGINE_HEADER, "")) if head else "",
        index=exchange.index,
        due_s=exchange.due_s,
        parts=parts or None,
        retried=exchange.retried,
        doubts=seen.doubts,
        other_model=seen.other_model,
        text_digest=seen.text_digest,
        turn=exchange.turn,
        cached_tokens=answer.prompt_tokens_cached,
    )


def answer_text(exchange: Exchange, *, stream: bool) -> str | None:
    """Return the text of an answer, for the next turn of its conversation; None where it failed.

    It reads the answer while the clock runs, and of a stream nothing but its text: some 4 us a token.
    """
    head = exchange.inbox.head
    if exchange.failure is not None or head is None or head.status != HTTPStatus.OK:
        return None
    if not stream:
        body = _read(exchange.inbox, stream=False)
        return body.completion.text if body.failure is None else None
    try:
        return _streamed_text(exchange.inbox, framed=MEDIA_TYPE in head.headers.get("content-type", ""))
    except (ProtocolError, AnswerError):
        return None


def _streamed_text(inbox: Inbox, *, framed: bool) -> str | None:
    parts = [part for _, part in (_unframed(inbox) if framed else inbox.body)]
    body = b"".join([part for part in parts if isinstance(part, bytes)])
    lines = LineReader()
    texts = [generated_text(parse_json(line)) for line in (*lines.feed(body), *lines.finish()) if line != DONE]
    known = [text for text in texts if text is not None]
    whole = len(known) == len(texts) and all(isinstance(part, bytes) for part in parts)
    return "".join(known) if whole else None


def exchange_failure(exchange: Exchange) -> Failure | None:
    """Return why a request failed, while the clock runs: a 200 is only read where it is as short as an error's."""
    head = exchange.inbox.head
    if head is None or (head.status == HTTPStatus.OK and exchange.inbox.received_bytes > MAX_EARLY_BYTES):
        return exchange.failure
    return _outranking(exchange, _read(exchange.inbox, stream=True).failure)


def _outranking(exchange: Exchange, body_failure: Failure | None) -> Failure | None:
    given_up = exchange.failure
    if given_up is not None and given_up.error == "answer_too_large":
        return given_up
    return body_failure if body_failure and body_failure.error != "protocol" else given_up or body_failure


def generated_tokens(answer: TimedAnswer, most: int | None = None) -> tuple[int | None, TokenSource | None]:
    """Choose the number of generated tokens, and return its source.

    `settled_count` chooses; an answer that wasn't streamed has only the endpoint's own count. More than were requested
    are not counted.
    """
    events = len(answer.events)
    count = settled_count(events, answer.reported_tokens)
    if count is None:
        return None, None
    return count if most is None else min(count, most), "events" if count == events else "reported"


def _read(inbox: Inbox, *, stream: bool) -> _Body:
    """Read the response, however little arrived; a protocol failure is returned, not raised."""
    head = inbox.head
    if head is None:
        return _Body(failure=Failure("protocol", "no response arrived"))
    if head.status in _REDIRECTS:
        return _Body(failure=_redirected(head))
    if head.status != HTTPStatus.OK:
        return _Body(failure=failure_of_response(head.status, head.headers, _beginning(inbox)))
    if stream:
        return _read_stream(inbox, framed=_is_framed(head))
    try:
        answer = read_whole(inbox.last_arrival_s, b"".join(part for _, part in inbox.body))
    except ProtocolError as malformed:
        return _Body(failure=failure_of_malformed(malformed))
    return _Body(answer, _failure_in(answer))


def whole_body(inbox: Inbox) -> bytes:
    """Return the body of a response that was read without a failure, freed from the frames of an event stream."""
    parts = _unframed(inbox) if _is_framed(inbox.head) else inbox.body
    return b"".join(part for _, part in parts if isinstance(part, bytes))


def _is_framed(head: ResponseHead | None) -> bool:
    return head is not None and MEDIA_TYPE in head.headers.get("content-type", "")


def _beginning(inbox: Inbox) -> bytes:
    beginning = b""
    for _, part in inbox.body:
        beginning += part
        if len(beginning) >= MAX_ERROR_BYTES:
            break
    return beginning[:MAX_ERROR_BYTES]


def _redirected(head: ResponseHead) -> Failure:
    # The host alone is named: a query string may hold a signature.
    location = head.headers.get("location", "")
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    where = host or ("another path of the same host" if location else "nowhere")
    return Failure("protocol", shorten(f"HTTP {head.status}: redirect to {where} refused; a trial loads one endpoint"))


def _read_stream(inbox: Inbox, *, framed: bool) -> _Body:
    reader = TimedAnswerReader()
    parts = 0
    refused: Failure | None = None
    try:
        for at_s, part in _unframed(inbox) if framed else inbox.body:
            if isinstance(part, Failure):
                refused = part
                break
            parts += 1
            reader.feed(at_s, part)
        else:
            reader.finish(inbox.last_arrival_s)
    except ProtocolError as malformed:
        refused = reader.completion().failure or failure_of_malformed(malformed)
    answer = reader.completion()
    return _Body(answer, refused or _failure_in(answer), parts if framed else reader.documents)


def _unframed(inbox: Inbox) -> Iterator[tuple[float, bytes | Failure]]:
    decoder = FrameDecoder()
    for at_s, part in inbox.body:
        for frame in decoder.feed(part):
            # The protocol's own headers mark an event, a modeled exception, or an unmodeled error.
            match frame.headers.get(":message-type"):
                case "exception":
                    name, message = frame.headers.get(":exception-type", "exception"), frame.payload
                    yield at_s, failure_of_type(name, message.decode(errors="replace"))
                case "error":
                    message_text = frame.headers.get(":error-message", frame.payload.decode(errors="replace"))
                    yield at_s, failure_of_type(frame.headers.get(":error-code", "error"), message_text)
                case _:
                    yield at_s, frame.payload
    decoder.finish()


def _failure_in(answer: TimedAnswer) -> Failure | None:
    if answer.failure is None and not answer.finished:
        return Failure("protocol", "the answer ended before its closing line")
    if answer.failure is None and answer.finished_at_s is None:
        return Failure("protocol", "the answer has only its closing line")
    return answer.failure


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
    began_s = min((record.sent_s for record in records), default=0.0)

    def since(at_s: float) -> float:
        return round((at_s - began_s) * MS_PER_S, DIGITS)

    for place, record in enumerate(sorted(records, key=attrgetter("order"))):
        raw = made_of(
            RawRequest,
            record,
            concurrency=concurrency,
            ramp=place < ramp,
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
