"""One table of engines that users would find bad, odd or good, each with what a verdict and a report must say of it.

The answers are decoded, measured and judged as in a trial; only socket and clock are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pytest

from seatrial_load.decode.event_stream import encode_frame
from seatrial_load.decode.exchange import Exchange, Inbox
from seatrial_load.decode.failure import failure_of_malformed
from seatrial_load.decode.http1 import ProtocolError
from seatrial_load.decode.response import record_of
from seatrial_load.decode.timed_answer import AnswerTerms
from seatrial_load.documents.request import Objective
from seatrial_load.metrics.level import level_of_records
from seatrial_load.slo.verdict import verdict_at

Event: TypeAlias = bytes
REQUESTS, TOKENS, GATE = 50, 16, 4
PROMPT, SHARED = 100, 40
ASKED = AnswerTerms(
    most_tokens=TOKENS, ignores_end=True, is_plain=True, is_unique=True, model="m", own_tokens=PROMPT - SHARED
)
ENDING = ASKED._replace(ignores_end=False)
SLO = (
    Objective(metric="ttft_ms", statistic="p95", bound=1_000.0, sense="at_most"),
    Objective(metric="tpot_ms", statistic="p95", bound=200.0, sense="at_most"),
    Objective(metric="error_rate", statistic="value", bound=0.05, sense="at_most"),
)
WORDS = [f" w{number}" for number in range(1_000)]


@dataclass(frozen=True)
class Reply:
    """What an engine sends for one request: the body in parts, each so many ms after the one before."""

    parts: tuple[bytes, ...]
    gap_ms: float = 10.0
    first_ms: float = 100.0
    head: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    is_chunked: bool = True
    stream: bool = True


Engine: TypeAlias = Callable[[int], Reply]


def event(document: object) -> Event:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def choice(text: object, finish: str | None = None, *, index: int = 0, model: str | None = None) -> Event:
    named = {} if model is None else {"model": model}
    said = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return event({"choices": [said], **named})


def usage(tokens: int, cached: object = None) -> Event:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    counts = {"prompt_tokens": PROMPT, "completion_tokens": tokens, **details}
    return event({"choices": [], "usage": counts})


DONE = b"data: [DONE]\n\n"


def words(turn: int, count: int = TOKENS) -> list[str]:
    return [WORDS[(turn * 31 + number * 7) % len(WORDS)] for number in range(count)]


def openai(
    *,
    text: Callable[[int], list[str]] = words,
    finish: str | None = "length",
    told: int | None = -1,
    model: str | None = None,
    cached: object = None,
    tail: tuple[bytes, ...] = (DONE,),
    **changes: object,
) -> Engine:
    """An OpenAI-compatible engine: an event a text, the count that it tells (-1 is the number of texts), the end."""

    def answer(turn: int) -> Reply:
        *first, last = text(turn)
        said = (*(choice(one, model=model) for one in first), choice(last, finish, model=model))
        count = len(first) + 1 if told == -1 else told
        counted = () if count is None else (usage(count, cached),)
        return replace(Reply((*said, *counted, *tail)), **changes)  # type: ignore[arg-type]  # fields of Reply

    return answer


def body(*parts: bytes, **changes: object) -> Engine:
    """An engine that sends the same bytes to everybody."""
    return lambda _turn: replace(Reply(parts), **changes)  # type: ignore[arg-type]  # fields of Reply


def whole(document: object, *headers: str) -> Engine:
    """An engine that sends one JSON document with a length."""
    text = json.dumps(document).encode()
    lines = "".join(f"{line}\r\n" for line in (*headers, f"Content-Length: {len(text)}"))
    return body(text, head=f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode(), is_chunked=False)


def every(times: int, bad: Engine, good: Engine) -> Engine:
    return lambda turn: (bad if turn % times == 0 else good)(turn)


def changed(engine: Engine, change: Callable[[bytes], bytes]) -> Engine:
    return lambda turn: replace(engine(turn), parts=tuple(map(change, engine(turn).parts)))


def bundled(size: int, **of: object) -> Engine:
    """Several tokens in each event, as speculative decoding and a streaming interval do."""
    return openai(
        text=lambda turn: ["".join(words(turn)[at : at + size]) for at in range(0, TOKENS, size)],
        **of,  # type: ignore[arg-type]  # of `openai`
    )


def lmi(turn: int) -> Reply:
    """LMI's own schema over SageMaker's event stream; its closing line counts one too many."""
    lines: list[dict[str, object]] = [{"token": {"id": at, "text": text}} for at, text in enumerate(words(turn))]
    details = {"finish_reason": "length", "generated_tokens": TOKENS + 1, "input_length": 8}
    lines[-1] |= {"generated_text": "".join(words(turn)), "details": details}
    named = {":message-type": "event", ":event-type": "PayloadPart"}
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Reply(tuple(encode_frame(named, json.dumps(line).encode() + b"\n") for line in lines), head=head)


def tgi(turn: int) -> Reply:
    """TGI, which ends where the text ends."""
    lines: list[dict[str, object]] = [{"token": {"id": at, "text": text}} for at, text in enumerate(words(turn))]
    lines[-1] |= {"generated_text": "x", "details": {"finish_reason": "length", "generated_tokens": TOKENS}}
    return Reply(tuple(map(event, lines)))


def silent(*, told: int | None = TOKENS, finish: str | None = "length", **field: object) -> Engine:
    """An engine whose parts have no text; a field of its own in each, perhaps."""
    part = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "", **field}}]})
    counted = () if told is None else (usage(told),)
    return body(*([part] * TOKENS), choice("", finish), *counted, DONE)


def lmi_tokens(texts: list[str], *, special: bool = False) -> Engine:
    """LMI's JSON lines and TGI's, whose tokens may be control tokens."""
    lines: list[dict[str, object]] = [{"token": {"id": 2, "text": text, "special": special}} for text in texts]
    details = {"finish_reason": "length", "generated_tokens": len(texts)}
    lines[-1] |= {"generated_text": "" if special else "".join(texts), "details": details}
    return body(*(json.dumps(line).encode() + b"\n" for line in lines))


def not_streamed(text: str, *, told: int = TOKENS, **message: object) -> Engine:
    said = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "length"}
    document = {"choices": [said], "usage": {"prompt_tokens": PROMPT, "completion_tokens": told}}
    answer = whole(document, "Content-Type: application/json")
    return lambda turn: replace(answer(turn), stream=False)


def several_models(turn: int) -> Reply:
    """An answer of which one part comes from another model."""
    *first, last = words(turn)
    said = (*(choice(text, model="tiny" if at == 8 else "m") for at, text in enumerate(first)), choice(last, "length"))
    return Reply((*said, usage(TOKENS), DONE))


def in_lines(part: bytes) -> bytes:
    """An event whose data is in several lines, as a proxy that formats JSON writes it."""
    if not part.startswith(b"data: {"):
        return part
    return (
        b"".join(b"data: " + line + b"\n" for line in json.dumps(json.loads(part[6:]), indent=1).encode().split(b"\n"))
        + b"\n"
    )


def tools(_turn: int) -> Reply:
    called = [{"index": 0, "function": {"arguments": "{"}}]
    part = event({"choices": [{"index": 0, "delta": {"tool_calls": called}, "finish_reason": None}]})
    return Reply((*([part] * TOKENS), choice("", "tool_calls"), usage(TOKENS), DONE))


def two_choices(turn: int) -> Reply:
    parts = [choice(text, index=index) for text in words(turn) for index in (0, 1)]
    return Reply((*parts, choice("", "length"), usage(2 * TOKENS), DONE))


def warm_only(turn: int) -> Reply:
    return openai()(turn) if turn == 0 else body(b"", first_ms=1.0)(turn)


def slowing(turn: int) -> Reply:
    """A minute after the start, with 1.2 s a request, everything takes 15 times as long."""
    return openai(first_ms=1_500.0 if turn >= REQUESTS * 0.9 else 100.0)(turn)


def refused(document: object) -> Engine:
    return whole(document, "Content-Type: application/json")


ERROR: dict[str, object] = {"error": {"message": "CUDA out of memory", "type": "server_error", "code": 500}}
CR = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Case:
    engine: Engine
    status: str
    told: str
    asked: AnswerTerms = ASKED


FAILS: dict[str, Case] = {
    "a context that is full after three tokens": Case(
        openai(text=lambda turn: words(turn, 3)), "fail", "truncated 50 (truncated: finish_reason length after 3 of 16"
    ),
    "one token and length": Case(openai(text=lambda turn: words(turn, 1)), "fail", "truncated 50"),
    "killed after four tokens": Case(openai(text=lambda turn: words(turn, 4), finish="abort"), "fail", "aborted 50"),
    "cancelled by a time limit": Case(openai(finish="timeout"), "fail", "aborted 50"),
    "withheld content": Case(openai(finish="content_filter"), "fail", "filtered 50"),
    "an error as the reason of the end": Case(openai(finish="error"), "fail", "model_error 50"),
    "2 tokens and a count of 10,000": Case(
        openai(text=lambda turn: words(turn, 2), told=10_000), "fail", "the answer counts 10000 tokens; at most 16"
    ),
    "twice the tokens that were asked": Case(
        openai(text=lambda turn: words(turn, 32)), "fail", "the answer counts 32 tokens; at most 16 were requested"
    ),
    "two choices": Case(two_choices, "fail", "more than one choice"),
    "two choices in one document": Case(
        body(event({"choices": [{"index": at, "delta": {"content": "a"}} for at in (0, 1)]}), DONE),
        "fail",
        "more than one choice",
    ),
    "tool calls that nobody asked for": Case(tools, "fail", "the answer calls a tool; none was offered"),
    "only the closing line": Case(body(DONE), "fail", "the answer has only its closing line"),
    "no closing line": Case(openai(finish=None, tail=()), "fail", "ended before its closing line"),
    "an error object with 200": Case(refused(ERROR), "fail", "CUDA out of memory"),
    "an error text with 200": Case(refused({"error": "CUDA out of memory"}), "fail", "model_error 50"),
    "a detail with 200": Case(refused({"detail": "Internal Server Error"}), "fail", "unknown answer format"),
    "an error in the stream": Case(
        body(*(choice(text) for text in words(1, 4)), event(ERROR)), "fail", "(after 4 token events)"
    ),
    "an error event": Case(body(b"event: error\n" + event(ERROR)), "fail", "model_error 50"),
    "HTML": Case(body(b"<html>welcome</html>"), "fail", "not JSON"),
    "an empty body": Case(body(b""), "fail", "protocol 50"),
    "no content": Case(
        body(head=b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", is_chunked=False), "fail", "HTTP 204"
    ),
    "a part of the content": Case(
        lambda turn: replace(
            openai()(turn),
            head=b"HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        "fail",
        "HTTP 206",
    ),
    "no text and a count": Case(silent(), "fail", "no_text 50 (no_text: the answer has no text; by its count it has"),
    "null for text": Case(
        body(*([choice(None)] * TOKENS), choice(None, "length"), usage(TOKENS), DONE), "fail", "no_text 50"
    ),
    "no text, no count and the limit": Case(
        silent(told=None), "fail", "no_text: the answer has no text; by the limit that it reached it has 16"
    ),
    "no text in half": Case(every(2, silent(), openai()), "fail", "error_rate 50.00 % exceeds 5.00 %"),
    "no text that is not streamed": Case(not_streamed(""), "fail", "no_text 50"),
    "one token repeated": Case(
        openai(text=lambda _: ["!"] * TOKENS), "fail", "50 of 50 answers at concurrency 4 per copy say nothing, more"
    ),
    "one token repeated in a third": Case(
        every(3, openai(text=lambda _: ["!"] * TOKENS), openai()), "fail", "with 95 % confidence: repeated 17"
    ),
    "one token repeated, several in a part": Case(
        openai(text=lambda _: ["!!", "!!!!!", "!", "!!!!!!!!"], told=TOKENS), "fail", "repeated 50"
    ),
    "one token repeated, with its space": Case(
        openai(text=lambda _: ["a", *([" a"] * (TOKENS - 1))]), "fail", "repeated 50"
    ),
    "one token repeated that is not streamed": Case(not_streamed("!" * TOKENS), "fail", "repeated 50"),
    "the same from LMI": Case(lmi_tokens(["�"] * TOKENS), "fail", "repeated 50"),
    "one token repeated in three of fifty": Case(
        every(17, openai(text=lambda _: ["!"] * TOKENS), openai()), "fail", "3 of 50 answers at concurrency 4"
    ),
    "blanks": Case(openai(text=lambda _: [" ", "\n"] * (TOKENS // 2)), "fail", "blank 50"),
    "blanks in two of five": Case(
        lambda turn: openai(text=words if turn % 5 > 1 else lambda _: ["\n"] * TOKENS)(turn), "fail", "blank 20"
    ),
    "blanks and one token": Case(
        openai(text=lambda turn: [{3: "\n", 4: " ", 7: "!"}[turn]] * TOKENS if turn in {3, 4, 7} else words(turn)),
        "fail",
        "3 of 50 answers at concurrency 4 per copy say nothing, more than 1 % with 95 % confidence: blank 2, repeated",
    ),
    "NUL": Case(openai(text=lambda _: ["\0"] * TOKENS), "fail", "blank 50"),
    "control tokens alone": Case(lmi_tokens(["</s>"] * TOKENS, special=True), "fail", "blank 50"),
    "only the warm-up is answered": Case(warm_only, "fail", "error_rate 98"),
    "every tenth fails": Case(every(10, refused(ERROR), openai()), "fail", "error_rate"),
    "slower after a minute": Case(slowing, "fail", "ttft_ms p95"),
    "a cache that knows no prompt of the trial": Case(openai(first_ms=3_000.0), "fail", "ttft_ms p95"),
    "not a number": Case(
        changed(openai(), lambda part: part.replace(b'"index": 0', b'"index": 0, "logprob": NaN')), "fail", "not JSON"
    ),
    "two lengths": Case(
        body(DONE, head=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 14\r\n\r\n", is_chunked=False),
        "fail",
        "two content lengths",
    ),
}  # fmt: skip
UNPROVEN: dict[str, Case] = {
    "2 or 3 of 16 tokens, and stop": Case(
        openai(text=lambda turn: words(turn, 2 + turn % 2), finish="stop"), "inconclusive", "ended_early: 50 of 50"
    ),
    "2 of 16 tokens, no count, and stop": Case(
        openai(text=lambda turn: words(turn, 2), finish="stop", told=None), "inconclusive", "ended_early: 50 of 50"
    ),
    "every tenth is cut": Case(
        every(10, openai(text=lambda turn: words(turn, 2), finish="stop"), openai()),
        "inconclusive",
        "ended_early: 5 of 50",
    ),
    "one token, no count, and length": Case(
        openai(text=lambda turn: words(turn, 1), told=None), "inconclusive", "uncounted: 50 of 50"
    ),
    "no text and no token": Case(silent(told=0, finish="stop"), "inconclusive", "ended_early: 50 of 50"),
    "no text and no count": Case(silent(told=None, finish="stop"), "inconclusive", "ended_early: 50 of 50"),
    "all of the prompt from a cache": Case(
        openai(cached=PROMPT), "inconclusive", "cached: 50 of 50 answers have more of their prompt from a cache"
    ),
    "more from a cache than the prompt has": Case(openai(cached=PROMPT + 7), "inconclusive", "cached: 50 of 50"),
    "more than the shared prefix from a cache": Case(
        openai(cached=SHARED + 16), "inconclusive", "cached: 50 of 50"
    ),
    "a part of the prompts from a cache": Case(
        every(5, openai(cached=PROMPT), openai(cached=SHARED)), "inconclusive", "cached: 10 of 50"
    ),
    "one token and stop": Case(
        openai(text=lambda turn: words(turn, 1), finish="stop"), "inconclusive", "ended_early: 50 of 50"
    ),
    "the whole stream at its end": Case(openai(gap_ms=0.0, first_ms=300.0), "inconclusive", "burst: 50 of 50"),
    "the whole stream in a few reads": Case(openai(gap_ms=0.02, first_ms=300.0), "inconclusive", "burst: 50 of 50"),
    "all tokens in one event": Case(bundled(TOKENS, told=TOKENS), "inconclusive", "burst: 50 of 50"),
    "two thirds at their end": Case(every(3, openai(), openai(gap_ms=0.0)), "inconclusive", "burst: 33 of 50"),
}  # fmt: skip
TOLD: dict[str, Case] = {
    "another model": Case(openai(model="tiny-gpt2"), "pass", "other_model: 50 of 50 answers name another model than"),
    "several models within one answer": Case(several_models, "pass", "other_model: 50 of 50"),
    "several models, and none was asked": Case(
        several_models, "pass", "other_model: 50 of 50 answers name another model than requested, or several: tiny",
        ASKED._replace(model=""),
    ),
    "one answer that repeats one token": Case(
        every(50, openai(text=lambda _: ["!"] * TOKENS), openai()), "pass", "repeated: 1 of 50"
    ),
    "two answers that repeat one token, which proves no more than 1 %": Case(
        every(25, openai(text=lambda _: ["!"] * TOKENS), openai()), "pass", "repeated: 2 of 50"
    ),
    "one answer of blanks": Case(every(50, openai(text=lambda _: ["\n"] * TOKENS), openai()), "pass", "blank: 1 of 50"),
    "one prompt from a cache": Case(every(50, openai(cached=PROMPT), openai()), "pass", "cached: 1 of 50"),
    "a cached answer for everybody": Case(openai(text=lambda _: words(0)), "pass", "same_text: 50 of 50"),
    "a cached answer for most": Case(
        every(3, openai(), openai(text=lambda _: words(0))), "pass", "same_text: 34 of 50"
    ),
    "one answer that is cut": Case(
        every(50, openai(text=lambda turn: words(turn, 2), finish="stop"), openai()), "pass", "ended_early: 1 of 50"
    ),
    "every 50th fails": Case(every(50, refused(ERROR), openai()), "pass", "49 of 50 requests succeeded"),
    "TGI that ends where the text ends": Case(
        openai(text=lambda turn: words(turn, 4), finish="eos_token"),
        "pass",
        "short: 50 of 50",
        ENDING,
    ),
}  # fmt: skip
GOOD: dict[str, Case] = {
    "vLLM": Case(openai(model="m"), "pass", ""),
    "vLLM with a role first": Case(
        lambda turn: replace(openai()(turn), parts=(choice(""), *openai()(turn).parts)), "pass", ""
    ),
    "vLLM with speculative decoding": Case(bundled(5, told=TOKENS), "pass", ""),
    "SGLang with a streaming interval": Case(bundled(8, told=TOKENS), "pass", ""),
    "parts of several tokens, no count": Case(bundled(4, told=None), "pass", ""),
    "llama.cpp without a count": Case(openai(told=None), "pass", ""),
    "TensorRT-LLM": Case(openai(model="M"), "pass", ""),
    "a tiny engine that some answers of are read at once": Case(every(4, openai(gap_ms=0.0), openai()), "pass", ""),
    "LMI": Case(lmi, "pass", ""),
    "TGI": Case(tgi, "pass", "", ENDING),
    "a name with its owner": Case(openai(model="meta/m"), "pass", ""),
    "an adapter of LoRA": Case(openai(model="base:adapter"), "pass", "", ASKED._replace(model="")),
    "a token without text": Case(openai(text=lambda turn: ["", *words(turn, 14), ""]), "pass", ""),
    "a good answer, then one token for ever": Case(
        openai(text=lambda turn: [*words(turn, 1), *(["\n"] * (TOKENS - 1))]), "pass", ""
    ),
    "control tokens first": Case(openai(text=lambda turn: ["", "", "", *words(turn, TOKENS - 3)]), "pass", ""),
    "a loop of several tokens": Case(openai(text=lambda _: [" the", " cat"] * (TOKENS // 2)), "pass", "same_text: 50"),
    "the shared prefix from a cache": Case(openai(cached=SHARED), "pass", ""),
    "a template that all prompts have in a cache": Case(openai(cached=SHARED + 8), "pass", ""),
    "no count of what was cached": Case(openai(cached="many"), "pass", ""),
    "a cached prompt of the user's own": Case(openai(cached=PROMPT), "pass", "", AnswerTerms()),
    "reasoning alone": Case(
        lambda turn: Reply((
            *(event({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}) for text in words(turn)),
            choice(None, "length"), usage(TOKENS), DONE,
        )), "pass", "",
    ),
    "log-probabilities alone": Case(
        lambda turn: Reply((
            *(
                event({"choices": [{"delta": {"content": ""}, "logprobs": {"content": [{"token": text}]}}]})
                for text in words(turn)
            ),
            choice("", "length"), usage(TOKENS), DONE,
        )), "pass", "", AnswerTerms(),
    ),
    "several lines of data in an event": Case(changed(openai(), in_lines), "pass", ""),
    "an end of text that can't be ignored, at times": Case(
        every(25, openai(text=lambda turn: words(turn, 9), finish="stop"), openai()), "pass", "ended_early: 2 of 50"
    ),
    "carriage returns and a byte order mark": Case(
        lambda turn: replace(
            openai()(turn),
            parts=tuple(
                (CR if at == 0 else b"") + part.replace(b"\n", b"\r") for at, part in enumerate(openai()(turn).parts)
            ),
        ),
        "pass",
        "",
    ),
    "CRLF and comments": Case(
        changed(openai(), lambda part: b": ping\r\n\r\n" + part.replace(b"\n", b"\r\n")), "pass", ""
    ),
    "a body of the user's own": Case(two_choices, "pass", "", AnswerTerms()),
    "tools of the user's own": Case(tools, "pass", "", AnswerTerms()),
}  # fmt: skip
CASES = {**FAILS, **UNPROVEN, **TOLD, **GOOD}


@pytest.mark.parametrize(
    ("engine", "error"),
    [
        (silent(told=3), None),  # three bytes of a character of four
        (silent(told=1), None),
        (silent(told=4), "no_text"),
        (silent(audio={"data": "UklGRg=="}), None),
        (silent(content=[{"type": "text", "text": "a"}]), None),
        (silent(reasoning="a"), None),
        (not_streamed("", audio={"data": "UklGRg=="}), None),
        (not_streamed("", told=3), None),
        (not_streamed("", reasoning_content="a"), None),
        (lmi_tokens(["a"] * TOKENS), None),
    ],
)
def test_an_answer_without_text_has_failed_where_its_tokens_can_be_nowhere_else(
    engine: Engine, error: str | None
) -> None:
    answer = engine(0)
    assert record_of(sent(answer, 0.0, 0), stream=answer.stream).error == error


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def sent(answer: Reply, at_s: float, index: int) -> Exchange:
    """What the client has of an answer whose request left at a time."""
    inbox, failure, now_s = Inbox(), None, at_s + answer.first_ms / 1e3
    end = [b"0\r\n\r\n"] if answer.is_chunked else []
    parts = [chunk(part) for part in answer.parts if part] if answer.is_chunked else list(answer.parts)
    try:
        inbox.add(now_s, answer.head)
        for part in (*parts, *end):
            inbox.add(now_s, part)
            now_s += answer.gap_ms / 1e3
    except ProtocolError as malformed:
        failure = failure_of_malformed(malformed)
    return Exchange(at_s, now_s, inbox, failure, index)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_verdict_calls_an_engine_by_its_name(case: Case) -> None:
    records, now_s = [], 0.0
    for turn in range(REQUESTS):
        answer = case.engine(turn)
        exchange = sent(answer, now_s, turn)
        records.append(record_of(exchange, stream=answer.stream, terms=case.asked))
        now_s = exchange.ended_s
    level = level_of_records(GATE, records, SLO)
    verdict = verdict_at(GATE, [level], SLO, confidence=0.8)
    told = [verdict.because, *(f"{doubt.kind}: {doubt.because}" for doubt in level.doubts)]
    assert verdict.status == case.status, told
    assert any(case.told in one for one in told), told
    if not case.told:
        assert level.doubts == ()
        assert level.succeeded == REQUESTS
