"""Requests for text in any schema, the calls of tools that they allow, and their refusals.

A forced call is really generated, under a grammar of the tool's parameters; of several tools that may be called the
first one is. A model with random weights calls no tool by itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_laptop.engine.llama import Sampling
from seatrial_laptop.engine.settings import EngineSettings, WireFormat

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """How the model may call tools.

    Attributes:
        is_own: The model may choose to call one.
        forced: The tool that it must call; empty for none.
        parameters: JSON schema of that tool's parameters.
        is_named: The request names the tool; vLLM then ends with `stop`, else with `tool_calls`.
    """

    is_own: bool = False
    forced: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    is_named: bool = False


NO_TOOLS: Final = ToolChoice()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for text.

    Attributes:
        schema: `inputs`, `prompt` (OpenAI completions) or `messages` (OpenAI chat).
        prompt: The text, or the chat messages as they were sent.
        output_tokens: The limit that the request names; None when it names none.
        details: Whether a whole response has its token counts.
        model: The model that an OpenAI body names, repeated in its response; empty for none.
        logprobs: Whether an OpenAI response has the log-probabilities of its tokens.
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
        raise BadRequest(
            f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {settings.max_total_tokens}. "
            f"Given: {input_tokens} `inputs` tokens and {output} `max_new_tokens`"
            if settings.wire_format is WireFormat.TGI
            else f"This model's maximum context length is {settings.max_total_tokens} tokens. However, you requested "
            f"{input_tokens + output} tokens ({input_tokens} in the prompt, {output} in the output)."
        )
    return output


def refused_status(wire_format: WireFormat) -> HTTPStatus:
    """Return the status of a request that can't be served."""
    return HTTPStatus.UNPROCESSABLE_ENTITY if wire_format is WireFormat.TGI else HTTPStatus.BAD_REQUEST


def overloaded_status(wire_format: WireFormat) -> HTTPStatus:
    """Return the status of a request for which there is no place."""
    return HTTPStatus.TOO_MANY_REQUESTS if wire_format is WireFormat.TGI else HTTPStatus.SERVICE_UNAVAILABLE


def _ask(schema: str, document: Mapping[str, object]) -> Ask:
    nested = document.get("parameters") or {}
    parameters = nested if schema == "inputs" else document
    if not isinstance(parameters, dict):
        raise BadRequest("field `parameters` must be an object")
    names = ("max_new_tokens",) if schema == "inputs" else ("max_completion_tokens", "max_tokens")
    limits = [parameters[name] for name in names if parameters.get(name) is not None]
    if limits and (not isinstance(limits[0], int) or limits[0] < 1):
        raise BadRequest(f"`{names[-1]}` must be a whole number above 0: {limits[0]!r}")
    options = document.get("stream_options")
    return Ask(
        schema=schema,
        prompt=document[schema],
        output_tokens=limits[0] if limits else None,
        sampling=_sampling(parameters),
        stream=document.get("stream") is True,
        details=parameters.get("details") is True,
        model=str(document.get("model") or ""),
        logprobs=_asks_logprobs(schema, document.get("logprobs")),
        usage=isinstance(options, dict) and options.get("include_usage") is True,
        tools=read_tool_choice(document) if schema == "messages" else NO_TOOLS,
    )


def _sampling(parameters: Mapping[str, object]) -> Sampling:
    greedy = parameters.get("do_sample") is False or parameters.get("temperature") is None
    stop = parameters.get("stop") or parameters.get("stop_sequences") or []
    stops = [stop] if isinstance(stop, str) else stop
    temperature = 0.0 if greedy else _number(parameters["temperature"], "temperature")
    if not isinstance(stops, list):
        raise BadRequest("`stop` must be a list of strings")
    top_k = int(_number(parameters.get("top_k") or 40, "top_k"))
    return Sampling(temperature=temperature, top_k=top_k, stop=tuple(str(entry) for entry in stops))


def _asks_logprobs(schema: str, value: object) -> bool:
    """Return whether a request wants log-probabilities: `true` in a chat, a number of tokens in a completion."""
    if schema == "inputs" or value is None or value is False:
        return False
    if schema == "messages" and value is not True:
        raise BadRequest(f"`logprobs` must be true or false: {value!r}")
    if schema == "prompt" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadRequest(f"`logprobs` must be a whole number of at least 0: {value!r}")
    return True


def _number(value: object, name: str) -> float:
    if not isinstance(value, int | float) or value < 0:
        raise BadRequest(f"`{name}` must be a number of at least 0: {value!r}")
    return float(value)


def read_tool_choice(document: Mapping[str, object]) -> ToolChoice:
    """Read `tools` and `tool_choice` of a chat request.

    Raises:
        BadRequest: They have the wrong type, or name no tool that is there.
    """
    tools = _functions(document.get("tools"))
    choice = document.get("tool_choice") or ("auto" if tools else "none")
    if choice in ("auto", "none"):
        return ToolChoice(is_own=choice == "auto")
    if not tools:
        raise BadRequest("When using `tool_choice`, `tools` must be set.")
    if choice == "required":
        name, parameters = next(iter(tools.items()))
        return ToolChoice(forced=name, parameters=parameters)
    named = choice.get("function") if isinstance(choice, dict) else None
    name = str(named.get("name") if isinstance(named, dict) else choice)
    if name not in tools:
        raise BadRequest("The tool specified in `tool_choice` does not match any of the specified `tools`")
    return ToolChoice(forced=name, parameters=tools[name], is_named=True)


def _functions(tools: object) -> dict[str, Mapping[str, object]]:
    if tools is None:
        return {}
    listed = tools if isinstance(tools, list) else [None]
    functions = [tool.get("function") if isinstance(tool, dict) else None for tool in listed]
    if not functions or not all(isinstance(function, dict) and "name" in function for function in functions):
        raise BadRequest("`tools` must be a list of functions with a name")
    described = (function for function in functions if isinstance(function, dict))
    return {str(function["name"]): function.get("parameters") or {"type": "object"} for function in described}


class BadRequest(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """The request can't be served; carries the message for the client."""


class UnknownModel(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """The request names a model that the container doesn't serve."""


class Overloaded(Exception):  # noqa: N818 (an answer to the client, not a failure)
    """As many requests are in flight as the container admits."""
