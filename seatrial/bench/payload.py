"""The body of a request: greedy, and as long as the workload says where the schema can say it."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.bench.prompts.source import RawBody
from seatrial.payload.options import Options
from seatrial.payload.request import request_body
from seatrial.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.bench.prompts.source import Content
    from seatrial.bench.request import PayloadSchema
    from seatrial.payload.json_text import Json

SCHEMAS: Mapping[PayloadSchema, Schema] = MappingProxyType(
    {
        "lmi": Schema.LMI_ROLLING,
        "tgi": Schema.TGI,
        "openai_chat": Schema.OPENAI_CHAT,
        "openai_completions": Schema.OPENAI_COMPLETIONS,
    }
)


def payload(
    schema: PayloadSchema, content: Content, *, output_tokens: int, stream: bool, model: str | None = None
) -> bytes:
    """Write the body of one request: greedy, its length fixed where the schema can (TGI's can't ignore the end).

    Args:
        schema: How to spell it.
        content: What is asked. A whole body is sent as it is; only whether it streams, and the model, are set.
        output_tokens: Length of the answer; a whole body says its own.
        stream: Whether tokens are asked for as they are made.
        model: The model's name, for servers that want it.
    """
    named: dict[str, Json] = {} if model is None else {"model": model}
    if isinstance(content, RawBody):
        return _as_it_is({**content.document, **named}, schema, stream=stream)
    spelled = SCHEMAS[schema]
    ignore_eos = FACTS[spelled].ignore_eos_key is not None
    options = Options(max_tokens=output_tokens, temperature=0, ignore_eos=ignore_eos, extra=named)
    return request_body(spelled, content, options, stream=stream)


def _as_it_is(document: dict[str, Json], schema: PayloadSchema, *, stream: bool) -> bytes:
    document["stream"] = stream
    document.pop("stream_options", None)
    if stream and schema in {"openai_chat", "openai_completions"}:
        document["stream_options"] = {"include_usage": True}
    return json.dumps(document, separators=(",", ":")).encode()
