"""Whole trials against servers that misbehave: what they do is data, and every result can be written and read."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.decode.response import NO_MODEL_HEADER
from seatrial_load.documents.request import Load, Objective, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from seatrial_load.documents.request import Arrival, TrialRequest

    MakeRequest = Callable[..., TrialRequest]

KEY = "sk-very-secret-0123456789"
DONE = b"data: [DONE]\n\n"
LOAD = Load(
    concurrency_levels=(1, 2), requests_per_concurrency=2, warmup_requests=2, budget_s=20.0, request_timeout_s=2.0
)
ERRORS = Objective(metric="error_rate", statistic="value", bound=0.0, sense="at_most")
TTFT = Objective(metric="ttft_ms", statistic="p95", bound=1_000.0, sense="at_most")


def event(document: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def said(text: str, *, finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


def counted(prompt: object, answer: object, cached: object = None) -> bytes:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": answer, **details}})


@contextmanager
def serving(
    answer: bytes | Callable[[Any], bytes],
    status: int = 200,
    *,
    messages: bool = False,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Serve bytes, or what a function makes of the first message, or of all of them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = asked["messages"] if messages else asked["messages"][0]["content"]
            body = answer if isinstance(answer, bytes) else answer(said)
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream")
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join(5)


@pytest.fixture
def tried(trial_request: MakeRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TrialResult]:
    monkeypatch.setenv("MY_KEY", KEY)

    def run(
        answer: bytes | Callable[[Any], bytes],
        status: int = 200,
        *,
        messages: bool = False,
        stream: bool = True,
        file: Path | None = None,
        **changes: object,
    ) -> TrialResult:
        with serving(answer, status, messages=messages) as url:
            target = TrialTarget(
                endpoint_name="mine",
                inference_component=None,
                region="",
                kind="openai",
                endpoint_url=url,
                model="tiny",
                api_key_variable="MY_KEY",
            )
            workload = Workload(input_tokens=8, output_tokens=3, schema="openai_chat", stream=stream)
            request = trial_request(
                **{"target": target, "workload": workload, "expected": None, "load": LOAD, "objectives": (TTFT,),
                   "gate_concurrency": 2, **changes}
            )  # fmt: skip
            ended = run_trial(request, tools=Tools(calibrates=False, prompts_file=file))
        assert isinstance(ended, TrialResult)
        assert TrialResult.from_json(ended.to_json()) == ended
        return ended

    return run


WELL = said("a") + said("b") + said("c", finish="length") + counted(8, 3) + DONE
ENDS = said("", finish="stop")


def test_an_honest_server(tried: Callable[..., TrialResult]) -> None:
    result = tried(WELL)
    assert [(level.succeeded, level.output_tokens_mean) for level in result.levels] == [(2, 3.0), (4, 3.0)]
    assert result.words_per_token == 0.5  # it says eight tokens whatever is sent, and the first prompt has four words
    assert result.verdict.status == "pass"


def test_answers_of_no_token_have_a_throughput_of_zero_and_no_cost(tried: Callable[..., TrialResult]) -> None:
    (_, level) = (result := tried(ENDS + counted(8, 0) + DONE)).levels
    assert (level.succeeded, level.output_tok_s, level.output_tokens_mean) == (4, 0.0, 0.0)
    assert (level.ttft_ms, level.tpot_ms, level.itl_ms, level.ms_per_token) == (None, None, None, None)
    assert level.goodput_requests_per_s == 0.0
    assert result.usd_per_million_output_tokens is None
    ttft, doubt = result.verdict.because.split("; ")
    assert ttft == "ttft_ms p95 was not measured at concurrency 2 per copy: no request has a value"
    assert doubt.startswith("ended_early: 4 of 4 answers have fewer than 90 % of the requested tokens")
    assert result.verdict.status == "inconclusive"


def test_answers_of_no_token_whose_count_is_not_told_have_no_throughput(tried: Callable[..., TrialResult]) -> None:
    (_, level) = tried(ENDS + DONE).levels
    assert (level.succeeded, level.output_tok_s, level.total_tok_s, level.output_tokens_mean) == (4, None, None, None)
    assert level.requests_per_s is not None


def test_without_usage_token_events_count_and_the_prompt_is_unknown(tried: Callable[..., TrialResult]) -> None:
    result = tried(said("a") + said("b", finish="stop") + DONE)
    level = result.levels[-1]
    assert (level.output_tokens_mean, level.input_tokens_mean, level.total_tok_s) == (2.0, None, None)
    assert result.words_per_token is None


def test_a_count_that_no_answer_can_have_is_no_count(tried: Callable[..., TrialResult]) -> None:
    level = tried(said("a", finish="stop") + counted(10**400, 10**400) + DONE).levels[-1]
    assert (level.output_tokens_mean, level.input_tokens_mean) == (1.0, None)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "protocol"),
        (b"<html>welcome</html>", "protocol"),
        (b"\x00\xff" * 400, "protocol"),
        (b"data: [[[[\n\n", "protocol"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "protocol"),
        (b'data: {"choices":[{"index":0,"delta":{"content":"\\ud800"}}]}\n\n', "protocol"),
        (b'data: {"error":{"message":"\\ud800 out of memory","type":"server","code":500}}\n\n', "model_error"),
        (said("a") + b'data: {"error":{"message":"Model is overloaded","code":503}}\n\n', "throttled"),
    ],
)
def test_a_200_that_makes_no_sense_is_a_failed_request(
    tried: Callable[..., TrialResult], body: bytes, error: str
) -> None:
    result = tried(body)
    (level,) = result.levels
    assert (level.succeeded, dict(level.errors), level.output_tok_s) == (0, {error: 2}, None)
    assert (result.verdict.status, result.target_detector) == ("fail", None)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}. See our site", "code": 401}}).encode(),
        json.dumps({"error": {"message": "x" * 280 + f" {KEY}", "code": 401}}).encode(),
        f"Authorization: Bearer {KEY} was refused".encode(),
        b"The Canonical String should have been x-amz-security-token:IQoJsk-very-secret-0123456789 x-amz-date:x",
    ],
)
def test_a_key_that_the_server_repeats_stands_in_no_result(tried: Callable[..., TrialResult], body: bytes) -> None:
    result = tried(body, 401)
    assert result.levels[0].errors == {"auth": 2}
    assert "sk-very" not in result.to_json()
    assert "[hidden]" in result.levels[0].first_errors[0]


def test_answers_that_are_not_streamed(tried: Callable[..., TrialResult]) -> None:
    whole = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 3},
    }
    result = tried(json.dumps(whole).encode(), stream=False, objectives=(ERRORS,))
    level = result.levels[-1]
    assert (level.succeeded, level.output_tokens_mean, level.parts_per_token, level.ttft_ms) == (4, 3.0, None, None)
    assert result.verdict.status == "pass"


@pytest.mark.timing
@pytest.mark.parametrize("arrival", ["poisson", "constant"])
def test_levels_of_an_open_loop_are_told_apart_by_the_rates_that_were_ordered(
    tried: Callable[..., TrialResult], arrival: Arrival
) -> None:
    """A draw of a Poisson process may make two rates equal, and a fast server has much the same in flight at each."""
    rates = (20.0, 20.5, 21.0, 21.5)
    load = replace(LOAD, arrival=arrival, rates_per_s=rates, level_s=0.3, warmup_requests=0)
    result = tried(WELL, load=load, objectives=(ERRORS,))
    assert tuple(level.offered_requests_per_s for level in result.levels) == rates


def test_the_warm_up_corrects_a_recordings_prompts_by_their_own_lengths(
    tried: Callable[..., TrialResult], tmp_path: Path
) -> None:
    """Every word is two tokens to this server. The warm-up takes the first rows, though it isn't the first request."""
    file = tmp_path / "trace.jsonl"
    rows = [{"timestamp": 100 * at, "input_length": n, "output_length": 3} for at, n in enumerate((10, 900, 20, 500))]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    result = tried(
        lambda prompt: said("a", finish="length") + counted(2 * len(prompt.split()), 3) + DONE,
        file=file,
        workload=Workload(input_tokens=357, output_tokens=3, schema="openai_chat", source="trace"),
        load=replace(LOAD, arrival="replay", warmup_requests=3),
        objectives=(ERRORS,),
    )
    (level,) = result.levels
    assert result.words_per_token == 0.5
    assert (level.requests, level.input_tokens_mean) == (4, 357.5)
    assert level.offered_requests_per_s == pytest.approx(10.0)  # three gaps in 0.3 s


LONG = Workload(input_tokens=100, output_tokens=3, schema="openai_chat")


def engine_of(*, tokens_per_word: float, template: int, longest: int, refusal: str) -> Callable[[str], bytes]:
    """Return an engine that counts prompts by its own tokenizer and refuses those that are too long."""

    def answer(prompt: str) -> bytes:
        tokens = template + round(tokens_per_word * len(prompt.split()))
        if tokens + LONG.output_tokens > longest:
            text = refusal.format(longest=longest, tokens=tokens, output=LONG.output_tokens, all=tokens + 3)
            return event({"error": {"message": text, "type": "BadRequestError", "code": 400}})
        return said("a") + said("b") + said("c", finish="length") + counted(tokens, 3) + DONE

    return answer


VLLM_SAID = (
    "This model's maximum context length is {longest} tokens. However, you requested {all} tokens ({tokens} in the "
    "messages, {output} in the completion)."
)


@pytest.mark.parametrize("refusal", [VLLM_SAID, "This model's maximum context length is {longest} tokens."])
@pytest.mark.parametrize(
    ("tokens_per_word", "template", "longest"),
    [(1.0, 0, 110), (1.78, 0, 118), (1.78, 40, 118), (2.6, 12, 118), (5.0, 12, 118)],
)
def test_prompts_are_as_long_as_the_workload_says_before_the_first_level_whatever_the_tokenizer(
    tried: Callable[..., TrialResult], refusal: str, tokens_per_word: float, template: int, longest: int
) -> None:
    """The first prompts were 1.78 times too long for a small vocabulary, and a refusal taught nothing."""
    engine = engine_of(tokens_per_word=tokens_per_word, template=template, longest=longest, refusal=refusal)
    result = tried(engine, workload=LONG)
    assert [dict(level.errors) for level in result.levels] == [{}, {}]
    assert [level.input_tokens_mean for level in result.levels] == pytest.approx([100, 100], rel=0.12)


def test_a_limit_that_leaves_nothing_above_the_workload_makes_prompts_a_little_shorter(
    tried: Callable[..., TrialResult],
) -> None:
    engine = engine_of(tokens_per_word=1.78, template=0, longest=99, refusal=VLLM_SAID)
    result = tried(engine, workload=LONG)
    assert [dict(level.errors) for level in result.levels] == [{}, {}]
    assert [level.input_tokens_mean for level in result.levels] == pytest.approx([95, 95], abs=3)


@pytest.mark.parametrize(
    ("cached", "planned", "share", "status"),
    [(100, 0, 1.0, "inconclusive"), (0, 0, 0.0, "pass"), (40, 40, 0.4, "pass"), (100, 40, 1.0, "inconclusive")],
)
def test_prompts_that_came_from_a_cache_are_told_and_more_than_the_shared_ones_prove_nothing(
    tried: Callable[..., TrialResult], cached: int, planned: int, share: float, status: str
) -> None:
    def answer(prompt: str) -> bytes:
        tokens = len(prompt.split())
        ending = said("c", finish="length") + counted(tokens, 3, cached * tokens // 100) + DONE
        return said("a") + said("b") + ending

    result = tried(answer, workload=replace(LONG, shared_prefix_tokens=planned))
    assert [level.cached_share for level in result.levels] == pytest.approx([share, share], abs=0.01)
    assert result.verdict.status == status
    told = "cached: 4 of 4 answers have more of their prompt from a cache than the workload shares"
    assert (told in result.verdict.because) == (status == "inconclusive")


@pytest.mark.parametrize("share", [0, 1])
def test_the_earlier_turns_of_a_conversation_may_come_from_a_cache(
    tried: Callable[..., TrialResult], share: int
) -> None:
    """The whole prompt does not: what a turn adds nobody has seen before."""

    def answer(messages: list[dict[str, str]]) -> bytes:
        tokens = [len(message["content"].split()) for message in messages]
        seen = sum(tokens) if share else sum(tokens[:-1])
        ending = said(" c", finish="length") + counted(sum(tokens), 3, seen) + DONE
        return said("a") + said(" b") + ending

    result = tried(answer, workload=replace(LONG, turns=3), messages=True)
    assert ("cached" in {doubt.kind for level in result.levels for doubt in level.doubts}) == bool(share)
    assert (result.levels[-1].cached_share or 0.0) > 0.1  # the first level has first turns alone
    assert result.verdict.status == ("inconclusive" if share else "pass")


def test_an_endpoint_that_tells_no_count_gets_a_word_for_a_token(tried: Callable[..., TrialResult]) -> None:
    seen: list[int] = []

    def answer(prompt: str) -> bytes:
        seen.append(len(prompt.split()))
        return said("a", finish="stop") + DONE

    assert tried(answer, workload=LONG).words_per_token is None
    assert (seen[0], set(seen[1:])) == (50, {100})


def test_an_endpoint_that_counts_the_same_for_every_prompt_gets_prompts_of_a_bounded_length(
    tried: Callable[..., TrialResult],
) -> None:
    result = tried(said("a", finish="stop") + counted(1, 1) + DONE, workload=LONG)
    assert result.words_per_token == 2.0


def test_the_embedded_aws_is_not_measured_as_a_model(trial_request: MakeRequest) -> None:
    with serving(b"{}", 501, headers={NO_MODEL_HEADER: "openai"}) as url:
        target = TrialTarget(
            endpoint_name="x", inference_component=None, region="", kind="openai", endpoint_url=url, model="x"
        )
        request = trial_request(target=target, workload=LONG, expected=None, load=LOAD, gate_concurrency=2)
        with pytest.raises(BenchError) as refused:
            run_trial(request, tools=Tools(calibrates=False))
    assert [(problem.rule, problem.field) for problem in refused.value.problems] == [("SEA616", "target.endpoint_url")]


def test_every_copy_has_its_streams_also_at_concurrency_one(tried: Callable[..., TrialResult]) -> None:
    result = tried(WELL, copy_count=3)
    assert [(level.concurrency, level.requests) for level in result.levels] == [(1, 6), (2, 12)]
