"""The bytes of whole HTTP requests, ready for the socket: SageMaker's, signed, and those of OpenAI-compatible servers.

A writer holds no state: any process may write any request, and each is signed at the time it is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.aws.credentials import credential_source
from seatrial_load.aws.sigv4 import RenewedToken, Signer
from seatrial_load.client.connection import address_of
from seatrial_load.decode.timed_answer import ANYTHING, AnswerTerms
from seatrial_load.payload.request import CONTENT_TYPE, Options, message, request_body
from seatrial_load.payload.schema import FACTS, Schema
from seatrial_load.prompts.synthetic import RawBody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from seatrial_load.aws.credentials import CredentialSource
    from seatrial_load.client.connection import Address
    from seatrial_load.documents.request import PayloadSchema, TrialTarget, Workload
    from seatrial_load.payload.json_text import Json
    from seatrial_load.prompts.synthetic import Content, Prompts


SCHEMAS: Mapping[PayloadSchema, Schema] = MappingProxyType(
    {
        "lmi": Schema.LMI_ROLLING,
        "tgi": Schema.TGI,
        "openai_chat": Schema.OPENAI_CHAT,
        "openai_completions": Schema.OPENAI_COMPLETIONS,
    }
)


def payload(workload: Workload, content: Content, *, output_tokens: int, model: str | None = None) -> bytes:
    """Write the body of one request: greedy, its length fixed where the schema can, unless the workload omits that.

    Args:
        content: The prompt. A whole body is sent as it is; only whether it streams, the model, and the name of its
            limit of tokens, are set.
    """
    key, schema, stream = workload.max_tokens_key, workload.schema, workload.stream
    named: dict[str, Json] = {} if model is None else {"model": model}
    if isinstance(content, RawBody):
        document = {key if name == "max_tokens" else name: value for name, value in content.document.items()} | named
        document["stream"] = stream
        document.pop("stream_options", None)
        if stream and schema in {"openai_chat", "openai_completions"} and not workload.omits_stream_options:
            document["stream_options"] = {"include_usage": True}
        return json.dumps(document, separators=(",", ":")).encode()
    spelled = SCHEMAS[schema]
    is_usual = FACTS[spelled].max_tokens_key != "max_tokens" or key == "max_tokens"
    options = Options(
        max_tokens=output_tokens if is_usual else None,
        temperature=None if workload.omits_temperature else 0,
        ignore_eos=ignores_end(workload),
        counts=not workload.omits_stream_options,
        extra=named if is_usual else {**named, key: output_tokens},
    )
    return request_body(spelled, content, options, stream=stream)


def ignores_end(workload: Workload) -> bool:
    """Return whether answers go on past the end of their text: TGI's schema can't."""
    return FACTS[SCHEMAS[workload.schema]].ignore_eos_key is not None and not workload.omits_ignore_eos


def conversation(schema: PayloadSchema, contents: Sequence[Content], answers: Sequence[str]) -> Content:
    """Return the prompt of a conversation's last turn: messages for chat, for other schemas the texts in order.

    Args:
        contents: The text of each turn, one more than answers.
    """
    texts = [text for pair in zip(contents, answers, strict=False) for text in pair] + [contents[-1]]
    if schema != "openai_chat":
        return "\n\n".join(map(str, texts))
    roles = ("user", "assistant")
    return [message(roles[place % 2], str(text)) for place, text in enumerate(texts)]


COMPONENT_HEADER = "X-Amzn-SageMaker-Inference-Component"
PREFIX_HEADER = "X-Amzn-SageMaker-Prefix-Aware-Id"
SESSION_HEADER = "X-Amzn-SageMaker-Session-Id"
VARIANT_HEADER = "X-Amzn-SageMaker-Target-Variant"
# Lifetime of a bearer token, in seconds; half of it is used.
TOKEN_S = 900
# The model's name on SageMaker's OpenAI path, which routes by the URL: vLLM takes no name, and refuses a wrong one.
NO_NAME = ""
_WHERE = "trial request"


class Authorize(Protocol):
    """Adds to the headers of a request the proof of its sender."""

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """Return the headers with the proof."""


@dataclass(frozen=True, slots=True)
class Signed:
    """AWS Signature Version 4, at the time of `now` (UTC)."""

    signer: Signer
    now: Callable[[], datetime]

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """Return the headers with date, session token and signature."""
        return self.signer.signed_headers(path, headers, hashlib.sha256(body).hexdigest(), self.now())


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer token of SageMaker's OpenAI path, renewed while requests are written."""

    token: RenewedToken

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:  # noqa: ARG002 (a token signs nothing)
        """Return the headers with a token that holds."""
        return {**headers, "Authorization": f"Bearer {self.token()}"}


class Unsigned:
    """No proof but what the headers hold already."""

    __slots__ = ()

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:  # noqa: ARG002 (nothing to sign)
        """Return the headers as they are."""
        return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestWriter:
    """Writes the HTTP request with a given number.

    Attributes:
        secret: The key among the headers; empty for none.
    """

    workload: Workload
    prompts: Prompts
    address: Address
    headers: Mapping[str, str] = field(repr=False)
    authorize: Authorize
    model: str | None = None
    secret: str = field(default="", repr=False)

    def __call__(self, index: int) -> bytes:
        """Return the bytes of the request, ready for the socket."""
        return self._written(index, self.prompts.content(index), opening=index)

    def turn(self, index: int, answers: Sequence[str]) -> bytes:
        """Return the bytes of a further turn of a conversation, whose earlier turns have the numbers before it."""
        opening = index - len(answers)
        contents = [self.prompts.content(number, turn) for turn, number in enumerate(range(opening, index + 1))]
        return self._written(index, conversation(self.workload.schema, contents, answers), opening=opening)

    def _written(self, index: int, content: Content, *, opening: int) -> bytes:
        body = payload(self.workload, content, output_tokens=self.prompts.output_tokens(index), model=self.model)
        own = {PREFIX_HEADER: f"conversation-{opening}"} if self.workload.sends_prefix_id else {}
        headers = self.authorize(self.address.path, {**self.headers, **own}, body)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {self.address.path} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def terms(self, index: int) -> AnswerTerms:
        """Return the requirements of the request with this number on its answer."""
        is_own = self.workload.source != "jsonl"
        if not is_own and isinstance(self.prompts.content(index), RawBody):
            return ANYTHING
        return AnswerTerms(
            most_tokens=self.prompts.output_tokens(index),
            ignores_end=ignores_end(self.workload),
            is_plain=True,
            is_unique=is_own,
            model=self.model or "",
            own_tokens=self.prompts.own_tokens(index),
        )


def request_writer(
    target: TrialTarget,
    workload: Workload,
    prompts: Prompts,
    *,
    now: Callable[[], datetime],
    credentials: CredentialSource | None = None,
    environ: Mapping[str, str] = os.environ,
) -> RequestWriter:
    """Return the writer of the requests to a target.

    Args:
        credentials: What signs; the process's own when not given. An OpenAI-compatible server needs none.
        environ: Holds the key of an OpenAI-compatible server, and boto3's endpoint variables.

    Raises:
        BenchError: SEA501 the target can't be spoken to so, SEA503 no credentials or no key, SEA504 an unusable URL.
    """
    if problems := [Finding("SEA501", Place.at(_WHERE, field), text) for field, text in _impossible(target, workload)]:
        raise BenchError(problems)
    address = address_of(target, stream=workload.stream, schema=workload.schema, api=workload.api, environ=environ)
    headers = {"Host": address.authority, "Content-Type": CONTENT_TYPE}
    authorize: Authorize = Unsigned()
    key = ""
    if target.kind == "openai":
        key = _key(target, environ)
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
    elif workload.api == "openai":
        authorize = Bearer(RenewedToken(credentials or credential_source(environ), target.region, now, TOKEN_S))
    else:
        optional = {
            COMPONENT_HEADER: target.inference_component,
            SESSION_HEADER: target.session_id,
            VARIANT_HEADER: target.target_variant,
        }
        headers |= {name: value for name, value in optional.items() if value}
        authorize = Signed(Signer(credentials or credential_source(environ), target.region), now)
    model = target.model if target.kind == "openai" else NO_NAME if workload.api == "openai" else None
    return RequestWriter(
        workload=workload,
        prompts=prompts,
        address=address,
        headers=headers,
        authorize=authorize,
        model=model,
        secret=key,
    )


def _key(target: TrialTarget, environ: Mapping[str, str]) -> str:
    variable = target.api_key_variable
    if variable is None:
        return ""
    key = environ.get(variable, "")
    if not key or not _is_header_text(key):
        what = "is not a valid header value" if key else "is not set"
        message = f"the environment variable {variable} for the server's key {what}"
        raise BenchError.of("SEA503", message, hint=f"export {variable}=…", field="target.api_key_variable")
    return key


def _impossible(target: TrialTarget, workload: Workload) -> Iterator[tuple[str, str]]:
    for name, value in (
        ("target.inference_component", target.inference_component),
        ("target.session_id", target.session_id),
        ("target.target_variant", target.target_variant),
    ):
        if value and not _is_header_text(value):
            yield name, f"{value!r} is not a valid header value: printable ASCII without leading or trailing spaces"
        if value and target.kind == "openai":
            yield name, "only SageMaker supports it"
    if target.session_id == "NEW_SESSION" and workload.stream:
        yield "target.session_id", "a stream can't open a new session; give the ID of an existing one"
    if target.kind == "openai" and not workload.schema.startswith("openai_"):
        message = f"an OpenAI-compatible server needs openai_chat or openai_completions, not {workload.schema}"
        yield "workload.schema", message
    if target.kind == "sagemaker" and workload.api == "openai":
        yield from _impossible_with_bearer(target, workload)
    if target.kind == "sagemaker":
        yield from (
            (f"target.{name}", "only OpenAI-compatible servers support it")
            for name, value in (("model", target.model), ("api_key_variable", target.api_key_variable))
            if value
        )


def _impossible_with_bearer(target: TrialTarget, workload: Workload) -> Iterator[tuple[str, str]]:
    if workload.schema != "openai_chat":
        yield "workload.schema", f"SageMaker's OpenAI path takes openai_chat alone, not {workload.schema}"
    for name, value in (("session_id", target.session_id), ("target_variant", target.target_variant)):
        if value:
            yield (
                f"target.{name}",
                "AWS does not document whether SageMaker's OpenAI path takes it; use workload.api: invoke",
            )


def _is_header_text(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()
