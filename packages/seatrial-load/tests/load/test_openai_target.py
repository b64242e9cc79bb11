"""Requests to a server that speaks OpenAI's API, over the wire: what it gets, and what is read of its answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import SeatrialError, SpecError
from seatrial_load.cli.load_command import run_load_command
from seatrial_load.client.connection import dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.client.request_writer import request_writer
from seatrial_load.decode.response import record_of
from seatrial_load.documents.request import TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.prompts.synthetic import SyntheticPrompts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import PayloadSchema

KEY = "sk-right"
PROMPTS = SyntheticPrompts(seed="seed", lengths=lengths_of(Workload(input_tokens=8, output_tokens=3, schema="lmi")))


@dataclass
class Server:
    """Counts the words of a prompt as its tokens, answers with three tokens, and keeps what it was asked."""

    url: str
    asked: list[dict[str, object]] = field(default_factory=list)
    models: object = None
    refuses: Callable[[dict[str, object]], tuple[int, object] | None] = lambda _document: None


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            known = self.path == "/v1/models" and started.models is not None
            listed = json.dumps(started.models if known else {"detail": "Not Found"})
            self._answer(200 if known else 404, "application/json", listed.encode())

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            started.asked.append({"path": self.path, **document})
            if self.headers["Authorization"] != f"Bearer {KEY}":
                self._answer(401, "application/json", json.dumps(REFUSED).encode())
            elif refused := started.refuses(document):
                self._answer(refused[0], "application/json", json.dumps(refused[1]).encode())
            elif document["stream"]:
                self._answer(200, "text/event-stream", b"".join(events(document)))
            else:
                self._answer(200, "application/json", json.dumps(whole(document)).encode())

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        started = Server(f"http://127.0.0.1:{listening.server_address[1]}/v1")
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield started
        listening.shutdown()
        thread.join(5)


REFUSED = {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "401"}}


def usage(document: dict[str, object]) -> dict[str, int]:
    said = document["prompt"] if "prompt" in document else document["messages"][0]["content"]  # type: ignore[index]  # a request's JSON
    return {"prompt_tokens": len(str(said).split()), "completion_tokens": 3, "total_tokens": 11}


def events(document: dict[str, object]) -> Iterator[bytes]:
    chat = "messages" in document
    for number in range(3):
        said: dict[str, object] = {"delta": {"content": " a"}} if chat else {"text": " a"}
        ended = "length" if document.get("max_tokens") == 3 else "stop"
        choice = {"index": 0, **said, "finish_reason": ended if number == 2 else None}
        yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    if document.get("stream_options") == {"include_usage": True}:
        yield b"data: " + json.dumps({"choices": [], "usage": usage(document)}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def whole(document: dict[str, object]) -> dict[str, object]:
    chat = "messages" in document
    said: dict[str, object] = {"message": {"role": "assistant", "content": "a a a"}} if chat else {"text": "a a a"}
    return {"choices": [{"index": 0, **said, "finish_reason": "length"}], "usage": usage(document)}


def ask(server: Server, schema: PayloadSchema, *, stream: bool, key: str = KEY) -> list[RequestRecord]:
    target = TrialTarget(
        endpoint_name="mine",
        inference_component=None,
        region="",
        kind="openai",
        endpoint_url=server.url,
        model="tiny",
        api_key_variable="MY_KEY",
    )
    workload = Workload(input_tokens=8, output_tokens=3, schema=schema, stream=stream)
    write = request_writer(target, workload, PROMPTS, now=lambda: datetime.now(UTC), environ={"MY_KEY": key})
    dial = dialer(write.address, socket_addresses(write.address))
    wave = Wave(streams=2, requests=4, timeout_s=10, deadline_s=time.perf_counter() + 20)
    return [record_of(exchange, stream=stream) for exchange in run_wave(wave, write, dial).exchanges]


@pytest.mark.parametrize("schema", ["openai_chat", "openai_completions"])
@pytest.mark.parametrize("stream", [True, False])
def test_answers_are_read_with_the_servers_own_counts(server: Server, schema: PayloadSchema, *, stream: bool) -> None:
    records = ask(server, schema, stream=stream)
    assert [(record.error, record.input_tokens, record.output_tokens) for record in records] == [(None, 8, 3)] * 4
    assert {len(record.token_times_s) for record in records} == {3 if stream else 0}
    path = "/v1/completions" if schema == "openai_completions" else "/v1/chat/completions"
    assert [(asked["path"], asked["model"], asked["max_tokens"]) for asked in server.asked] == [(path, "tiny", 3)] * 4


def test_a_wrong_key_is_data_in_the_servers_words(server: Server) -> None:
    (record, *_) = ask(server, "openai_chat", stream=True, key="sk-wrong")
    assert (record.error, record.detail) == ("auth", "HTTP 401 invalid_request_error: Incorrect API key provided")


STANDARD_LIBRARY_ALONE = """
import sys

class Refused:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {"pydantic", "yaml", "jinja2", "rich", "typer", "boto3", "botocore", "seatrial"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refused)
from seatrial_load.cli import main
main()
"""


def test_the_command_needs_the_standard_library_alone(server: Server, tmp_path: Path) -> None:
    output, records = tmp_path / "result.json", tmp_path / "records.jsonl"
    files = ["--output", str(output), "--records", str(records)]
    options = "--model tiny --api-key-variable MY_KEY --output-tokens 3 --levels 1,2 --requests 3 --workers 1"
    options += " --slo error_rate=0.5"
    finished = subprocess.run(
        [sys.executable, "-c", STANDARD_LIBRARY_ALONE, "--url", server.url, *options.split(), *files],
        env={**os.environ, "MY_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    result = TrialResult.from_json(output.read_text(encoding="utf-8"))
    assert [(level.concurrency, level.succeeded) for level in result.levels] == [(1, 3), (2, 3)]
    assert result.verdict.status == "pass"
    assert "verdict: pass" in finished.stdout
    assert len(records.read_text(encoding="utf-8").splitlines()) >= 6


def test_a_server_is_measured_by_its_own_names_and_lengths(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As OpenAI's newer API: one model, no `max_tokens`, no `ignore_eos`; three tokens of eight are the whole text."""
    monkeypatch.setenv("MY_KEY", KEY)
    server.models = {"object": "list", "data": [{"id": "tiny-1\nforged", "object": "model"}]}
    unknown = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    server.refuses = lambda document: (400, {"error": {"message": unknown}}) if "max_tokens" in document else None
    command = ["--url", server.url, "--api-key-variable", "MY_KEY", "--levels", "1,2", "--requests", "3"]
    output = tmp_path / "result.json"
    run_load_command([*command, "--output-tokens", "8", "--no-ignore-eos", "--output", f"{output}"])
    first, *others = server.asked
    assert (first["max_tokens"], first["model"]) == (8, "tiny-1\nforged")
    assert len(others) > 9
    for asked in others:
        assert (asked["max_completion_tokens"], asked["model"]) == (8, "tiny-1\nforged")
        assert not {"max_tokens", "ignore_eos", "min_tokens"} & asked.keys()
    said = capsys.readouterr().out
    assert "model: tiny-1 forged, the only one" in said
    assert "\nforged" not in said
    assert "takes no max_tokens: max_completion_tokens limits" in said
    assert "answers of the text's own length" in said
    assert "output mean 3, p50 3, p95 3 tokens" in said
    result = TrialResult.from_json(output.read_text(encoding="utf-8"))
    assert result.request.workload.max_tokens_key == "max_completion_tokens"
    assert result.request.endpoint == "tiny-1\nforged"
    assert [level.output_tokens_mean for level in result.levels] == [3.0, 3.0]
    assert {doubt.kind for level in result.levels for doubt in level.doubts} <= {"short", "same_text", "burst"}


OWN = ("ignore_eos", "temperature", "stream_options")


def one_by_one(document: dict[str, object]) -> tuple[int, object] | None:
    """As OpenAI: the first problem alone, a value's too."""
    if "ignore_eos" in document:
        return 400, {"error": {"message": "Unrecognized request argument supplied: ignore_eos", "param": None}}
    if "temperature" in document:
        return 400, {"error": {"message": "Unsupported value: does not support 0.", "param": "temperature"}}
    if "stream_options" in document:
        return 400, {"object": "error", "message": "stream_options is not supported", "code": 400}
    return None


def all_at_once(document: dict[str, object]) -> tuple[int, object] | None:
    """As FastAPI: pydantic's problems, of which one repeats the whole request."""
    extra = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted", "input": document}
    return 422, {"detail": [{**extra, "loc": ["body", name]} for name in OWN]} if "ignore_eos" in document else None


def in_a_text(document: dict[str, object]) -> tuple[int, object] | None:
    named = "; ".join(f"('body', '{name}'): Extra inputs are not permitted" for name in OWN if name in document)
    return (400, {"object": "error", "message": named, "type": "BadRequestError"}) if named else None


@pytest.mark.parametrize("refuses", [one_by_one, all_at_once, in_a_text])
def test_every_field_that_a_server_refuses_is_named_with_its_option(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    refuses: Callable[[dict[str, object]], tuple[int, object] | None],
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.refuses = refuses
    with pytest.raises(SpecError) as refused:
        run_load_command(["--url", server.url, "--api-key-variable", "MY_KEY", "--model", "m"])
    options = [f"--no-{name.replace('_', '-')}" for name in OWN]
    problems = {(problem.rule, problem.field, problem.hint) for problem in refused.value.problems}
    assert problems == {("SEA535", option, f"leave it out: {option}") for option in options}
    assert all(f"refuses {name}: " in str(refused.value) for name in OWN)


@pytest.mark.parametrize(
    ("models", "rule", "words"),
    [
        ({"data": [{"id": "a"}, {"id": "b"}]}, "SEA536", "the server has several models: a, b"),
        ({"data": []}, "SEA537", "the server lists no model at /v1/models"),
        (None, "SEA537", "the server lists no model at /v1/models: HTTP 404: "),
    ],
)
def test_without_a_model_a_server_is_asked(server: Server, models: object, rule: str, words: str) -> None:
    server.models = models
    with pytest.raises(SpecError) as refused:
        run_load_command(["--url", server.url])
    (problem,) = refused.value.problems
    assert (problem.rule, problem.field, problem.hint) == (rule, "--model", "name the model: --model NAME")
    assert problem.message.startswith(words)
    assert server.asked == []


def test_a_server_that_does_not_respond_is_not_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    with pytest.raises(SeatrialError) as refused:
        run_load_command(["--url", url])
    (problem,) = refused.value.problems
    assert (problem.rule, problem.field) == ("SEA504", "--url")
    assert problem.message == f"the server can't be reached at {url}: Connection refused"


def test_mistakes_of_the_command_line_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SpecError) as refused:
        run_load_command(["--url", "nothing", "--levels", "x", "--rate", "1"])
    assert {(problem.rule, problem.field) for problem in refused.value.problems} >= {
        ("SEA501", "--levels"),
        ("SEA501", "--rate"),
        ("SEA504", "--url"),
    }
    assert refused.value.exit_code == 2
    assert capsys.readouterr().out == ""
