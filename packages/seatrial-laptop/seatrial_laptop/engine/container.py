"""The SageMaker container contract in front of llama.cpp: GET /ping, POST /invocations, and GET /info of our own.

POST /v1/chat/completions is for SageMaker's OpenAI path.

Formats: LMI writes JSON lines (async: `logprob`; rolling batch: `log_prob`), TGI writes server-sent events; the last
event of the three carries the whole text and the counts. OpenAI bodies are chunks of the OpenAI schema, as JSON lines
in LMI's async mode (no `data:`, no `[DONE]`) and as server-sent events in TGI. They have log-probabilities when
`logprobs` asks for them; TGI's completions never do (its router answers null). vLLM's own container writes server-sent
events too, and has the usage in a chunk of its own, on request.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
import uuid
from collections import deque
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, Protocol

from seatrial_laptop.engine.generation import (
    NO_TOOLS,
    Ask,
    BadRequest,
    Overloaded,
    ToolChoice,
    UnknownModel,
    limit_output,
    overloaded_status,
    read_ask,
    refused_status,
)
from seatrial_laptop.engine.llama import EngineError, Llama, LlamaToken, LlamaUsage
from seatrial_laptop.engine.settings import EngineSettings, WireFormat
from seatrial_laptop.loopback import (
    TOKEN_HEADER,
    LoopbackError,
    LoopbackRequest,
    Reply,
    foreign_request_reason,
    read_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from seatrial_laptop.engine.weights import ServedWeights


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


ENGINE_NAME: Final = "local-cpu-random-llama (not the model named)"
ENGINE_HEADER: Final = {"x-seatrial-engine": ENGINE_NAME}
NO_AUTO_TOOLS: Final = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
"""vLLM's error where a request lets the model choose tools, and the container can't read its calls."""
VLLM_ERRORS: Final = {"validation": "BadRequestError", "generation": "InternalServerError"}
CHAT: Final = "/v1/chat/completions"
SERVED: Final = ("/invocations", CHAT)
METRICS: Final = "/metrics"
JSON: Final = {"content-type": "application/json", **ENGINE_HEADER}


class Container:
    """One engine process as the outside sees it; it answers 503 on /ping until `llama` is there.

    Args:
        token: What an invocation must bring; empty for nothing.
    """

    def __init__(self, settings: EngineSettings, weights: ServedWeights, *, port: int, token: str = "") -> None:
        self.settings = settings
        self.weights = weights
        self._port = port
        self._token = token
        self.llama: Llama | None = None
        self.admission = Admission(
            slots=settings.slots,
            batch_total_tokens=settings.batch_total_tokens,
            max_in_flight=settings.max_in_flight,
            max_queued_tokens=settings.max_queued_tokens,
        )

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection; a client that goes away frees its slot."""
        try:
            request = await read_request(reader)
            answer = asyncio.create_task(self._answer(request, Reply(writer)))
            gone = asyncio.create_task(reader.read(1))
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            for task in (gone, answer):
                if not task.done():
                    task.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)
        except LoopbackError:
            # A port scan or a client that left in the middle of its request.
            pass
        finally:
            writer.close()

    async def _answer(self, request: LoopbackRequest, reply: Reply) -> None:
        if why := foreign_request_reason(request.headers, self._port):
            await reply.send(HTTPStatus.FORBIDDEN, json.dumps({"error": why}).encode(), JSON)
        elif request.path == "/ping":
            ready = HTTPStatus.OK if self.llama else HTTPStatus.SERVICE_UNAVAILABLE
            await reply.send(ready, b"{}", JSON)
        elif request.path == "/info":
            info = {
                "engine": ENGINE_NAME,
                "model": "a small random model on the CPU of this machine; nothing was downloaded",
                "model_named": self.settings.model_id,
                "weights": self.weights.text,
                "weights_bytes": self.weights.bytes,
                "gguf_type": self.weights.gguf_type,
                "settings": asdict(self.settings),
                "slots": self.settings.slots,
                "running": self.admission.running,
                "waiting": self.admission.waiting,
            }
            await reply.send(HTTPStatus.OK, json.dumps(info).encode(), JSON)
        elif request.path == METRICS and self.settings.wire_format is not WireFormat.TGI:
            # As vLLM reports its queue. The KV cache's share is that of the tokens that running requests may take;
            # llama.cpp preempts none.
            metrics = {
                "vllm:num_requests_running": self.admission.running,
                "vllm:num_requests_waiting": self.admission.waiting,
                "vllm:kv_cache_usage_perc": self.admission.tokens_share,
                "vllm:num_preemptions_total": 0,
            }
            label = f'{{model_name="{self.settings.model_id}"}}'
            text = "".join(f"{name}{label} {value:g}\n" for name, value in metrics.items())
            await reply.send(HTTPStatus.OK, text.encode(), {"content-type": "text/plain", **ENGINE_HEADER})
        elif request.method != "POST" or request.path not in SERVED:
            await reply.send(HTTPStatus.NOT_FOUND, b'{"error":"not found"}', JSON)
        elif not hmac.compare_digest(self._token.encode(), request.headers.get(TOKEN_HEADER, "").encode()):
            await reply.send(HTTPStatus.FORBIDDEN, b'{"error":"only the embedded AWS may invoke this engine"}', JSON)
        elif self.llama is None:
            await reply.send(HTTPStatus.SERVICE_UNAVAILABLE, b'{"error":"the model is loading"}', JSON)
        else:
            await self._invocation(self.llama, request, reply)

    async def _invocation(self, llama: Llama, request: LoopbackRequest, reply: Reply) -> None:
        wire_format = self.settings.wire_format
        try:
            await self._generate(llama, self._read(request), reply)
        except UnknownModel as unknown:
            await self._refuse(reply, HTTPStatus.NOT_FOUND, str(unknown), "NotFoundError")
        except BadRequest as refused:
            await self._refuse(reply, refused_status(wire_format), str(refused), "validation")
        except Overloaded:
            await self._refuse(reply, overloaded_status(wire_format), "Model is overloaded", "overloaded")
        except EngineError as failure:
            if reply.begun:
                # The client sees it by the missing end of the chunks.
                return
            status = HTTPStatus.FAILED_DEPENDENCY if wire_format is WireFormat.TGI else HTTPStatus.INTERNAL_SERVER_ERROR
            await self._refuse(reply, status, str(failure), "generation")

    def _read(self, request: LoopbackRequest) -> Ask:
        """Return the request for text.

        Raises:
            BadRequest: It can't be served.
            UnknownModel: It names another model.
        """
        ask = read_ask(request.body)
        if request.path == CHAT and ask.schema != "messages":
            raise BadRequest("field `messages` is required")
        if ask.tools.is_own and not self.settings.calls_tools:
            raise BadRequest(NO_AUTO_TOOLS)
        names = self.settings.served_names
        if names and ask.schema != "inputs" and ask.model not in ("", *names):
            raise UnknownModel(f"The model `{ask.model}` does not exist.")
        return ask

    async def _generate(self, llama: Llama, ask: Ask, reply: Reply) -> None:
        text = await llama.chat_prompt(ask.prompt) if ask.schema == "messages" else str(ask.prompt)
        prompt = await llama.tokenize(text)
        output_tokens = limit_output(ask, len(prompt), self.settings)
        async with self.admission.slot(len(prompt) + output_tokens, prompt=len(prompt)):
            answer = answer_format(self.settings.wire_format, ask, self.settings.model_id)
            schema = ask.tools.parameters if ask.tools.forced else None
            items = llama.generate(prompt, output_tokens=output_tokens, sampling=ask.sampling, schema=schema)
            async with aclosing(items):
                if ask.stream:
                    await _stream(items, output_tokens, answer, reply)
                else:
                    await reply.send(HTTPStatus.OK, answer.whole(await _whole(items), details=ask.details), JSON)

    async def _refuse(self, reply: Reply, status: HTTPStatus, message: str, kind: str) -> None:
        if self.settings.wire_format is WireFormat.TGI:
            document: dict[str, object] = {"error": message, "error_type": kind}
        elif self.settings.wire_format is WireFormat.VLLM:
            name = VLLM_ERRORS.get(kind, kind)
            document = {"error": {"message": message, "type": name, "param": None, "code": status.value}}
        else:
            document = {"code": status.value, "type": kind, "message": message}
        await reply.send(status, json.dumps(document).encode(), JSON)


async def _whole(items: AsyncIterator[LlamaToken | LlamaUsage]) -> Written:
    tokens: list[LlamaToken] = []
    async for item in items:
        if isinstance(item, LlamaUsage):
            return Written(tuple(tokens), item)
        tokens.append(item)
    raise EngineError("the engine ended without its usage")


async def _stream(
    items: AsyncIterator[LlamaToken | LlamaUsage], output_tokens: int, answer: AnswerFormat, reply: Reply
) -> None:
    tokens: list[LlamaToken] = []
    async for item in items:
        if not reply.begun:
            await reply.begin(HTTPStatus.OK, {"content-type": answer.stream_type, **ENGINE_HEADER})
        if isinstance(item, LlamaUsage):
            held = tokens[-1] if len(tokens) == output_tokens else None
            await reply.chunk(answer.last(held, Written(tuple(tokens), item)))
            await reply.end()
            return
        tokens.append(item)
        # The last one waits for the usage, which follows at once.
        if len(tokens) < output_tokens:
            await reply.chunk(answer.token(len(tokens) - 1, item))


class Admission:
    """The queue of a container.

    Attributes:
        running: Requests that hold a slot.
        waiting: Requests that wait for one.
    """

    def __init__(
        self, *, slots: int, batch_total_tokens: int, max_in_flight: int, max_queued_tokens: int | None = None
    ) -> None:
        self._slots = slots
        self._free_tokens = batch_total_tokens
        self._most_tokens = batch_total_tokens
        self._max_in_flight = max_in_flight
        self._max_queued_tokens = max_queued_tokens
        self._queued_tokens = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.running = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def tokens_share(self) -> float:
        """Share of the token budget that running requests hold, 0 to 1."""
        return 1 - self._free_tokens / self._most_tokens

    @asynccontextmanager
    async def slot(self, tokens: int, *, prompt: int = 0) -> AsyncIterator[None]:
        """Hold a slot and a share of the token budget; waits in order of arrival.

        Args:
            prompt: Tokens of them that count while it waits: as vLLM's limit, it refuses once it is reached.

        Raises:
            Overloaded: The container admits no further request.
        """
        most = self._max_queued_tokens
        if self.running + self.waiting >= self._max_in_flight or (most is not None and self._queued_tokens >= most):
            raise Overloaded
        entry = (tokens, asyncio.get_running_loop().create_future())
        self._queue.append(entry)
        self._queued_tokens += prompt
        self._start_next()
        try:
            await entry[1]
        except asyncio.CancelledError:
            if entry in self._queue:
                self._queue.remove(entry)
            else:
                # Its turn had come in the same moment: give the place back.
                self.running -= 1
                self._free_tokens += tokens
            self._start_next()
            raise
        finally:
            self._queued_tokens -= prompt
        try:
            yield
        finally:
            self.running -= 1
            self._free_tokens += tokens
            self._start_next()

    def _start_next(self) -> None:
        # Strictly in the order of arrival: a small request waits behind a large one.
        while self._queue and self.running < self._slots and self._queue[0][0] <= self._free_tokens:
            tokens, turn = self._queue.popleft()
            self.running += 1
            self._free_tokens -= tokens
            turn.set_result(None)
