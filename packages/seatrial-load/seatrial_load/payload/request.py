"""The body of a request, in each schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seatrial_load.payload.error import REQUEST_RULE, RequestError
from seatrial_load.payload.json_text import Json, write_json
from seatrial_load.payload.options import WHERE, Options, check_options
from seatrial_load.payload.schema import FACTS, Schema, SchemaFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Message: TypeAlias = "Mapping[str, Json]"
Prompt: TypeAlias = "str | Sequence[Message]"

CONTENT_TYPE = "application/json"
DEFAULTS = Options()


def message(role: str, content: str) -> Message:
    """Return one message of a chat: `system`, `user` or `assistant` says something."""
    return {"role": role, "content": content}


def request_body(schema: Schema, prompt: Prompt, options: Options = DEFAULTS, *, stream: bool = False) -> bytes:
    """Write the body of a request; equal arguments give equal bytes.

    Args:
        schema: How to spell it.
        prompt: The text; for chat also a list of messages (a text is one message of the user).
        options: How to generate.
        stream: Whether the answer shall come token by token.

    Raises:
        RequestError: SEA370, with everything that the schema can't say and every impossible value.
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
    parameters = {**_limit(facts, options), **_told(sampling), "details": True, **_common(facts, options)}
    return {"inputs": text, "parameters": {**parameters, **options.extra}, "stream": stream}


def _openai(schema: Schema, prompt: Prompt, options: Options, *, stream: bool) -> Mapping[str, Json]:
    facts, chat = FACTS[schema], schema is Schema.OPENAI_CHAT
    content: dict[str, Json] = {"messages": _messages(prompt)} if chat else {"prompt": _text(schema, prompt)}
    wanted: dict[str, Json] = {"logprobs": True if chat else 1} if options.log_probabilities else {}
    usage: dict[str, Json] = {"stream_options": {"include_usage": True}} if stream else {}
    return {
        **content,
        **_limit(facts, options),
        **_told({"temperature": options.temperature}),
        **_common(facts, options),
        **wanted,
        **options.extra,
        "stream": stream,
        **usage,
    }


def _limit(facts: SchemaFacts, options: Options) -> dict[str, Json]:
    return _told({facts.max_tokens_key: options.max_tokens})


def _common(facts: SchemaFacts, options: Options) -> dict[str, Json]:
    on_end: dict[str, Json] = {facts.ignore_eos_key: True} if options.ignore_eos and facts.ignore_eos_key else {}
    stop: list[Json] = [*options.stop]
    drawn: dict[str, Json] = {
        "top_p": options.top_p,
        "top_k": options.top_k,
        "repetition_penalty": options.repetition_penalty,
        "seed": options.seed,
        facts.stop_key: stop or None,
    }
    return {**on_end, **_told(drawn)}


def _told(values: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value is not None}


def _text(schema: Schema, prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    raise RequestError.of(REQUEST_RULE, f"{schema} needs a string, not messages", where=WHERE, field="prompt")


def _messages(prompt: Prompt) -> list[Json]:
    if isinstance(prompt, str):
        return [dict(message("user", prompt))]
    return [dict(said) for said in prompt]
