"""The client against a server that answers what the test wants: arguments, retries, failures."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError, ParamValidationError

from seatrial.client import (
    AnswerError,
    InvocationError,
    Options,
    RequestError,
    Schema,
    Target,
    client_config,
    continue_until_stop,
    generate,
    invoke_many,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

ANSWER = json.dumps([{"generated_text": "ahoy", "details": {"finish_reason": "eos_token", "generated_tokens": 1}}])
TGI = Target("chat", Schema.TGI)


class Server(ThreadingHTTPServer):
    """Answers each request with the next of `answers`, and the last one for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict[str, str], str]] = [(200, {}, ANSWER)]
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.lock = threading.Lock()

    def client(self, *, concurrency: int = 4, key: str | None = "AKIDEXAMPLE") -> SageMakerRuntimeClient:
        return boto3.Session().client(
            "sagemaker-runtime",
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{self.server_port}",
            aws_access_key_id=key,
            aws_secret_access_key=key,
            config=client_config(concurrency=concurrency, read_timeout_s=5),
        )


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), body))
            answers = self.server.answers
            status, headers, text = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the standard library's name)
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def failure(status: int, kind: str, **said: object) -> tuple[int, dict[str, str], str]:
    return status, {"x-amzn-errortype": kind}, json.dumps(said)


def test_component_variant_and_session_are_headers(server: Server) -> None:
    target = Target("chat", Schema.TGI, inference_component="copy", target_variant="blue", session_id="s-1")
    assert generate(server.client(), target, "hello").text == "ahoy"
    ((path, headers, body),) = server.requests
    assert path == "/endpoints/chat/invocations"
    assert headers["X-Amzn-SageMaker-Inference-Component"] == "copy"
    assert headers["X-Amzn-SageMaker-Target-Variant"] == "blue"
    assert headers["X-Amzn-SageMaker-Session-Id"] == "s-1"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"inputs": "hello", "parameters": {"details": True}, "stream": False}


def test_what_is_not_named_is_not_sent(server: Server) -> None:
    generate(server.client(), TGI, "hello")
    names = {name.lower() for name in server.requests[0][1]}
    assert not {name for name in names if name.startswith("x-amzn-sagemaker")}


def test_an_answer_of_503_is_asked_again(server: Server) -> None:
    server.answers = [failure(503, "ServiceUnavailable", message="busy"), (200, {}, ANSWER)]
    assert generate(server.client(), TGI, "hello").text == "ahoy"
    assert len(server.requests) == 2


@pytest.mark.parametrize("mode", ["standard", "adaptive"])
@pytest.mark.parametrize(
    ("refusal", "attempts"),
    [
        (failure(424, "ModelError", OriginalStatusCode=503, OriginalMessage="full"), 1),
        (failure(503, "ServiceUnavailable", message="busy"), 2),
        (failure(429, "ThrottlingException", message="Rate exceeded"), 2),
    ],
)
def test_what_botocore_repeats_by_itself(
    server: Server,
    mode: Literal["standard", "adaptive"],
    refusal: tuple[int, dict[str, str], str],
    attempts: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As docs/how-to/client.md says: not the 503 of a container, which is a ModelError."""
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    server.answers = [refusal]
    client = boto3.client(
        "sagemaker-runtime", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{server.server_port}",
        aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret",
        config=Config(retries={"mode": mode, "total_max_attempts": 2}),
    )  # fmt: skip
    with pytest.raises(ClientError):
        client.invoke_endpoint(EndpointName="chat", Body=b"{}")
    assert len(server.requests) == attempts


def test_the_configuration_has_20_attempts_in_the_standard_mode(server: Server) -> None:
    config = client_config(concurrency=64)
    assert vars(config)["retries"] == {"mode": "standard", "total_max_attempts": 20}
    assert vars(config)["max_pool_connections"] == 64
    assert vars(config)["read_timeout"] > 60


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            failure(424, "ModelError", Message="refused", OriginalStatusCode=422, OriginalMessage="too long"),
            "chat: SEA372: validation: HTTP 424 ModelError: too long",
        ),
        (
            failure(424, "ModelError", Message="failed", OriginalStatusCode=503, OriginalMessage="full"),
            "chat: SEA372: throttled: HTTP 424 ModelError: full\n  hint: send fewer requests at once, or scale out",
        ),
        (
            failure(400, "ValidationError", message="There is no capacity for the component"),
            "chat: SEA372: not_ready: HTTP 400 ValidationError: There is no capacity for the component\n"
            "  hint: wait until a copy is in service; scaling from zero takes minutes",
        ),
        (
            (200, {}, '{"error":"Request failed","error_type":"generation"}'),
            "chat: SEA372: model_error: generation: Request failed",
        ),
        ((200, {}, '{"token":{"text":"a"}}'), "chat: SEA372: protocol: the answer ended early, after 1 characters"),
    ],
)  # fmt: skip
def test_failures_in_words(server: Server, answer: tuple[int, dict[str, str], str], message: str) -> None:
    server.answers = [answer]
    with pytest.raises(InvocationError) as failed:
        generate(server.client(), TGI, "hello")
    assert str(failed.value) == message
    assert len(server.requests) == 1


def test_an_answer_that_makes_no_sense(server: Server) -> None:
    server.answers = [(200, {}, "<html>")]
    with pytest.raises(AnswerError) as malformed:
        generate(server.client(), TGI, "hello")
    assert str(malformed.value) == "SEA371: not JSON: b'<html>'"


def test_a_continuation_needs_to_know_what_a_cut_answer_is(server: Server) -> None:
    with pytest.raises(RequestError) as refused:
        continue_until_stop(server.client(), TGI, "hello")
    assert str(refused.value) == "request: max_tokens: SEA370: needed to detect a truncated answer"
    server.answers = [(200, {}, '{"generated_text":"ahoy"}')]
    with pytest.raises(AnswerError) as unknown:
        continue_until_stop(server.client(), TGI, "hello", Options(max_tokens=4))
    assert str(unknown.value) == "chat: SEA373: the answer has no finish reason and no token count"


def test_chat_goes_on_in_its_last_message(server: Server) -> None:
    answers = [("a", "length"), ("hoy", "stop")]
    server.answers = [
        (200, {}, json.dumps({"choices": [{"message": {"content": text}, "finish_reason": reason}]}))
        for text, reason in answers
    ]
    whole = continue_until_stop(server.client(), Target("chat", Schema.OPENAI_CHAT), "hello", Options(max_tokens=1))
    assert (whole.text, whole.finish_reason, whole.usage.output_tokens) == ("ahoy", "stop", None)
    assert json.loads(server.requests[1][2]) == {
        "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "a"}],
        "max_tokens": 1,
        "continue_final_message": True,
        "add_generation_prompt": False,
        "stream": False,
    }


def test_an_answer_without_text_is_not_asked_for_again(server: Server) -> None:
    thinking = {"choices": [{"message": {"content": None, "reasoning": "hm"}, "finish_reason": "length"}]}
    server.answers = [(200, {}, json.dumps(thinking))]
    whole = continue_until_stop(server.client(), Target("chat", Schema.OPENAI_CHAT), "hello", Options(max_tokens=1))
    assert (whole.text, whole.reasoning, len(server.requests)) == ("", "hm", 1)


def test_failures_of_many_are_data_and_the_rest_goes_on(server: Server) -> None:
    refused = failure(424, "ModelError", OriginalStatusCode=422, OriginalMessage="no")
    server.answers = [refused, (200, {}, ANSWER)]
    outcomes = invoke_many(server.client(), TGI, [b"{}"] * 40, concurrency=4)
    assert [outcome.index for outcome in outcomes] == list(range(40))
    assert [outcome.failure.error for outcome in outcomes if outcome.failure] == ["validation"]
    assert {outcome.body for outcome in outcomes} == {None, ANSWER.encode()}


def test_no_payloads_no_outcomes(server: Server) -> None:
    assert invoke_many(server.client(), TGI, [], concurrency=4) == ()


def test_the_client_needs_as_many_connections(server: Server) -> None:
    assert len(invoke_many(server.client(concurrency=2), TGI, [b"{}"], concurrency=2)) == 1
    for concurrency, message in {
        0: "invoke_many: concurrency: SEA370: 0 is below 1",
        3: "invoke_many: concurrency: SEA370: 3 exceeds the client's 2 connections\n"
        "  hint: create the client with client_config(concurrency=3)",
    }.items():
        with pytest.raises(RequestError) as refused:
            invoke_many(server.client(concurrency=2), TGI, [b"{}"], concurrency=concurrency)
        assert str(refused.value) == message


def test_what_is_wrong_with_every_request_is_raised_at_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParamValidationError):
        invoke_many(server.client(), TGI, [3] * 9, concurrency=2)  # type: ignore[list-item]  # a mistake of the caller
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(NoCredentialsError):
        generate(server.client(key=None), TGI, "hello")


def test_payloads_are_taken_as_they_are_sent_and_a_broken_generator_is_told(server: Server) -> None:
    def payloads() -> Iterator[bytes]:
        yield b"{}"
        raise LookupError("no more prompts")

    with pytest.raises(LookupError, match="no more prompts"):
        invoke_many(server.client(), TGI, payloads(), concurrency=2)
