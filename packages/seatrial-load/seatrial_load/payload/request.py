"""The body of a request, in each schema: its options and its prompt; an option left out is the container's default."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from seatrial_base.findings import Finding, Place
from seatrial_load.payload.json_text import REQUEST_RULE, Json, RequestError, write_json
from seatrial_load.payload.schema import FACTS, Schema, SchemaFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial_load.payload.json_text import Json


WHERE = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to generate.

    Attributes:
        temperature: 0 is greedy.
        top_p: Share of the probability mass to draw from, above 0 and at most 1 (TGI: below 1).
        repetition_penalty: 1 is none.
        seed: Of the random draws.
        ignore_eos: Generate past the end of the text, up to `max_tokens`.
        counts: Request the counts of tokens at the end of a stream; only OpenAI's schemas need it.
        log_probabilities: Request the log-probability of each token. The generate schemas (LMI, TGI) have it anyway.
        extra: More keys, spelled as the engine does: parameters of a generate schema, top-level keys of OpenAI's.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    counts: bool = True
    log_probabilities: bool = False
    extra: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def samples(self) -> bool | None:
        """Whether tokens are drawn at random; None leaves it to the container."""
        if self.temperature == 0:
            return False
        drawn = any(value is not None for value in (self.temperature, self.top_p, self.top_k))
        return True if drawn else None


def check_options(schema: Schema, options: Options) -> None:
    """Check that the schema has every option and that every value is possible.

    Raises:
        RequestError: SEA370, with every problem.
    """
    wrong = (*_impossible(options), *_contradictory(schema, options))
    if wrong:
        raise RequestError(Finding(REQUEST_RULE, Place.at(WHERE, name), message) for name, message in wrong)


def _impossible(options: Options) -> Iterator[tuple[str, str]]:
    names = ("max_tokens", "top_k", "top_p", "repetition_penalty")
    numbers: Mapping[str, float | None] = {name: getattr(options, name) for name in names}
    for name, number in numbers.items():
        if number is not None and not (number > 0 and math.isfinite(number)):
            yield name, f"{number:g} is not above 0"
    if options.top_p is not None and options.top_p > 1:
        yield "top_p", f"{options.top_p:g} exceeds 1"
    if options.temperature is not None and not (options.temperature >= 0 and math.isfinite(options.temperature)):
        yield "temperature", f"{options.temperature:g} is not a number of at least 0"
    if "" in options.stop:
        yield "stop", "an empty string would stop every generation"


def _contradictory(schema: Schema, options: Options) -> Iterator[tuple[str, str]]:
    for name in ("top_p", "top_k"):
        if options.temperature == 0 and getattr(options, name) is not None:
            yield name, "has no effect with temperature 0 (greedy)"
    if options.ignore_eos and FACTS[schema].ignore_eos_key is None:
        yield "ignore_eos", f"{schema} does not support it"
    if schema is Schema.TGI and options.top_p == 1:
        yield "top_p", "TGI needs top_p below 1; leave it out for 1"


Message: TypeAlias = "Mapping[str, Json]"
Prompt: TypeAlias = "str | Sequence[Message]"

CONTENT_TYPE = "application/json"
DEFAULTS = Options()


def message(role: str, content: str) -> Message:
    """Return one message of a chat, whose role is `system`, `user` or `assistant`."""
    return {"role": role, "content": content}


def request_body(schema: Schema, prompt: Prompt, options: Options = DEFAULTS, *, stream: bool = False) -> bytes:
    """Write the body of a request; equal arguments give equal bytes.

    Args:
        prompt: The text; for chat also a list of messages (a text is one message of the user).

    Raises:
        RequestError: SEA370, with every option that the schema lacks and every impossible value.
    """
    check_options(schema, options)
    if FACTS[schema].body_key == "inputs":
        return write_json(_generate(schema, _text(schema, prompt), options, stream=stream))
    return write_json(_openai(schema, prompt, options, stream=stream))


def _generate(schema: Schema, text: str, options: Options, *, stream: bool) -> Mapping[str, Json]:
    facts = FACTS[schema]
    sampling: dict[str, Json] = {"do_sample": options.samples}
    if options.samples:
        sampling["temperature"] = options.temperature
    limit = {facts.max_tokens_key: options.max_tokens, **sampling}
    parameters = {**_given(limit), "details": True, **_common(facts, options)}
    return {"inputs": text, "parameters": {**parameters, **options.extra}, "stream": stream}


def _openai(schema: Schema, prompt: Prompt, options: Options, *, stream: bool) -> Mapping[str, Json]:
    facts, chat = FACTS[schema], schema is Schema.OPENAI_CHAT
    if chat:
        turns = [message("user", prompt)] if isinstance(prompt, str) else prompt
        content: dict[str, Json] = {"messages": [dict(turn) for turn in turns]}
    else:
        content = {"prompt": _text(schema, prompt)}
    wanted: dict[str, Json] = {"logprobs": True if chat else 1} if options.log_probabilities else {}
    usage: dict[str, Json] = {"stream_options": {"include_usage": True}} if stream and options.counts else {}
    return {
        **content,
        **_given({facts.max_tokens_key: options.max_tokens, "temperature": options.temperature}),
        **_common(facts, options),
        **wanted,
        **options.extra,
        "stream": stream,
        **usage,
    }


def _common(facts: SchemaFacts, options: Options) -> dict[str, Json]:
    on_end: dict[str, Json] = {facts.ignore_eos_key: True} if options.ignore_eos and facts.ignore_eos_key else {}
    stop: list[Json] = [*options.stop]
    drawn: dict[str, Json] = {name: getattr(options, name) for name in ("top_p", "top_k", "repetition_penalty", "seed")}
    return {**on_end, **_given({**drawn, facts.stop_key: stop or None})}


def _given(values: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value is not None}


def _text(schema: Schema, prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    raise RequestError.of(REQUEST_RULE, f"{schema} needs a string, not messages", where=WHERE, field="prompt")
