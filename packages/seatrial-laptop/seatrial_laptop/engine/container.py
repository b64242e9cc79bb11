"""The SageMaker container contract in front of llama.cpp: GET /ping, POST /invocations, and GET /info of our own.

POST /v1/chat/completions is for SageMaker's OpenAI path.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections import deque
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_laptop.engine.answers import AnswerFormat, Written, answer_format
from seatrial_laptop.engine.generation import (
    Ask,
    BadRequest,
    Overloaded,
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
    from collections.abc import AsyncIterator

    from seatrial_laptop.engine.weights import ServedWeights

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
