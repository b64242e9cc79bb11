"""llama.cpp with its HTTP server in this process, and the calls that the container makes to it."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.loopback import HOST, LoopbackError, exchange
from seatrial_load.payload.answer import LineReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    import xllamacpp

    from seatrial_laptop.engine.settings import EngineSettings

OK: Final = 200
COMPACT: Final = {"x-guidance": {"whitespace_flexible": False}}
"""What llguidance reads with a JSON schema: random weights would write white space for ever."""
UBATCH_TOKENS: Final = 512
"""llama.cpp's own default of the physical batch."""


@dataclass(frozen=True, slots=True)
class LlamaToken:
    """One generated token."""

    id: int
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class LlamaUsage:
    """What a whole generation took and why it ended: `limit`, `word` (a stop sequence) or `eos`."""

    input_tokens: int
    output_tokens: int
    stop_type: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; temperature 0 is greedy."""

    temperature: float = 0.0
    top_k: int = 40
    stop: tuple[str, ...] = ()


class EngineError(ConnectionError):
    """llama.cpp refused a request or broke off."""


class Llama:
    """A running llama.cpp server: one thread, `slots` sequences batched continuously; its key is in this process only.

    One thread only: two threads of a two-core machine wait for each other in busy loops.
    """

    def __init__(self, weights: Path, settings: EngineSettings) -> None:
        import xllamacpp  # noqa: PLC0415 (an optional dependency, loaded when an engine really starts)

        key = secrets.token_urlsafe(32)
        self._headers = {"authorization": f"Bearer {key}"}
        self._server = xllamacpp.Server(server_parameters(xllamacpp.CommonParams(), weights, settings, key))
        self.port = int(self._server.listening_address.rpartition(":")[2])

    async def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a prompt, with those that the model always puts first."""
        answer = await self._call("/tokenize", {"content": text, "add_special": True})
        return _whole_numbers(answer["tokens"])

    async def chat_prompt(self, messages: object) -> str:
        """Write chat messages as the prompt that the model's template makes of them."""
        answer = await self._call("/apply-template", {"messages": messages})
        return str(answer["prompt"])

    async def generate(
        self,
        prompt: list[int],
        *,
        output_tokens: int,
        sampling: Sampling,
        schema: Mapping[str, object] | None = None,
    ) -> AsyncGenerator[LlamaToken | LlamaUsage]:
        """Yield each token when it's there, then the usage; closing the generator frees the slot.

        Raises:
            EngineError: llama.cpp refused the request or broke off.
        """
        completion = {
            **({} if schema is None else {"json_schema": {**schema, **COMPACT}}),
            "prompt": prompt,
            "n_predict": output_tokens,
            "stream": True,
            # Random weights mean nothing by it; behind a whole document nothing else fits.
            "ignore_eos": schema is None,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "samplers": ["top_k", "temperature"],
            "stop": list(sampling.stop),
            "cache_prompt": False,
            "return_tokens": True,
            "n_probs": 1,
        }
        body, reader = json.dumps(completion).encode(), LineReader()
        async with exchange(self.port, "POST", "/completion", body=body, headers=self._headers) as response:
            if response.status != OK:
                raise EngineError((await response.read()).decode(errors="replace"))
            async for chunk in response.chunks():
                for document in reader.feed(chunk):
                    for item in _items(_object(json.loads(document))):
                        yield item

    async def _call(self, path: str, document: Mapping[str, object]) -> dict[str, object]:
        body = json.dumps(document).encode()
        async with exchange(self.port, "POST", path, body=body, headers=self._headers) as response:
            answer = await response.read()
        if response.status != OK:
            raise EngineError(answer.decode(errors="replace"))
        return _object(json.loads(answer))


def server_parameters(
    parameters: xllamacpp.CommonParams, weights: Path, settings: EngineSettings, key: str
) -> xllamacpp.CommonParams:
    """Set up llama.cpp for a configuration and return its parameters."""
    parameters.model.path = str(weights)
    parameters.hostnames = [HOST]
    # The system chooses a free port, which `listening_address` has.
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.cors_origins = ""
    parameters.n_parallel = settings.slots
    # Each slot has a context of its own: a long request takes no room of another one.
    parameters.n_ctx = settings.slots * settings.max_total_tokens
    parameters.kv_unified = False
    parameters.n_batch = settings.prefill_tokens or parameters.n_batch
    parameters.n_ubatch = min(UBATCH_TOKENS, parameters.n_batch)
    # Two threads of a two-core machine wait for each other in busy loops.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = settings.slots + 4
    parameters.cont_batching = True
    parameters.warmup = False
    parameters.fit_params = False
    parameters.cache_ram_mib = 0
    parameters.ui = False
    parameters.verbosity = -1
    return parameters


def _items(event: dict[str, object]) -> list[LlamaToken | LlamaUsage]:
    if "error" in event:
        raise EngineError(json.dumps(event["error"]))
    if event.get("stop") is True:
        counts = _whole_numbers([event["tokens_evaluated"], event["tokens_predicted"]])
        return [LlamaUsage(input_tokens=counts[0], output_tokens=counts[1], stop_type=str(event["stop_type"]))]
    return [_token(_object(entry)) for entry in _list(event.get("completion_probabilities", []))]


def _token(entry: dict[str, object]) -> LlamaToken:
    identity, logprob = entry["id"], entry["logprob"]
    if not isinstance(identity, int) or not isinstance(logprob, int | float):
        raise EngineError(f"not a token: {entry!r}")
    return LlamaToken(id=identity, text=str(entry["token"]), logprob=float(logprob))


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise LoopbackError(f"not a JSON object: {value!r}")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise LoopbackError(f"not a JSON list: {value!r}")
    return value


def _whole_numbers(value: object) -> list[int]:
    numbers = [entry for entry in _list(value) if isinstance(entry, int)]
    if len(numbers) != len(_list(value)):
        raise LoopbackError(f"not whole numbers: {value!r}")
    return numbers
