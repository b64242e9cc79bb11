"""One document of an answer, a stream's line or a whole body, in the words of no schema in particular.

Known shapes: the generate schema of LMI and TGI (`token`, `generated_text`, `details`; `logprob` or `log_prob`), in a
list of one as TGI has it; OpenAI's chat and completions (`choices`, `usage`); the error objects of all of them. Of
several choices the first is read.
"""

from __future__ import annotations

import json
import math
from typing import Literal, NamedTuple

from seatrial_load.payload.answer import EngineFailure, Piece, Token
from seatrial_load.payload.error import ANSWER_RULE, AnswerError
from seatrial_load.payload.json_text import JsonObject, json_count, json_string, list_of, object_of, whole_number_of

_MAX_QUOTE = 80
_REASONING_KEYS = ("reasoning_content", "reasoning")
_TEXT_KEYS = ("content", "refusal")


class Fragment(NamedTuple):
    """What one document says (a tuple, because one is made for every token).

    Attributes:
        spelling: `generate` for LMI's and TGI's own schema, `choices` for OpenAI's; None when it has neither.
        streamed: Whether it is a line of a stream.
        pieces: The generated text that it carries, in a stream.
        text: The whole text, where it tells that.
        reasoning: The whole reasoning, where it tells that.
        tokens: All tokens, where it tells them together.
        ended: Whether it says that the generation is over.
        reason: The finish reason as it stands there: a word, or a stop sequence or token.
        stop_sequence: The stop sequence that was met, where vLLM names it beside the reason.
        stop_is_told: Whether vLLM says beside the reason which stop was met, so that none means the end of the text.
        input_tokens: The prompt's tokens.
        output_tokens: The generated tokens, as they stand there.
        failure: The error object.
        model: The model that it says it comes from; only OpenAI's schemas tell.
        is_plural: Whether it has another choice than the first.
        calls_tool: Whether it calls a tool.
        has_other_output: Whether it has output in a field that is neither text nor a call: audio, token ids, parts.
        cached_tokens: Those of the prompt's tokens that came from a cache.
    """

    spelling: Literal["generate", "choices"] | None = None
    streamed: bool = False
    pieces: tuple[Piece, ...] = ()
    text: str | None = None
    reasoning: str | None = None
    tokens: tuple[Token, ...] | None = None
    ended: bool = False
    reason: str | int | None = None
    stop_sequence: str | int | None = None
    stop_is_told: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    failure: EngineFailure | None = None
    model: str | None = None
    is_plural: bool = False
    calls_tool: bool = False
    has_other_output: bool = False
    cached_tokens: int | None = None


def read_fragment(document: object) -> Fragment:
    """Read one JSON document.

    Raises:
        AnswerError: SEA371, it has no known shape.
    """
    said = document[0] if isinstance(document, list) and len(document) == 1 else document
    if isinstance(said, dict):
        if isinstance(said.get("token"), dict) or isinstance(said.get("generated_text"), str):
            return _generation(said)
        if isinstance(said.get("choices"), list) or isinstance(said.get("usage"), dict):
            return _choices(said)
        failure = _failure(said)
        if failure is not None:
            return Fragment(failure=failure)
    raise AnswerError.of(ANSWER_RULE, f"unknown answer format: {_quoted(document)}")


def generated_text(document: object) -> str | None:
    """Return what one line of a stream adds to the answer, without reasoning; None of an error.

    It reads nothing else: for who needs the answer while the clock runs.
    """
    said = object_of(document)
    if said.get("error") or "code" in said:
        return None
    choices = said.get("choices")
    if isinstance(choices, list):
        choice = object_of(choices[0]) if choices else {}
        return json_string(object_of(choice.get("delta")).get("content", choice.get("text"))) or ""
    token = object_of(said.get("token"))
    return "" if token.get("special") else json_string(token.get("text")) or ""


def _quoted(document: object) -> str:
    try:
        return json.dumps(document)[:_MAX_QUOTE]
    except RecursionError:
        return "deeply nested JSON"


def _generation(said: JsonObject) -> Fragment:
    token, text = said.get("token"), json_string(said.get("generated_text"))
    streamed = isinstance(token, dict)
    pieces = (_token_piece(object_of(token)),) if streamed else ()
    if text is None:
        return Fragment(spelling="generate", streamed=streamed, pieces=pieces, failure=_failure(said))
    details = object_of(said.get("details"))
    return Fragment(
        spelling="generate",
        streamed=streamed,
        pieces=pieces,
        text=text,
        tokens=_tokens(details.get("tokens")),
        ended=True,
        reason=_reason(details.get("finish_reason")),
        input_tokens=json_count(details.get("input_length")),
        output_tokens=json_count(details.get("generated_tokens")),
        failure=_failure(said),
    )


def _choices(said: JsonObject) -> Fragment:
    usage = object_of(said.get("usage"))
    choice, others = _first_of(list_of(said.get("choices")))
    message, reason = choice.get("message"), _reason(choice.get("finish_reason"))
    calls_tool = _calls_tool(choice)
    piece = _choice_piece(choice, calls_tool=calls_tool) if message is None else None
    text = None if message is None else _joined(object_of(message), _TEXT_KEYS) or ""
    reasoning = None if message is None else _joined(object_of(message), _REASONING_KEYS)
    return Fragment(
        spelling="choices",
        streamed=message is None,
        pieces=(piece,) if piece else (),
        text=text,
        reasoning=reasoning,
        tokens=None if message is None else _log_probabilities(choice),
        ended=reason is not None or message is not None,
        reason=reason,
        stop_sequence=_reason(choice.get("stop_reason")),
        stop_is_told="stop_reason" in choice,
        input_tokens=json_count(usage.get("prompt_tokens")),
        output_tokens=json_count(usage.get("completion_tokens")),
        failure=_failure(said),
        model=json_string(said.get("model")),
        is_plural=others,
        calls_tool=calls_tool,
        has_other_output=not (piece or text or reasoning) and _has_other_output(choice),
        cached_tokens=json_count(object_of(usage.get("prompt_tokens_details")).get("cached_tokens")) if usage else None,
    )


def _has_other_output(choice: JsonObject) -> bool:
    """Tell whether a choice without text has anything else that a model gave out, whatever its name is."""
    said = object_of(choice.get("delta") or choice.get("message"))
    return bool(choice.get("token_ids")) or any(value for key, value in said.items() if key != "role")


def _calls_tool(choice: JsonObject) -> bool:
    said = object_of(choice.get("delta") or choice.get("message"))
    return bool(said.get("tool_calls") or said.get("function_call"))


def _first_of(choices: list[object]) -> tuple[JsonObject, bool]:
    """Return the first choice, empty where there is none, and whether there are others."""
    if len(choices) == 1 and isinstance(choice := choices[0], dict) and not choice.get("index"):
        return choice, False
    first = next((choice for choice in map(object_of, choices) if not choice.get("index")), None)
    return first or {}, len(choices) > (first is not None)


def _choice_piece(choice: JsonObject, *, calls_tool: bool) -> Piece | None:
    delta = object_of(choice.get("delta"))
    text = _joined(delta, _TEXT_KEYS) if delta else json_string(choice.get("text"))
    reasoning, tokens = _joined(delta, _REASONING_KEYS), _log_probabilities(choice)
    if text or reasoning or tokens or calls_tool:
        return Piece(text or "", reasoning, tokens)
    return None


def _joined(said: JsonObject, keys: tuple[str, ...]) -> str | None:
    return "".join([text for key in keys if isinstance(text := said.get(key), str)]) or None


def _token_piece(said: JsonObject) -> Piece:
    token = _token(said)
    return Piece("" if token.special else token.text, None, (token,))


def _tokens(value: object) -> tuple[Token, ...] | None:
    return tuple(_token(object_of(entry)) for entry in list_of(value)) or None


def _token(said: JsonObject) -> Token:
    told = said.get("logprob", said.get("log_prob"))
    special = said.get("special", said.get("special_token"))
    return Token(
        text=json_string(said.get("text")) or "",
        id=whole_number_of(said.get("id")),
        log_probability=_log_probability(told),
        special=special if isinstance(special, bool) else None,
    )


def _log_probabilities(choice: JsonObject) -> tuple[Token, ...] | None:
    """Read the tokens of OpenAI's schemas: chat has a list of objects, completions has two lists side by side."""
    told = choice.get("logprobs")
    if not isinstance(told, dict):
        return None
    entries = [
        (object_of(entry).get("token"), object_of(entry).get("logprob")) for entry in list_of(told.get("content"))
    ]
    pairs = entries or list(zip(list_of(told.get("tokens")), list_of(told.get("token_logprobs")), strict=False))
    return tuple(Token(json_string(text) or "", None, _log_probability(value), None) for text, value in pairs) or None


def _log_probability(value: object) -> float | None:
    """Return the value if it is the logarithm of a probability; rounding may lift it just above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None  # noqa: PLR2004 (an int may be larger than any float)


def _reason(value: object) -> str | int | None:
    return json_string(value) or whole_number_of(value)


def _failure(said: JsonObject) -> EngineFailure | None:
    """Find vLLM's and OpenAI's error object, TGI's error and its type, LMI's code with a message."""
    error, code = said.get("error"), whole_number_of(said.get("code"))
    if isinstance(error, dict):
        return _engine_failure(error.get("type"), error.get("message"), whole_number_of(error.get("code")))
    if error or code is not None:
        return _engine_failure(said.get("error_type") or said.get("type"), error or said.get("message"), code)
    return None


def _engine_failure(kind: object, message: object, code: int | None) -> EngineFailure:
    told = message if isinstance(message, str) or message is None else _quoted(message)
    return EngineFailure(json_string(kind) or "", told or "no message", code)
