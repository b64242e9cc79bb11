"""Synthetic requests: prompts of an approximate number of tokens, none sharing its beginning with another.

A word of the list is one token in the common vocabularies (a frequent English word with its space before it), so a
prompt has about as many tokens as words; the true number is what the endpoint's own count says. The first words
differ from request to request and from trial to trial: a prefix cache has nothing to reuse.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.bench.words import WORDS
from seatrial.payload.options import Options
from seatrial.payload.request import CONTENT_TYPE, request_body
from seatrial.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from seatrial.bench.address import Address
    from seatrial.bench.request import PayloadSchema, Workload
    from seatrial.bench.sigv4 import Signer

COMPONENT_HEADER = "X-Amzn-SageMaker-Inference-Component"
_SCHEMAS: Mapping[PayloadSchema, Schema] = MappingProxyType(
    {"lmi": Schema.LMI_ROLLING, "tgi": Schema.TGI, "openai_chat": Schema.OPENAI_CHAT}
)


def prompt(seed: str, index: int, words: int) -> str:
    """Write the prompt of the request with this number: the same for the same seed, unlike every other."""
    picks = hashlib.shake_256(f"{seed}:{index}".encode()).digest(words)
    return " ".join([WORDS[pick] for pick in picks])


def payload(workload: Workload, text: str) -> bytes:
    """Write the body of one request: greedy, its length fixed where the schema can (TGI's can't ignore the end)."""
    schema = _SCHEMAS[workload.schema]
    ignore_eos = FACTS[schema].ignore_eos_key is not None
    options = Options(max_tokens=workload.output_tokens, temperature=0, ignore_eos=ignore_eos)
    return request_body(schema, text, options, stream=workload.stream)


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
