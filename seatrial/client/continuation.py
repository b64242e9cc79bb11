"""Going on where the limit on tokens cut an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.client.error import UNKNOWN_END_RULE, InvocationError
from seatrial.client.generation import generate
from seatrial.payload.answer import Completion, Usage
from seatrial.payload.cut import output_tokens, was_cut
from seatrial.payload.error import REQUEST_RULE, AnswerError, RequestError
from seatrial.payload.options import WHERE
from seatrial.payload.request import DEFAULTS, message
from seatrial.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

    from seatrial.client.target import Target
    from seatrial.payload.answer import Token
    from seatrial.payload.options import Options
    from seatrial.payload.request import Prompt

MAX_ROUNDS = 8
_OPEN_LAST_MESSAGE = {"continue_final_message": True, "add_generation_prompt": False}


def continue_until_stop(
    client: SageMakerRuntimeClient,
    target: Target,
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
        client: As of `generate`.
        target: As of `generate`. Chat is continued by vLLM's and SGLang's `continue_final_message`; TGI's messages
            can't be continued, its own schema can.
        prompt: As of `generate`.
        options: As of `generate`.
        max_rounds: The most requests to send.

    Raises:
        RequestError: SEA370, the schema can't say it, or the limit of a request isn't known.
        AnswerError: SEA371, an answer has no known shape; SEA373, one doesn't tell whether it was cut.
        InvocationError: SEA372, the endpoint did not answer the first round, or failed in a later one.
    """
    rounds: list[Completion] = []
    try:
        rounds.extend(generate_rounds(client, target, prompt, options, max_rounds=max_rounds))
    except InvocationError as refused:
        if not rounds or refused.failure.error != "validation":
            raise
    return _joined(rounds)


def generate_rounds(
    client: SageMakerRuntimeClient,
    target: Target,
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
        raise RequestError.of(REQUEST_RULE, "needed to know a cut answer", where=WHERE, field="max_tokens")
    written = ""
    for _ in range(max_rounds):
        asked, how = _continued(target.schema, prompt, options, written)
        completion = generate(client, target, asked, how)
        yield completion
        written += completion.text
        if not completion.text or not _is_cut(completion, limit, target.where):
            return


def _is_cut(completion: Completion, limit: int, where: str) -> bool:
    cut = was_cut(completion, limit)
    if cut is None:
        raise AnswerError.of(UNKNOWN_END_RULE, "neither a finish reason nor a count of tokens is told", where=where)
    return cut


def _continued(schema: Schema, prompt: Prompt, options: Options, written: str) -> tuple[Prompt, Options]:
    if not written:
        return prompt, options
    if schema is not Schema.OPENAI_CHAT:
        return f"{prompt}{written}", options
    messages = [message("user", prompt)] if isinstance(prompt, str) else [*prompt]
    return [*messages, message("assistant", written)], replace(options, extra={**options.extra, **_OPEN_LAST_MESSAGE})


def _joined(rounds: Sequence[Completion]) -> Completion:
    first, last = rounds[0], rounds[-1]
    counts = [output_tokens(completion) for completion in rounds]
    known = [count for count in counts if count is not None]
    return replace(
        last,
        text="".join(completion.text for completion in rounds),
        reasoning="".join(completion.reasoning or "" for completion in rounds) or None,
        tokens=_all_tokens(rounds),
        usage=Usage(first.usage.input_tokens, sum(known) if len(known) == len(counts) else None),
    )


def _all_tokens(rounds: Sequence[Completion]) -> tuple[Token, ...] | None:
    told = [completion.tokens for completion in rounds if completion.tokens is not None]
    return tuple(token for tokens in told for token in tokens) if len(told) == len(rounds) else None
