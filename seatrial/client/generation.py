"""One request and its answer: whole, or as a stream of pieces."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from seatrial.client.alias import at_target
from seatrial.client.transport import (
    UNKNOWN_END_RULE,
    InvocationError,
    check_size,
    checked,
    failure_of_event,
    failures_of,
    invocation_arguments,
)
from seatrial_load.decode.failure import Failure, shorten
from seatrial_load.payload.answer import (
    DONE,
    AnswerReader,
    Completion,
    LineReader,
    Usage,
    output_tokens,
    read_answer,
    was_cut,
)
from seatrial_load.payload.json_text import REQUEST_RULE, AnswerError, RequestError
from seatrial_load.payload.request import DEFAULTS, WHERE, message, request_body
from seatrial_load.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from botocore.eventstream import EventStream
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient
    from mypy_boto3_sagemaker_runtime.type_defs import ResponseStreamTypeDef

    from seatrial.client.alias import Alias
    from seatrial.client.transport import Target
    from seatrial_load.payload.answer import Piece
    from seatrial_load.payload.request import Options, Prompt


_EXCEPTIONS = ("ModelStreamError", "InternalStreamFailure")


def stream_parts(events: Iterable[Mapping[str, object]], *, where: str = "stream") -> Iterator[bytes]:
    """Yield the bytes of each `PayloadPart`, as they come; a part's borders mean nothing.

    Raises:
        InvocationError: SEA372, the stream carried `ModelStreamError` or `InternalStreamFailure`, it broke, or it
            carried more than 32 MiB.
    """
    received_bytes = 0
    with failures_of(where):
        for event in events:
            for name in _EXCEPTIONS:
                if name in event:
                    raise InvocationError.because(_failure(name, event[name]), where=where)
            part = event.get("PayloadPart")
            data = part.get("Bytes") if isinstance(part, dict) else None
            if isinstance(data, bytes):
                received_bytes += len(data)
                check_size(received_bytes, where)
                yield data


def stream_lines(events: Iterable[Mapping[str, object]], *, where: str = "stream") -> Iterator[bytes]:
    """Yield each JSON text, whether the container writes JSON lines or server-sent events.

    It is put together across the borders of parts and the lines of an event; `data:`, comments, other fields, empty
    lines and `[DONE]` are left out.

    Raises:
        InvocationError: SEA372, as of `stream_parts`.
        AnswerError: SEA371, a line or an event has more than 1 MiB.
    """
    reader = LineReader()
    for data in stream_parts(events, where=where):
        yield from (line for line in reader.feed(data) if line != DONE)
    yield from (line for line in reader.finish() if line != DONE)


def _failure(name: str, content: object) -> Failure:
    event = content if isinstance(content, dict) else {}
    error = {"Code": name, "Message": event.get("Message")}
    return failure_of_event({"Error": error, "ErrorCode": event.get("ErrorCode")})


_PIECE_BYTES = 1_048_576


def generate(
    client: SageMakerRuntimeClient, target: Target | Alias, prompt: Prompt, options: Options = DEFAULTS
) -> Completion:
    """Ask for an answer and wait for the whole of it (SageMaker allows 60 s).

    Args:
        client: `boto3.client("sagemaker-runtime", config=client_config())`.
        target: Where, and in which schema; an `Alias` finds the endpoint that serves at the moment.

    Raises:
        RequestError: SEA370, the schema can't say it.
        AnswerError: SEA371, the answer has no known shape.
        InvocationError: SEA372, the endpoint did not answer, or answered with an error.
    """
    body = invoke_endpoint(client, target, request_body(target.schema, prompt, options))
    return checked(read_answer(target.schema, body), target.where)


def generate_stream(
    client: SageMakerRuntimeClient, target: Target | Alias, prompt: Prompt, options: Options = DEFAULTS
) -> GenerationStream:
    """Ask for an answer that comes token by token (SageMaker allows 8 minutes).

    Raises:
        RequestError: SEA370, the schema can't say it.
        InvocationError: SEA372, the endpoint did not answer.
    """
    body = request_body(target.schema, prompt, options, stream=True)
    return at_target(target, lambda endpoint: _open_stream(client, endpoint, body))


def _open_stream(client: SageMakerRuntimeClient, target: Target, body: bytes) -> GenerationStream:
    arguments = invocation_arguments(target, body, stream=True)
    with failures_of(target.where):
        answer = client.invoke_endpoint_with_response_stream(**arguments)
    return GenerationStream(answer["Body"], target)


def invoke_endpoint(client: SageMakerRuntimeClient, target: Target | Alias, body: bytes) -> bytes:
    """Send a body as it is and return the whole answer's bytes.

    Raises:
        InvocationError: SEA372, the endpoint did not answer, or answered with an error.
    """
    return at_target(target, lambda endpoint: _invoke(client, endpoint, body))


def _invoke(client: SageMakerRuntimeClient, target: Target, body: bytes) -> bytes:
    arguments = invocation_arguments(target, body, stream=False)
    with failures_of(target.where), closing(client.invoke_endpoint(**arguments)["Body"]) as answer:
        content = bytearray()
        # Piece by piece, so that an answer beyond the limit is refused before it fills the memory.
        while piece := answer.read(_PIECE_BYTES):
            content += piece
            check_size(len(content), target.where)
        return bytes(content)


class GenerationStream:
    """The pieces of an answer, in order, each as soon as its line is complete; iterate once.

    Leave it by the end of the iteration, or by `close` (a `with` block does that): the connection is given up then, and
    the container stops generating.
    """

    __slots__ = ("_events", "_reader", "_target")

    def __init__(self, events: EventStream[ResponseStreamTypeDef], target: Target) -> None:
        self._events = events
        self._target = target
        self._reader = AnswerReader(target.schema)

    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces.

        Raises:
            InvocationError: SEA372, the stream carried an error, broke, or ended before its last line.
        """
        try:
            for data in stream_parts(self._events, where=self._target.where):
                yield from self._reader.feed(data)
            yield from self._reader.finish()
        except AnswerError as malformed:
            failure = Failure("protocol", shorten(malformed.problems[0].message))
            raise InvocationError.because(failure, where=self._target.where) from malformed
        finally:
            self.close()
        checked(self.completion, self._target.where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def completion(self) -> Completion:
        """The completion so far; whole after the iteration, the rest after an error."""
        return self._reader.completion()

    def close(self) -> None:
        """Give up the connection."""
        self._events.close()


MAX_ROUNDS = 8
_OPEN_LAST_MESSAGE = {"continue_final_message": True, "add_generation_prompt": False}


def continue_until_stop(
    client: SageMakerRuntimeClient,
    target: Target | Alias,
    prompt: Prompt,
    options: Options = DEFAULTS,
    *,
    max_rounds: int = MAX_ROUNDS,
) -> Completion:
    """Ask again, with what was written so far, until the text ends by itself; return the whole as one completion.

    Each round may write `options.max_tokens`. The finish reason stays `LENGTH` when the rounds are used up, or when the
    container refuses the longer prompt (the context is full). A text that was cut inside a word may be split into
    other tokens than one that was never cut, and a stop sequence that spans two rounds isn't seen.

    Args:
        target: As of `generate`. Chat is continued by vLLM's and SGLang's `continue_final_message`; TGI's messages
            can't be continued, its own schema can.

    Raises:
        RequestError: SEA370, the schema can't say it, or the limit of a request isn't known.
        AnswerError: SEA371, an answer has no known shape; SEA373, one doesn't show whether it was cut.
        InvocationError: SEA372, the endpoint did not answer the first round, or failed in a later one.
    """
    rounds: list[Completion] = []
    try:
        rounds.extend(generate_rounds(client, target, prompt, options, max_rounds=max_rounds))
    except InvocationError as refused:
        # A refused longer prompt means that the context is full: what was written so far is the answer.
        if not rounds or refused.failure.error != "validation":
            raise
    first, last = rounds[0], rounds[-1]
    counts = [output_tokens(completion) for completion in rounds]
    known = [count for count in counts if count is not None]
    tokens = [completion.tokens for completion in rounds if completion.tokens is not None]
    return replace(
        last,
        text="".join(completion.text for completion in rounds),
        reasoning="".join(completion.reasoning or "" for completion in rounds) or None,
        tokens=tuple(token for part in tokens for token in part) if len(tokens) == len(rounds) else None,
        usage=Usage(first.usage.input_tokens, sum(known) if len(known) == len(counts) else None),
    )


def generate_rounds(
    client: SageMakerRuntimeClient,
    target: Target | Alias,
    prompt: Prompt,
    options: Options = DEFAULTS,
    *,
    max_rounds: int = MAX_ROUNDS,
) -> Iterator[Completion]:
    """Yield the completion of each round of `continue_until_stop`, so that nothing is lost when a later one fails.

    Raises:
        RequestError: SEA370, as of `continue_until_stop`.
        AnswerError: SEA371 or SEA373, likewise.
        InvocationError: SEA372, the endpoint did not answer, or answered with an error.
    """
    limit = options.max_tokens or FACTS[target.schema].default_output_tokens
    if limit is None:
        raise RequestError.of(REQUEST_RULE, "needed to detect a truncated answer", where=WHERE, field="max_tokens")
    written = ""
    for _ in range(max_rounds):
        text, how = _continued(target.schema, prompt, options, written)
        completion = generate(client, target, text, how)
        yield completion
        written += completion.text
        # An empty round would be repeated until the rounds are used up.
        if not completion.text:
            return
        cut = was_cut(completion, limit)
        if cut is None:
            message = "the answer has no finish reason and no token count"
            raise AnswerError.of(UNKNOWN_END_RULE, message, where=target.where)
        if not cut:
            return


def _continued(schema: Schema, prompt: Prompt, options: Options, written: str) -> tuple[Prompt, Options]:
    if not written:
        return prompt, options
    if schema is not Schema.OPENAI_CHAT:
        return f"{prompt}{written}", options
    messages = [message("user", prompt)] if isinstance(prompt, str) else [*prompt]
    return [*messages, message("assistant", written)], replace(options, extra={**options.extra, **_OPEN_LAST_MESSAGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """The probability that the model itself gave to its answer; it is no measure of the answer being true.

    Attributes:
        tokens: Tokens counted, N.
        log_probability: Σ ln pᵢ over the tokens: the logarithm of the probability of the whole answer.
        per_token: exp(Σ ln pᵢ / N), the geometric mean of the tokens' probabilities, 0 to 1. It doesn't fall with
            length, so answers of different lengths compare.
        perplexity: exp(-Σ ln pᵢ / N), its inverse, from 1; infinite when it exceeds what a float can say.
        lowest: The probability of the least probable token.
    """

    tokens: int
    log_probability: float
    per_token: float
    perplexity: float
    lowest: float


def confidence(completion: Completion) -> Confidence | None:
    """Return the confidence; None when the answer has no tokens or one has no log-probability.

    Ask OpenAI's schemas for them with `Options(log_probabilities=True)`; LMI's and TGI's have them anyway. With
    sampling, engines differ in whether temperature and penalties are in the numbers.

    Source of the formulas: Jurafsky and Martin, Speech and Language Processing, chapter on n-gram language models
    (perplexity is the inverse probability, normalized by length).
    """
    logarithms = [token.log_probability for token in completion.tokens or ()]
    known = [value for value in logarithms if value is not None]
    if not known or len(known) < len(logarithms):
        return None
    total = math.fsum(known)
    mean = total / len(known)
    return Confidence(
        tokens=len(known),
        log_probability=total,
        per_token=_exp(mean),
        perplexity=_exp(-mean),
        lowest=_exp(min(known)),
    )


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
