"""What a request asks for, whatever its schema, and the refusals of a request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from seatrial_laptop.engine.llama import Sampling
from seatrial_laptop.engine.refusals import BadRequest
from seatrial_laptop.engine.settings import EngineSettings, WireFormat
from seatrial_laptop.engine.tools import NO_TOOLS, ToolChoice, read_tool_choice

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for text.

    Attributes:
        schema: `inputs`, `prompt` (OpenAI completions) or `messages` (OpenAI chat).
        prompt: The text, or the chat messages as they were sent.
        output_tokens: The limit that the request names; None when it names none.
        sampling: How tokens are drawn.
        stream: Whether the answer comes token by token.
        details: Whether a whole answer tells its token counts.
        model: The model that an OpenAI body names, told in its answer; empty for none.
        logprobs: Whether an OpenAI answer tells the log-probabilities of its tokens.
        usage: Whether an OpenAI stream ends with its usage (`stream_options.include_usage`).
        tools: How the model may call tools.
    """

    schema: str
    prompt: object
    output_tokens: int | None
    sampling: Sampling
    stream: bool
    details: bool
    model: str = ""
    logprobs: bool = False
    usage: bool = False
    tools: ToolChoice = NO_TOOLS


def read_ask(body: bytes) -> Ask:
    """Read a request body; its schema is known by its first key: `inputs`, `messages` or `prompt`.

    Raises:
        BadRequest: The body isn't JSON, or a field has the wrong type.
    """
    try:
        document = json.loads(body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("the body is not a JSON object")
    schema = next((key for key in ("messages", "prompt", "inputs") if key in document), None)
    if schema is None:
        raise BadRequest("missing field `inputs`")
    if schema != "messages" and not isinstance(document[schema], str):
        raise BadRequest(f"field `{schema}` must be a string")
    return _ask(schema, document)


def limit_output(ask: Ask, input_tokens: int, settings: EngineSettings) -> int:
    """Return how many tokens the answer may have.

    Raises:
        BadRequest: The prompt, or the prompt with its output, is longer than the container allows.
    """
    rest = settings.max_total_tokens - input_tokens
    default = settings.default_output_tokens
    output = ask.output_tokens or (rest if default is None else min(default, max(rest, 1)))
    if settings.wire_format is WireFormat.TGI and input_tokens > settings.max_input_tokens:
        raise BadRequest(
            "Input validation error: `inputs` must have less than "
            f"{settings.max_input_tokens + 1} tokens. Given: {input_tokens}"
        )
    if input_tokens + output > settings.max_total_tokens:
        raise BadRequest(_too_long(input_tokens, output, settings))
    return output


def refused_status(wire_format: WireFormat) -> HTTPStatus:
    """Return the status of a request that can't be served."""
    return HTTPStatus.UNPROCESSABLE_ENTITY if wire_format is WireFormat.TGI else HTTPStatus.BAD_REQUEST


def overloaded_status(wire_format: WireFormat) -> HTTPStatus:
    """Return the status of a request for which there is no place."""
    return HTTPStatus.TOO_MANY_REQUESTS if wire_format is WireFormat.TGI else HTTPStatus.SERVICE_UNAVAILABLE


def _too_long(input_tokens: int, output: int, settings: EngineSettings) -> str:
    if settings.wire_format is WireFormat.TGI:
        return (
            f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {settings.max_total_tokens}. "
            f"Given: {input_tokens} `inputs` tokens and {output} `max_new_tokens`"
        )
    return (
        f"This model's maximum context length is {settings.max_total_tokens} tokens. However, you requested "
        f"{input_tokens + output} tokens ({input_tokens} in the prompt, {output} in the output)."
    )


def _ask(schema: str, document: Mapping[str, object]) -> Ask:
    nested = document.get("parameters") or {}
    parameters = nested if schema == "inputs" else document
    if not isinstance(parameters, dict):
        raise BadRequest("field `parameters` must be an object")
    names = ("max_new_tokens",) if schema == "inputs" else ("max_completion_tokens", "max_tokens")
    limits = [parameters[name] for name in names if parameters.get(name) is not None]
    if limits and (not isinstance(limits[0], int) or limits[0] < 1):
        raise BadRequest(f"`{names[-1]}` must be a whole number above 0: {limits[0]!r}")
    return Ask(
        schema=schema,
        prompt=document[schema],
        output_tokens=limits[0] if limits else None,
        sampling=_sampling(parameters),
        stream=document.get("stream") is True,
        details=parameters.get("details") is True,
        model=str(document.get("model") or ""),
        logprobs=_asks_logprobs(schema, document.get("logprobs")),
        usage=_asks_usage(document.get("stream_options")),
        tools=read_tool_choice(document) if schema == "messages" else NO_TOOLS,
    )


def _asks_usage(value: object) -> bool:
    return isinstance(value, dict) and value.get("include_usage") is True


def _asks_logprobs(schema: str, value: object) -> bool:
    """Return whether log-probabilities are asked for: chat says `true`, completions how many tokens at each place."""
    if schema == "inputs" or value is None or value is False:
        return False
    if schema == "messages" and value is not True:
        raise BadRequest(f"`logprobs` must be true or false: {value!r}")
    if schema == "prompt" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadRequest(f"`logprobs` must be a whole number of at least 0: {value!r}")
    return True


def _sampling(parameters: Mapping[str, object]) -> Sampling:
    greedy = parameters.get("do_sample") is False or parameters.get("temperature") is None
    stop = parameters.get("stop") or parameters.get("stop_sequences") or []
    stops = [stop] if isinstance(stop, str) else stop
    temperature = 0.0 if greedy else _number(parameters["temperature"], "temperature")
    if not isinstance(stops, list):
        raise BadRequest("`stop` must be a list of strings")
    top_k = int(_number(parameters.get("top_k") or 40, "top_k"))
    return Sampling(temperature=temperature, top_k=top_k, stop=tuple(str(entry) for entry in stops))


def _number(value: object, name: str) -> float:
    if not isinstance(value, int | float) or value < 0:
        raise BadRequest(f"`{name}` must be a number of at least 0: {value!r}")
    return float(value)
