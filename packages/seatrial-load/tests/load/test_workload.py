"""What users send, from the command line over the wire to the result: lengths of a distribution, in an open loop."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from statistics import fmean
from typing import TYPE_CHECKING, TypedDict

import pytest

from seatrial_load.cli.load_command import run_load_command
from seatrial_load.cli.requests import Mistakes, request_of_server
from seatrial_load.documents.result import TrialResult
from seatrial_load.measure.interval import percentile
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.metrics.sent import sent_lines
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_load.documents.request import Load

ANSWER_S = 0.03
LENGTHS = "--input-tokens 60 --input-tokens-stddev 12 --output-tokens 20 --output-tokens-stddev 4"
QUEUED_MS = (16 * ANSWER_S - 15 / 40) * 1000
"""What the last of 16 requests waits at least, by the server's pace alone."""


class Body(TypedDict):
    """What is read of a request."""

    messages: list[dict[str, str]]
    max_tokens: int


@dataclass
class Server:
    """Counts a word as a token and answers one request after another, each in 30 ms."""

    url: str
    asked: list[Body] = field(default_factory=list)

    @property
    def prompts(self) -> list[list[str]]:
        """The words of each prompt."""
        return [body["messages"][0]["content"].split() for body in self.asked]


def answer(body: Body) -> bytes:
    prompt = " ".join(said["content"] for said in body["messages"])
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": body["max_tokens"]}
    choice = {"index": 0, "delta": {"content": " a b"}, "finish_reason": "length"}
    events = [{"choices": [choice]}, {"choices": [], "usage": {**usage, "total_tokens": sum(usage.values())}}]
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


@pytest.fixture
def server() -> Iterator[Server]:
    engine = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body: Body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with engine:
                started.asked.append(body)
                time.sleep(ANSWER_S)
            text = answer(body)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        started = Server(f"http://127.0.0.1:{listening.server_address[1]}/v1")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield started
        listening.shutdown()
        thread.join(5)


def opened(load: Load) -> Load:
    return replace(load, arrival="constant", rates_per_s=(40.0,), level_s=0.4)


def closed(concurrency: int, requests: int) -> Callable[[Load], Load]:
    return lambda load: replace(load, concurrency_levels=(concurrency,), requests=requests)


def trial(
    server: Server, load: Callable[[Load], Load], *, shared_prefix_tokens: int = 0, **workload: object
) -> TrialResult:
    """Run a trial without the client's self-calibration, which costs two seconds."""
    written = {
        "--url": server.url,
        "--input-tokens": 60,
        "--input-tokens-stddev": 12.0,
        "--output-tokens": 20,
        "--output-tokens-stddev": 4.0,
        "--shared-prefix-tokens": shared_prefix_tokens,
        "--prefix-groups": 2,
    }
    request = request_of_server(written, Mistakes(given=frozenset(written)))
    plain = replace(request.load, workers=1, warmup_requests=0, ramp_per_concurrency=0)
    asked = replace(request.workload, **workload)  # type: ignore[arg-type]  # keywords of any type
    result = run_trial(replace(request, load=load(plain), workload=asked), tools=Tools(calibrates=False))
    assert isinstance(result, TrialResult)
    return result


def test_the_command_sends_a_distribution_and_tells_it(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "result.json"
    rate = "--workers 1 --rate 40 --arrival gamma --smoothness 4 --level-seconds 0.4 --shared-prefix-tokens 30"
    run_load_command(["--model", "m", "--url", server.url, *f"{LENGTHS} {rate}".split(), "--output", str(output)])
    result = TrialResult.from_json(output.read_text(encoding="utf-8"))
    assert (result.request.load.arrival, result.request.load.arrival_smoothness) == ("gamma", 4.0)
    told = capsys.readouterr().out
    assert "sent: 60 ± 12 + 20 ± 4 tokens; 30 shared prefix tokens (" in told
    assert " % of the prompt tokens); gamma arrivals, smoothness 4; " in told
    assert "latencies count from when a request was due: they hold the queue" in told


def test_an_open_loop_tells_the_queue(server: Server) -> None:
    """16 requests in 0.4 s to a server that needs 0.48 s for them: the last waits."""
    level = trial(server, opened).levels[0]
    assert (level.requests, level.succeeded, level.offered_requests_per_s) == (16, 16, 40.0)
    assert level.ttft_ms is not None
    assert level.ttft_ms.max >= QUEUED_MS


def test_planned_rates_seek_no_knee(server: Server) -> None:
    """They end at the planned rate, and nobody measured what is beyond: scaling keeps the plan's target."""
    result = trial(server, lambda load: replace(opened(load), rates_per_s=(20.0,), rates_for_copies=1))
    assert (result.target_detector, result.target_concurrency_per_copy) == (None, 1.0)
    assert "the rates end at the planned one" in result.target_because


def test_a_client_that_runs_out_of_connections_leaves_no_queue_out(server: Server) -> None:
    level = trial(server, lambda load: replace(opened(load), max_connections=1)).levels[0]
    assert level.ttft_ms is not None
    assert level.ttft_ms.max >= QUEUED_MS
    assert not level.valid  # the endpoint never had the requests that were ordered


def test_every_trial_sends_the_same_lengths_in_other_words(server: Server) -> None:
    first, _ = (trial(server, closed(4, 32)) for _ in range(2))
    asked = lengths_of(first.request.workload)
    trials = server.asked[: len(server.asked) // 2], server.asked[len(server.asked) // 2 :]
    answers = [sorted(body["max_tokens"] for body in sent[-32:]) for sent in trials]
    assert answers[0] == answers[1] == sorted(asked.of(row)[1] for row in range(32))
    assert trials[0][-1]["messages"] != trials[1][-1]["messages"]


def test_a_level_tells_the_lengths_that_came_of_it(server: Server) -> None:
    result = trial(server, closed(4, 32))
    (level,), asked = result.levels, lengths_of(result.request.workload)
    answers = sorted(asked.of(row)[1] for row in range(32))
    assert level.output_tokens_mean == fmean(answers)
    assert level.output_tokens_p50 == pytest.approx(percentile(answers, 50))
    assert level.output_tokens_p95 == pytest.approx(percentile(answers, 95))
    assert level.input_tokens_mean == pytest.approx(60, rel=0.1)


def test_prompts_share_the_beginning_that_was_asked_for(server: Server) -> None:
    result = trial(server, closed(1, 6), shared_prefix_tokens=30)
    first, second, third = server.prompts[-3:]
    same = list(takewhile(lambda pair: pair[0] == pair[1], zip(first, third, strict=False)))
    assert len(same) == round(30 * (result.words_per_token or 1))
    assert first[:8] != second[:8]  # one word alone may be the same by chance


def test_a_conversation_holds_the_answers_that_came(server: Server) -> None:
    """Four conversations at once, of three turns: each prompt is the one before, its answer, and something new."""
    result = trial(server, closed(2, 12), turns=3)
    (level,), chats = result.levels, [body["messages"] for body in server.asked[1:]]
    assert level.conversations == sum(len(chat) == 1 for chat in chats)
    assert max(map(len, chats)) == 5
    for chat in chats:
        assert [said["role"] for said in chat] == ["user", "assistant", "user", "assistant", "user"][: len(chat)]
        assert all(said["content"] == " a b" for said in chat[1::2])
        assert len(chat) == 1 or chat[:-2] in chats
    assert level.broken_conversations == 0


def test_a_level_of_conversations_tells_the_prompts_that_grew(server: Server) -> None:
    result = trial(server, closed(2, 24), turns=3)
    alone = trial(server, closed(2, 24))
    grown, single = result.levels[0].input_tokens_mean, alone.levels[0].input_tokens_mean
    assert grown is not None
    assert single is not None
    assert grown > 1.5 * single
    assert "conversations of 3 turns" in next(sent_lines(result))


def test_conversations_of_a_file(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"turns": [{"text": "Why?"}, {"text": "And?", "output_tokens": 7}]}\n{"prompt": "Alone"}\n')
    arguments = f"--model m --url {server.url} --prompts {path} --levels 1 --requests 6 --workers 1".split()
    run_load_command(arguments)
    chats = [(body["messages"], body["max_tokens"]) for body in server.asked[-6:]]
    assert [chat[-1]["content"] for chat, _ in chats].count("And?") == 2
    assert {tokens for chat, tokens in chats if len(chat) == 3} == {7}
    assert all(chat[0]["content"] in ("Why?", "Alone") for chat, _ in chats)
