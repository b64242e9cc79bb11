"""`seatrial bench` as a user runs it, against a server of the test's own that speaks OpenAI's API."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.result import LevelResult, TrialResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Seatrial

pytestmark = pytest.mark.timing

ANSWERS_UNTIL_TIRED = 34
TOKENS = 5
THE_CLIENT = "is void: the client was the limit"
"""A machine with other things to do makes a level void, and the verdict inconclusive: no test may judge that."""


class OpenAI(BaseHTTPRequestHandler):
    """Answers by the first folder of the path: `v1` as many tokens as are asked, the others with a refusal."""

    protocol_version = "HTTP/1.1"
    turn = 0
    answers: Iterator[int] = count()
    asked = threading.Event()
    may_answer = threading.Event()

    def do_GET(self) -> None:
        """List the one model."""
        self._tell(200, "application/json", b'{"data":[{"id":"m"}],"version":"0.20.2"}')

    def do_POST(self) -> None:
        """Answer one request."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["max_tokens"]
        manner = self.path.split("/")[1]
        if manner == "v1":
            self._tell(200, "text/event-stream", _stream(asked))
        elif manner == "unauthorized":
            self._tell(401, "application/json", b'{"error":{"message":"wrong key","type":"invalid_request_error"}}')
        elif manner == "half":
            OpenAI.turn += 1
            if OpenAI.turn % 2:
                self._tell(200, "text/event-stream", _stream(asked))
            else:
                self._tell(429, "application/json", b'{"error":{"message":"slow down","type":"throttling"}}')
        elif manner == "page":
            self._tell(404, "text/html", b"<html><body>no such page</body></html>")
        elif manner == "silent" or (manner == "tires" and next(OpenAI.answers) >= ANSWERS_UNTIL_TIRED):
            self.asked.set()
            self.may_answer.wait(30)
            self.close_connection = True
        elif manner == "tires":
            self._tell(200, "text/event-stream", _stream(asked))
        else:
            self.close_connection = True

    def _tell(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep standard error clean."""


def _stream(tokens: int) -> bytes:
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": f" word{number}"}, "finish_reason": None}]}
        for number in range(tokens)
    ]
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}}
    return b"".join(b"data: %b\n\n" % json.dumps(piece).encode() for piece in (*pieces, usage)) + b"data: [DONE]\n\n"


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), OpenAI)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        OpenAI.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with serving() as origin:
        yield origin


def told_of(done: subprocess.CompletedProcess[str], name: str) -> str:
    """Return what a line of the conclusion says: `verdict`, `stopped`."""
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(f"{name}: "))
    return line.removeprefix(f"{name}: ")


def test_a_server_is_measured_and_the_report_written(seatrial: Seatrial, project: Path, origin: str) -> None:
    command = ["bench", "--url", f"{origin}/v1", "--model", "m", "--output-tokens", str(TOKENS), "--requests", "4"]
    done = seatrial(*command, "--levels", "1,2", "--records", "requests.jsonl", "-o", "page")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines if line.startswith("concurrency")] == [
        "concurrency 1",
        "concurrency 2",
    ]
    assert all(" 4/4 succeeded" in line for line in lines if line.startswith("concurrency")), (
        "a busy machine adds remarks"
    )
    assert lines[-2:] == ["stopped: every level was measured", "page/report.html"]
    verdict = told_of(done, "verdict")
    assert THE_CLIENT in verdict or verdict == (
        "pass: no objective is set; 4 of 4 requests succeeded at concurrency 1 per copy"
    )
    result = TrialResult.from_json((project / "page" / "report.json").read_text())
    assert [(level.concurrency, level.requests, level.output_tokens_mean) for level in result.levels] == [
        (1, 4, TOKENS),
        (2, 4, TOKENS),
    ]
    records = [json.loads(line) for line in (project / "requests.jsonl").read_text().splitlines()]
    assert {record["concurrency"] for record in records if not record["ramp"]} == {1, 2}


def test_the_commands_of_the_page_on_agents_replay_its_traces(seatrial: Seatrial, project: Path, origin: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")
    for name, block in zip(
        ("weka.json", "spans.jsonl"), re.findall(r"```json\n(.*?)```", page, re.DOTALL), strict=True
    ):
        (project / name).write_text(block, encoding="utf-8")
    levels: list[LevelResult] = []
    for command in re.findall(r"^seatrial (bench .*)", page, re.MULTILINE):
        done = seatrial(*command.replace("http://localhost:8000", origin).split(), "-o", "agents")
        assert done.stderr == ""
        assert told_of(done, "sent").count("sessions of") == 1
        assert " an hour" in next(line for line in done.stdout.splitlines() if line.startswith("sessions at"))
        levels += TrialResult.from_json((project / "agents" / "report.json").read_text(encoding="utf-8")).levels
    # Four turns a session, at least twice as many sessions as go on at once; then two sessions of two turns and of one.
    assert [level.requests + level.ramp_requests for level in levels] == [12, 16, 3]
    assert [level.conversations for level in levels[2:]] == [2]
    assert all(level.session_ms and level.first_turn_ttft_ms and level.later_turns_ttft_ms for level in levels)
    # Gaps of 0.1 s before the sub-agents and the last call; the second session begins 0.25 s after the first.
    assert all(level.session_ms.mean > 200 for level in levels[:2] if level.session_ms)
    assert levels[2].arrival == "replay"


def test_the_gate_is_the_lowest_level_unless_said(seatrial: Seatrial, origin: str) -> None:
    command = ["bench", "--url", f"{origin}/v1", "--output-tokens", str(TOKENS), "--requests", "4"]
    done = seatrial(*command, "--levels", "4,2")
    verdict = told_of(done, "verdict")
    assert "at concurrency 2 per copy" in verdict
    assert THE_CLIENT in verdict or verdict == (
        "pass: no objective is set; 4 of 4 requests succeeded at concurrency 2 per copy"
    )


def test_an_adaptive_search_says_why_each_level_is_next(seatrial: Seatrial, origin: str) -> None:
    done = seatrial("bench", "--url", f"{origin}/v1", "--levels", "1,4", "--search", "adaptive")
    lines = done.stdout.splitlines()
    reasons = [line for line in lines if line.startswith("next: concurrency ")]
    assert reasons, done.stdout + done.stderr
    assert all(line.split(": ", 2)[2] for line in reasons)
    for line in reasons:
        load = line.removeprefix("next: ").partition(":")[0]
        assert lines[lines.index(line) + 1].startswith(f"{load}: "), "its measurement follows the reason"


def test_half_of_the_requests_failed(seatrial: Seatrial, origin: str) -> None:
    done = seatrial("bench", "--url", f"{origin}/half", "--levels", "1,2", "--requests", "8", "--gate", "1")
    assert (done.returncode, done.stderr) == (1, "")
    assert told_of(done, "verdict") == (
        "fail: 4 of 8 requests failed at concurrency 1 per copy, more than 1 %: throttled 4 "
        "(throttled: HTTP 429 throttling: slow down)"
    )


@pytest.mark.parametrize("allowed", [("--max-error-rate", "0.6"), ("--slo", "error_rate=0.9")])
def test_how_many_may_fail_can_be_said(seatrial: Seatrial, origin: str, allowed: tuple[str, str]) -> None:
    done = seatrial("bench", "--url", f"{origin}/half", "--levels", "1", "--requests", "8", *allowed)
    assert done.stderr == ""
    assert not told_of(done, "verdict").startswith("fail")  # a busy machine may make the level void


def test_a_share_of_failures_is_from_0_to_1(seatrial: Seatrial, origin: str) -> None:
    done = seatrial("bench", "--url", f"{origin}/v1", "--max-error-rate", "5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "command line: --max-error-rate: SEA501: 5 is more than 1\n"


def test_a_level_of_an_open_loop_is_a_rate(seatrial: Seatrial, origin: str) -> None:
    rate = ("--rate", "20", "--arrival", "constant", "--level-seconds", "0.5")
    done = seatrial("bench", "--url", f"{origin}/v1", *rate)
    assert done.stderr == ""
    assert [line for line in done.stdout.splitlines() if line.startswith("20.0 requests/s: ")]
    assert "10/10 succeeded" in done.stdout


@pytest.mark.parametrize(
    ("manner", "told"),
    [
        ("unauthorized", "auth 2 (auth: HTTP 401 invalid_request_error: wrong key)"),
        ("page", "validation 2 (validation: HTTP 404: <html><body>no such page</body></html>)"),
        ("closing", "connection 2 (connection: the connection was closed in the middle of the response)"),
    ],
)
def test_a_refusal_is_told_in_the_servers_words(seatrial: Seatrial, origin: str, manner: str, told: str) -> None:
    done = seatrial("bench", "--url", f"{origin}/{manner}", "--model", "m", "--levels", "1", "--requests", "2")
    level = f"0 of 2 requests succeeded at concurrency 1 per copy: {told}"
    assert (done.returncode, done.stderr) == (1, "")
    line = done.stdout.splitlines()[1]
    # On a busy machine the level is void as well.
    assert line.startswith("concurrency 1: 0/2 succeeded: ")
    assert level in line or ": void: " in line
    assert told_of(done, "stopped") == "no request succeeded at concurrency 1 per copy"
    of_a_void_level = f"2 of 2 requests failed at concurrency 1 per copy, more than 1 %: {told}"
    assert told_of(done, "verdict") in {f"fail: {level}", f"fail: {of_a_void_level}"}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", ["SPEC: SEA501: give the spec of a deployed endpoint, or --url"]),
        ("chat.yaml", ["--environment: SEA501: SPEC needs an environment: add `-e ENV`"]),
        (
            "chat.yaml -e dev --gate 3 --model m",
            [
                "--model: SEA501: needs --url",
                "--gate: SEA501: needs --url",
            ],
        ),
        (
            "chat.yaml --url http://localhost",
            ["--url: SEA501: can't be combined with SPEC or --environment"],
        ),
        (
            "--url nonsense --levels 1,x",
            [
                "--levels: SEA501: '1,x' is not a list of whole numbers as in 1,2,4",
                "--url: SEA504: the endpoint nonsense can't be used: not of the form http(s)://host[:port][/path]",
                "  hint: give the server's base URL, such as http://localhost:8000/v1",
            ],
        ),
        (
            "--url http://localhost --rate 1 --search adaptive",
            ["--rate: SEA501: can't be combined with --search: the levels of an open loop are its rates"],
        ),
        (
            "--url http://localhost --trace t.csv --rate 1",
            ["--trace: SEA501: can't be combined with --rate: a replay keeps the recorded times or gaps"],
        ),
        (
            "--url http://localhost --rate 1 --protocol jumpstart-2024",
            ["--rate: SEA501: can't be combined with --protocol: the levels of an open loop are its rates"],
        ),
        (
            "--url http://localhost --prompts p --tokenizer t",
            ["--prompts: SEA501: can't be combined with --tokenizer: the prompts are sent unchanged"],
        ),
        (
            "--url http://localhost --protocol jumpstart-2024 --retries 1",
            ["--protocol: SEA501: can't be combined with --retries: the article's protocol sets them"],
        ),
        ("--url http://localhost --arrival ramp", ["--arrival: SEA501: needs --rate"]),
        (
            "--url http://localhost --connections 9",
            ["--connections: SEA501: needs --rate or --trace"],
        ),
        (
            "--url http://localhost --trace t.csv --speed 0",
            ["--speed: SEA501: 0 is not a finite number above 0"],
        ),
        ("--url http://localhost --goal knee", ["--goal: SEA501: needs --search adaptive"]),
        ("--url http://localhost --levels 2,4 --gate 8", ["--gate: SEA501: 8 is not one of the levels 2, 4"]),
        (
            "--url http://localhost --levels 2,4 --search adaptive --gate 8",
            ["--gate: SEA501: 8 is not between the lowest and the highest level, 2 and 4"],
        ),
        (
            "--url http://localhost --rate 1e6 --level-seconds 2",
            ["--rate: SEA501: 2,000,000 requests per level; the maximum is 1,000,000"],
        ),
        (
            "--url http://localhost --input-tokens 10000001",
            ["--input-tokens: SEA501: 10,000,001 is more than 10,000,000"],
        ),
        (
            "--url http://localhost --slo fast --slo ttft_ms=5 --levels 1,x --budget -1 --retries -1 --output-tokens 0",
            [
                "--levels: SEA501: '1,x' is not a list of whole numbers as in 1,2,4",
                "--slo: SEA501: 'fast' is not an objective such as ttft_ms.p95=500, error_rate=0.01 or "
                "output_tok_s=1000",
                "--output-tokens: SEA501: 0 is not above 0",
                "--budget (in s): SEA501: -60 is not above 0",
                "--retries: SEA501: -1 is below 0",
                "--slo: SEA501: ttft_ms has a percentile or mean, not value",
            ],
        ),
    ],
)
def test_every_mistake_is_told_at_once_before_anything_is_sent(
    seatrial: Seatrial, written: str, told: list[str]
) -> None:
    done = seatrial("bench", *written.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [line if line.startswith("  ") else f"command line: {line}" for line in told]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "--url nonsense",
            "command line: --url: SEA504: the endpoint nonsense can't be used: not of the form "
            "http(s)://host[:port][/path]\n  hint: give the server's base URL, such as http://localhost:8000/v1\n",
        ),
        (
            "--url http://localhost --api-key-variable NO_SUCH_KEY",
            "command line: --api-key-variable: SEA503: the environment variable NO_SUCH_KEY for the server's key is "
            "not set\n  hint: export NO_SUCH_KEY=…\n",
        ),
        ("--url http://localhost --prompts none", "none: SEA509: can't be read: No such file or directory\n"),
        ("--url http://localhost --trace none", "none: SEA510: can't be read: No such file or directory\n"),
        ("--url http://localhost --trace blob", "blob: SEA510: not UTF-8: invalid start byte\n"),
        ("--url http://localhost --records none/x", "none/x: SEA506: can't be written: No such file or directory\n"),
        ("--url http://localhost -o blob/page", "blob/page: SEA506: can't be written: blob is not a folder\n"),
        (
            "--url http://localhost --against empty",
            "empty: SEA501: not JSON: Expecting value: line 1 column 1 (char 0)\n",
        ),
    ],
)
def test_what_can_not_be_used_is_named_before_anything_is_sent(
    seatrial: Seatrial, project: Path, written: str, told: str
) -> None:
    (project / "blob").write_bytes(b"\xff\xfe\x00")
    (project / "empty").write_bytes(b"")
    done = seatrial("bench", *written.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.replace(f"{project.as_posix()}/", "") == told


def test_interrupted_it_says_so_and_leaves_nothing_behind(project: Path, origin: str) -> None:
    OpenAI.asked.clear()
    OpenAI.may_answer.clear()  # the end of another server sets it
    command = [sys.executable, "-m", "seatrial.cli", "bench", "--url", f"{origin}/silent", "--levels", "2"]
    process = subprocess.Popen(
        [*command, "--workers", "2", "-o", "page"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert OpenAI.asked.wait(30), "no request was sent"
    os.killpg(process.pid, signal.SIGINT)  # a terminal tells the whole group
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (130, "interrupted\n")
    assert ends(process.pid, within_s=20), "a worker is left"
    assert not (project / "page").exists()


LOAD = ("-c", "from seatrial_load.cli import main; main()", "--output", "page.json")


@pytest.mark.parametrize(
    ("number", "command", "written"),
    [
        (signal.SIGINT, ("-m", "seatrial.cli", "bench", "--output", "page"), "page/report.json"),
        (signal.SIGKILL, LOAD, "page.json.unfinished"),
    ],
)
def test_a_trial_that_is_ended_keeps_what_it_had_measured(
    project: Path, origin: str, number: signal.Signals, command: tuple[str, ...], written: str
) -> None:
    """The first request, the warm-up and the first level take up to 30; the second level is answered in part."""
    OpenAI.asked.clear()
    OpenAI.may_answer.clear()  # the end of another server sets it
    OpenAI.answers = count()
    options = ["--levels", "1,2", "--gate", "2", "--requests", "16", "--workers", "2", "--output-tokens", f"{TOKENS}"]
    process = subprocess.Popen(
        [sys.executable, *command, "--url", f"{origin}/tires", "--model", "m", *options],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert OpenAI.asked.wait(30), "the second level was not reached"
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=30)
    result = TrialResult.from_json((project / written).read_text(encoding="utf-8"))
    first, *others = result.levels
    assert (first.concurrency, first.mark, first.requests) == (1, "", 16)
    if number == signal.SIGKILL:
        assert (others, result.verdict.status) == ([], "inconclusive")
        return
    (second,) = others
    assert (process.returncode, second.mark) == (130, "cut")
    assert second.cut.startswith("interrupted (")
    assert 0 < second.succeeded == second.requests < 16
    assert f"{second.succeeded}/{second.requests} succeeded: cut: interrupted" in stdout
    assert "stopped: interrupted" in stdout
    assert "concurrency 2 per copy was cut: interrupted; " in result.verdict.because
    assert list(project.glob("**/*unfinished*")) == []


def ends(group: int, *, within_s: float) -> bool:
    """Tell whether a group of processes ends; an orphan stays in the process table until the system collects it."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
