"""Response formats of the containers, whole or token by token.

Facts: LMI writes JSON lines (async: `logprob`; rolling batch: `log_prob`), TGI writes server-sent events; the last
event of the three carries the whole text and the counts. OpenAI bodies are chunks of the OpenAI schema, as JSON lines
in LMI's async mode (no `data:`, no `[DONE]`) and as server-sent events in TGI. They have log-probabilities when
`logprobs` asks for them; TGI's completions never do (its router answers null). vLLM's own container writes server-sent
events too, and has the usage in a chunk of its own, on request.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, Protocol

from seatrial_laptop.engine.generation import NO_TOOLS, ToolChoice
from seatrial_laptop.engine.settings import WireFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.engine.generation import Ask
    from seatrial_laptop.engine.llama import LlamaToken, LlamaUsage

JSON_LINES = "application/jsonlines"
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Written:
    """A finished generation."""

    tokens: tuple[LlamaToken, ...]
    usage: LlamaUsage

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(token.text for token in self.tokens)


class AnswerFormat(Protocol):
    """One spelling of answers."""

    @property
    def stream_type(self) -> str:
        """The content type of a streamed answer."""

    def token(self, index: int, token: LlamaToken) -> bytes:
        """Write one token of a stream; the first has index 0."""

    def last(self, token: LlamaToken | None, written: Written) -> bytes:
        """Write the end of a stream; `token` is the last one, when it hasn't been written yet."""

    def whole(self, written: Written, *, details: bool) -> bytes:
        """Write a whole answer."""


def answer_format(wire_format: WireFormat, ask: Ask, model_id: str = "") -> AnswerFormat:
    """Return the spelling of the answer to a request.

    Args:
        model_id: What vLLM calls the model to a request that gives no name.
    """
    if ask.schema != "inputs":
        chat, tgi = ask.schema == "messages", wire_format is WireFormat.TGI
        vllm = wire_format is WireFormat.VLLM
        return OpenAiFormat(
            chat=chat,
            sse=tgi or vllm,
            model=ask.model or (model_id if vllm else "lmi"),
            logprobs=ask.logprobs and (chat or not tgi),
            usage=("chunk" if ask.usage else "none") if vllm else "last",
            tools=ask.tools,
        )
    if wire_format is WireFormat.TGI:
        return TgiFormat()
    if wire_format is WireFormat.LMI_ASYNC:
        return LmiAsyncFormat()
    return LmiRollingBatchFormat()


@dataclass(frozen=True, slots=True)
class LmiAsyncFormat:
    """LMI's own schema in async mode."""

    stream_type: str = JSON_LINES

    def token(self, index: int, token: LlamaToken) -> bytes:
        """Write one token of a stream; the first has index 0."""
        return _line({"index": index, "token": _token(token, "logprob"), "generated_text": None, "details": None})

    def last(self, token: LlamaToken | None, written: Written) -> bytes:
        """Write the last line, with the text and the exact counts (the real handler counts one token too many)."""
        details = {
            "finish_reason": _openai_reason(written.usage),
            "generated_tokens": written.usage.output_tokens,
            "input_length": written.usage.input_tokens,
        }
        end = {"index": len(written.tokens) - 1, "token": _last_token(token, written, "logprob")}
        return _line({**end, "generated_text": written.text, "details": details})

    def whole(self, written: Written, *, details: bool) -> bytes:
        """Write the object."""
        details_object = {
            # The real handler reads vLLM's stop_reason, which is null.
            "finish_reason": None,
            "generated_tokens": written.usage.output_tokens,
            "input_length": written.usage.input_tokens,
            "tokens": [_token(token, "logprob") for token in written.tokens],
        }
        return _document({"generated_text": written.text, **({"details": details_object} if details else {})})


@dataclass(frozen=True, slots=True)
class LmiRollingBatchFormat:
    """LMI's schema with a rolling batch."""

    stream_type: str = JSON_LINES

    def token(self, index: int, token: LlamaToken) -> bytes:  # noqa: ARG002 (this schema has no index)
        """Write one token of a stream."""
        return _line({"token": _token(token, "log_prob")})

    def last(self, token: LlamaToken | None, written: Written) -> bytes:
        """Write the last line, with the text and the counts."""
        details = {"finish_reason": _tgi_reason(written.usage), "generated_tokens": written.usage.output_tokens}
        end = {"token": _last_token(token, written, "log_prob"), "generated_text": written.text}
        return _line({**end, "details": {**details, "inputs": None}})

    def whole(self, written: Written, *, details: bool) -> bytes:
        """Write the object, with details on request."""
        details_object = {
            "finish_reason": _tgi_reason(written.usage),
            "generated_tokens": written.usage.output_tokens,
            "inputs": None,
            "tokens": [_token(token, "log_prob") for token in written.tokens],
        }
        return _document({"generated_text": written.text, **({"details": details_object} if details else {})})


@dataclass(frozen=True, slots=True)
class TgiFormat:
    """TGI's own schema."""

    stream_type: str = EVENT_STREAM

    def token(self, index: int, token: LlamaToken) -> bytes:
        """Write one token of a stream; TGI counts from 1."""
        end = {"generated_text": None, "details": None}
        return _event({"index": index + 1, "token": _tgi_token(token), **end})

    def last(self, token: LlamaToken | None, written: Written) -> bytes:
        """Write the last event, with the text and the counts."""
        details = {
            "finish_reason": _tgi_reason(written.usage),
            "generated_tokens": written.usage.output_tokens,
            "seed": None,
            "input_length": written.usage.input_tokens,
        }
        end = {**_last_token(token, written, "logprob"), "special": False}
        index = len(written.tokens)
        return _event({"index": index, "token": end, "generated_text": written.text, "details": details})

    def whole(self, written: Written, *, details: bool) -> bytes:
        """Write the list of one object, with details on request."""
        details_object = {
            "finish_reason": _tgi_reason(written.usage),
            "generated_tokens": written.usage.output_tokens,
            "seed": None,
            "prefill": [],
            "tokens": [_tgi_token(token) for token in written.tokens],
        }
        return _document([{"generated_text": written.text, **({"details": details_object} if details else {})}])


@dataclass(frozen=True, slots=True)
class OpenAiFormat:
    """OpenAI completions and chat completions.

    Attributes:
        model: Named in every answer.
        logprobs: The log-probability of each token is written; of the tokens not taken, none.
        usage: Where a stream has its usage: in its last chunk, in one of its own, or nowhere.
        tools: What the model had to call; the text is then the arguments of that call.
        id: The same in every chunk of an answer.
        created_s: Seconds since the epoch.
    """

    chat: bool
    sse: bool
    model: str = "lmi"
    logprobs: bool = False
    usage: Literal["last", "chunk", "none"] = "last"
    tools: ToolChoice = NO_TOOLS
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created_s: int = field(default_factory=lambda: int(time.time()))

    @property
    def stream_type(self) -> str:
        """The content type of a streamed answer."""
        return EVENT_STREAM if self.sse else JSON_LINES

    def token(self, index: int, token: LlamaToken) -> bytes:
        """Write one chunk; the first of a chat names the role."""
        return self._chunk({"choices": [self._choice((token,), None, first=index == 0)]})

    def last(self, token: LlamaToken | None, written: Written) -> bytes:
        """Write the last chunk, with the reason and the usage; server-sent events end with `[DONE]`."""
        only = token is not None and len(written.tokens) == 1
        choice = self._choice((token,) if token else (), self._reason(written.usage), first=only)
        usage = {"usage": _openai_usage(written.usage)}
        own = self._chunk({"choices": [], **usage}) if self.usage == "chunk" else b""
        done = b"data: [DONE]\n\n" if self.sse else b""
        return self._chunk({"choices": [choice], **(usage if self.usage == "last" else {})}) + own + done

    def whole(self, written: Written, *, details: bool) -> bytes:  # noqa: ARG002 (the usage is always written)
        """Write the completion object."""
        reason = self._reason(written.usage)
        content = {"content": written.text} if not self.tools.forced else {"content": None, **self._call(written.text)}
        text = {"message": {"role": "assistant", **content}} if self.chat else {"text": written.text}
        choice = {"index": 0, **text, **self._logprobs(written.tokens), "finish_reason": reason}
        kind = "chat.completion" if self.chat else "text_completion"
        usage = _openai_usage(written.usage)
        return _document({**self._head(kind), "choices": [choice], "usage": usage})

    def _choice(self, tokens: Sequence[LlamaToken], reason: str | None, *, first: bool) -> dict[str, object]:
        text = "".join(token.text for token in tokens)
        role = {"role": "assistant"} if first else {}
        delta = self._call(text, first=first) if self.tools.forced else {"content": text}
        content: dict[str, object] = {"delta": {**role, **delta}} if self.chat else {"text": text}
        return {"index": 0, **content, **self._logprobs(tokens), "finish_reason": reason}

    def _reason(self, usage: LlamaUsage) -> str:
        """Return why it ended, as vLLM reports calls: `tool_calls`, but `stop` where the request named the tool."""
        reason = _openai_reason(usage)
        is_call = self.tools.forced and not self.tools.is_named and reason == "stop"
        return "tool_calls" if is_call else reason

    def _call(self, arguments: str, *, first: bool = True) -> dict[str, object]:
        """Return the one call, whole, or the part of it that a chunk adds: the first one names the tool."""
        named = {"id": f"call_{self.id}", "type": "function"} if first else {}
        function = {**({"name": self.tools.forced} if first else {}), "arguments": arguments}
        return {"tool_calls": [{"index": 0, **named, "function": function}]}

    def _logprobs(self, tokens: Sequence[LlamaToken]) -> dict[str, object]:
        if not self.logprobs or not tokens:
            return {}
        if not self.chat:
            return {"logprobs": _logprobs(tokens)}
        content = [
            {"token": token.text, "logprob": token.logprob, "bytes": list(token.text.encode()), "top_logprobs": []}
            for token in tokens
        ]
        return {"logprobs": {"content": content}}

    def _chunk(self, document: dict[str, object]) -> bytes:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        whole = {**self._head(kind), **document}
        return b"data: " + _document(whole) + b"\n\n" if self.sse else _line(whole)

    def _head(self, kind: str) -> dict[str, object]:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {"id": f"{prefix}-{self.id}", "object": kind, "created": self.created_s, "model": self.model}


def _document(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _line(value: object) -> bytes:
    return _document(value) + b"\n"


def _event(value: object) -> bytes:
    return b"data:" + _document(value) + b"\n\n"


def _token(token: LlamaToken, logprob_key: str) -> dict[str, object]:
    return {"id": token.id, "text": token.text, logprob_key: token.logprob}


def _tgi_token(token: LlamaToken) -> dict[str, object]:
    return {**_token(token, "logprob"), "special": False}


def _last_token(token: LlamaToken | None, written: Written, logprob_key: str) -> dict[str, object]:
    if token is not None:
        return _token(token, logprob_key)
    last = written.tokens[-1]
    return {"id": last.id, "text": "", logprob_key: last.logprob}


def _logprobs(tokens: Sequence[LlamaToken]) -> dict[str, object]:
    """Write the log-probabilities of a completion, with the place of each token in the text of this choice."""
    lengths = [len(token.text) for token in tokens]
    return {
        "text_offset": [0, *accumulate(lengths)][:-1],
        "token_logprobs": [token.logprob for token in tokens],
        "tokens": [token.text for token in tokens],
        "top_logprobs": [{token.text: token.logprob} for token in tokens],
    }


def _openai_reason(usage: LlamaUsage) -> str:
    return "length" if usage.stop_type == "limit" else "stop"


def _tgi_reason(usage: LlamaUsage) -> str:
    return {"limit": "length", "word": "stop_sequence", "eos": "eos_token"}[usage.stop_type]


def _openai_usage(usage: LlamaUsage) -> dict[str, int]:
    total = usage.input_tokens + usage.output_tokens
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total}
