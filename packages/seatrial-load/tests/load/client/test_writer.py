from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.aws.clock_skew import shifted
from seatrial_load.aws.credentials import Credentials
from seatrial_load.client.request_writer import RequestWriter, request_writer
from seatrial_load.documents.request import TrialTarget, Workload
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.prompts.synthetic import SyntheticPrompts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.aws.credentials import CredentialSource

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PROMPTS = SyntheticPrompts(seed="seed", lengths=lengths_of(Workload(input_tokens=8, output_tokens=64, schema="lmi")))
LMI = Workload(input_tokens=8, output_tokens=64, schema="lmi")
CHAT = Workload(input_tokens=8, output_tokens=64, schema="openai_chat")
SAGEMAKER = TrialTarget(
    endpoint_name="chat", inference_component="chat-copy", region="eu-west-1", endpoint_url="http://127.0.0.1:8080"
)
SERVER = TrialTarget(
    endpoint_name="mine",
    inference_component=None,
    region="",
    kind="openai",
    endpoint_url="http://localhost:8000/v1",
    model="tiny",
)
KEYS = Credentials("AKIDEXAMPLE", "secret", "token")


def writer(
    target: TrialTarget,
    workload: Workload = LMI,
    *,
    credentials: CredentialSource = KEYS,
    environ: Mapping[str, str] | None = None,
) -> RequestWriter:
    return request_writer(target, workload, PROMPTS, now=lambda: NOW, credentials=credentials, environ=environ or {})


def read(request: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


def test_a_request_to_sagemaker_is_signed_http() -> None:
    first, headers, body = read(writer(SAGEMAKER)(7))
    assert first == "POST /endpoints/chat/invocations-response-stream HTTP/1.1"
    signature = headers.pop("Authorization")
    assert headers == {
        "Host": "127.0.0.1:8080",
        "Content-Type": "application/json",
        "X-Amzn-SageMaker-Inference-Component": "chat-copy",
        "X-Amz-Date": "20261121T000000Z",
        "X-Amz-Security-Token": "token",
        "Content-Length": str(len(body)),
    }
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-west-1/sagemaker/aws4_request, ")
    assert "x-amzn-sagemaker-inference-component" in signature


class TestOpenAiPath:
    """SageMaker's path for OpenAI clients: a token in place of a signature, and the component in the path."""

    WORKLOAD = replace(CHAT, api="openai")

    def test_a_request_is_what_an_openai_client_sends(self) -> None:
        first, headers, body = read(writer(SAGEMAKER, self.WORKLOAD)(0))
        path = "/endpoints/chat/inference-components/chat-copy/openai/v1/chat/completions"
        assert first == f"POST {path} HTTP/1.1"
        assert headers["Authorization"].startswith("Bearer sagemaker-api-key-")
        assert {name for name in headers if name.startswith("X-")} == set()
        asked = json.loads(body)
        assert (asked["model"], asked["stream"], asked["stream_options"]) == ("", True, {"include_usage": True})

    def test_an_endpoint_without_components_is_named_alone(self) -> None:
        target = replace(SAGEMAKER, inference_component=None)
        first, _, _ = read(writer(target, replace(self.WORKLOAD, stream=False))(0))
        assert first == "POST /endpoints/chat/openai/v1/chat/completions HTTP/1.1"

    def test_a_token_is_renewed_with_its_credentials_and_used_for_many_requests(self) -> None:
        keys = iter([KEYS, KEYS, Credentials("AKIDTWO", "secret", "another")])
        write = writer(SAGEMAKER, self.WORKLOAD, credentials=lambda: next(keys))
        tokens = [read(write(index))[1]["Authorization"] for index in range(3)]
        assert tokens[0] == tokens[1] != tokens[2]

    def test_everything_that_the_path_does_not_take_at_once(self) -> None:
        target = replace(SAGEMAKER, session_id="a-session", target_variant="main")
        with pytest.raises(BenchError) as refused:
            writer(target, replace(LMI, api="openai"))
        fields = [problem.place.field for problem in refused.value.problems]
        assert fields == ["workload.schema", "target.session_id", "target.target_variant"]


def test_session_and_variant_are_signed_headers() -> None:
    target = replace(SAGEMAKER, inference_component=None, session_id="session-1", target_variant="AllTraffic")
    _, headers, _ = read(writer(target)(0))
    assert "X-Amzn-SageMaker-Inference-Component" not in headers
    assert headers["X-Amzn-SageMaker-Session-Id"] == "session-1"
    assert headers["X-Amzn-SageMaker-Target-Variant"] == "AllTraffic"
    assert ";x-amzn-sagemaker-session-id;x-amzn-sagemaker-target-variant," in headers["Authorization"]


def test_a_whole_answer_has_its_own_operation() -> None:
    first, _, body = read(writer(SAGEMAKER, replace(LMI, stream=False))(0))
    assert first == "POST /endpoints/chat/invocations HTTP/1.1"
    assert json.loads(body)["stream"] is False


def test_each_request_has_its_own_prompt_and_any_process_writes_the_same() -> None:
    bodies = [hashlib.sha256(read(writer(SAGEMAKER)(index))[2]).digest() for index in range(8)]
    assert len(set(bodies)) == 8
    assert writer(SAGEMAKER)(3) == writer(SAGEMAKER)(3)


def test_renewed_credentials_and_a_mended_clock_sign_the_next_request() -> None:
    sessions = iter((KEYS, Credentials("AKIDNEXT", "secret", "next")))
    clock = shifted(lambda: NOW, timedelta(hours=2).total_seconds())
    write = request_writer(SAGEMAKER, LMI, PROMPTS, now=clock, credentials=lambda: next(sessions), environ={})
    assert [read(write(index))[1]["X-Amz-Security-Token"] for index in range(2)] == ["token", "next"]
    assert read(writer(SAGEMAKER)(0))[1]["X-Amz-Date"] == "20261121T000000Z"
    assert clock() == NOW + timedelta(hours=2)


def test_a_request_to_an_openai_compatible_server_is_plain() -> None:
    first, headers, body = read(writer(SERVER, CHAT)(0))
    assert first == "POST /v1/chat/completions HTTP/1.1"
    assert headers == {
        "Host": "localhost:8000",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    document = json.loads(body)
    assert (document["model"], document["stream_options"]) == ("tiny", {"include_usage": True})


def test_completions_have_their_own_path() -> None:
    first, _, body = read(writer(SERVER, replace(CHAT, schema="openai_completions"))(0))
    assert first == "POST /v1/completions HTTP/1.1"
    assert "prompt" in json.loads(body)


def test_the_key_comes_from_the_environment() -> None:
    target = replace(SERVER, api_key_variable="MY_KEY")
    _, headers, _ = read(writer(target, CHAT, environ={"MY_KEY": "sk-1"})(0))
    assert headers["Authorization"] == "Bearer sk-1"


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        ({}, "is not set"),
        ({"MY_KEY": ""}, "is not set"),
        ({"MY_KEY": "sk-1\r\nX-Evil: 1"}, "is not a valid header value"),
        ({"MY_KEY": "sk-1\n"}, "is not a valid header value"),
    ],
)
def test_a_key_that_is_missing_or_unfit_is_never_shown(environ: dict[str, str], what: str) -> None:
    with pytest.raises(BenchError) as caught:
        writer(replace(SERVER, api_key_variable="MY_KEY"), CHAT, environ=environ)
    assert str(caught.value) == (
        f"target.api_key_variable: SEA503: the environment variable MY_KEY for the server's key {what}\n"
        "  hint: export MY_KEY=…"
    )


def test_everything_that_an_openai_compatible_server_cannot_take_at_once() -> None:
    target = replace(SERVER, inference_component="copy", session_id="s", target_variant="v")
    with pytest.raises(BenchError) as caught:
        writer(target, LMI)
    assert str(caught.value).split("\n") == [
        "trial request: target.inference_component: SEA501: only SageMaker supports it",
        "trial request: target.session_id: SEA501: only SageMaker supports it",
        "trial request: target.target_variant: SEA501: only SageMaker supports it",
        "trial request: workload.schema: SEA501: "
        "an OpenAI-compatible server needs openai_chat or openai_completions, not lmi",
    ]


def test_everything_that_sagemaker_cannot_take_at_once() -> None:
    target = replace(
        SAGEMAKER, model="tiny", api_key_variable="MY_KEY", session_id="NEW_SESSION", target_variant="a\nb"
    )
    with pytest.raises(BenchError) as caught:
        writer(target)
    assert str(caught.value).split("\n") == [
        "trial request: target.target_variant: SEA501: "
        "'a\\nb' is not a valid header value: printable ASCII without leading or trailing spaces",
        "trial request: target.session_id: SEA501: a stream can't open a new session; give the ID of an existing one",
        "trial request: target.model: SEA501: only OpenAI-compatible servers support it",
        "trial request: target.api_key_variable: SEA501: only OpenAI-compatible servers support it",
    ]
