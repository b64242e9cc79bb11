"""Synthetic requests: prompts of an approximate number of tokens, none sharing its beginning with another.

A word of the list is one token in the common vocabularies (a frequent English word with its space before it), so a
prompt has about as many tokens as words; the true number is what the endpoint's own count says. The first words
differ from request to request and from trial to trial: a prefix cache has nothing to reuse.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from seatrial.bench.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from seatrial.bench.address import Address
    from seatrial.bench.request import Workload
    from seatrial.bench.sigv4 import Signer

CONTENT_TYPE = "application/json"
COMPONENT_HEADER = "X-Amzn-SageMaker-Inference-Component"

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def prompt(seed: str, index: int, words: int) -> str:
    """Write the prompt of the request with this number: the same for the same seed, unlike every other."""
    picks = hashlib.shake_256(f"{seed}:{index}".encode()).digest(words)
    return " ".join([WORDS[pick] for pick in picks])


def payload(workload: Workload, text: str) -> bytes:
    """Write the body of one request: greedy, its length fixed where the schema can (TGI's can't ignore the end)."""
    write = {"lmi": _lmi, "tgi": _tgi, "openai_chat": _openai_chat}[workload.schema]
    return json.dumps(write(workload, text), separators=(",", ":")).encode()


def _lmi(workload: Workload, text: str) -> dict[str, Json]:
    parameters: dict[str, Json] = {
        "max_new_tokens": workload.output_tokens,
        "do_sample": False,
        "details": True,
        "ignore_eos_token": True,
    }
    return {"inputs": text, "parameters": parameters, "stream": workload.stream}


def _tgi(workload: Workload, text: str) -> dict[str, Json]:
    parameters: dict[str, Json] = {"max_new_tokens": workload.output_tokens, "do_sample": False, "details": True}
    return {"inputs": text, "parameters": parameters, "stream": workload.stream}


def _openai_chat(workload: Workload, text: str) -> dict[str, Json]:
    streaming: dict[str, Json] = {"stream": True, "stream_options": {"include_usage": True}}
    return {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": workload.output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        **(streaming if workload.stream else {"stream": False}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWriter:
    """Writes the signed HTTP request with a given number.

    Attributes:
        workload: Lengths and schema.
        address: Where the request goes.
        inference_component: The component it asks for; None when the variant holds the model.
        signer: Signs it at the time of `now`.
        now: The wall clock, in UTC.
        seed: Of the prompts; another seed gives prompts that share nothing with these.
    """

    workload: Workload
    address: Address
    inference_component: str | None
    signer: Signer
    now: Callable[[], datetime]
    seed: str

    def __call__(self, index: int) -> bytes:
        """Return the bytes of the request, ready for the socket."""
        body = payload(self.workload, prompt(self.seed, index, self.workload.input_tokens))
        digest = hashlib.sha256(body).hexdigest()
        headers = self.signer.signed_headers(self.address.path, self._headers(), digest, self.now())
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {self.address.path} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def _headers(self) -> Mapping[str, str]:
        component = {COMPONENT_HEADER: self.inference_component} if self.inference_component else {}
        return {"Host": self.address.authority, "Content-Type": CONTENT_TYPE, **component}
