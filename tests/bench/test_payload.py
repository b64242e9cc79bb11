from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest

from seatrial.bench.address import Address
from seatrial.bench.credentials import Credentials
from seatrial.bench.payload import RequestWriter, payload, prompt
from seatrial.bench.request import PayloadSchema, Workload
from seatrial.bench.sigv4 import Signer
from seatrial.bench.words import WORDS


def workload(schema: PayloadSchema, *, stream: bool = True) -> Workload:
    return Workload(input_tokens=8, output_tokens=64, schema=schema, stream=stream)


def test_every_byte_has_its_word() -> None:
    assert len(set(WORDS)) == 256


def test_a_prompt_has_as_many_words_as_tokens_and_is_the_same_for_the_same_seed() -> None:
    assert len(prompt("seed", 3, 500).split()) == 500
    assert prompt("seed", 3, 500) == prompt("seed", 3, 500)


def test_prompts_of_a_trial_and_of_the_next_share_no_beginning() -> None:
    beginnings = {" ".join(prompt(seed, index, 64).split()[:8]) for seed in ("one", "two") for index in range(500)}
    assert len(beginnings) == 1000


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (
            "lmi",
            {
                "inputs": "hi",
                "parameters": {"max_new_tokens": 64, "do_sample": False, "details": True, "ignore_eos_token": True},
                "stream": True,
            },
        ),
        (
            "tgi",
            {"inputs": "hi", "parameters": {"max_new_tokens": 64, "do_sample": False, "details": True}, "stream": True},
        ),
        (
            "openai_chat",
            {
                "messages": [{"role": "user", "content": "hi"}],
                "max_tokens": 64,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
        ),
    ],
)
def test_bodies(schema: PayloadSchema, document: dict[str, object]) -> None:
    assert json.loads(payload(workload(schema), "hi")) == document


@pytest.mark.parametrize("schema", ["lmi", "tgi", "openai_chat"])
def test_whole_answers_are_asked_for_without_stream_options(schema: PayloadSchema) -> None:
    document = json.loads(payload(workload(schema, stream=False), "hi"))
    assert document["stream"] is False
    assert "stream_options" not in document


@pytest.mark.parametrize("component", ["chat-copy", None])
def test_a_request_is_signed_http(component: str | None) -> None:
    writer = RequestWriter(
        workload=workload("lmi"),
        address=Address(tls=False, host="127.0.0.1", port=8080, path="/endpoints/chat/invocations"),
        inference_component=component,
        signer=Signer(Credentials("AKIDEXAMPLE", "secret", "token"), "eu-west-1"),
        now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        seed="seed",
    )
    head, _, body = writer(7).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first == "POST /endpoints/chat/invocations HTTP/1.1"
    assert headers["Content-Length"] == str(len(body))
    assert headers.get("X-Amzn-SageMaker-Inference-Component") == component
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-west-1/sagemaker/")
    assert hashlib.sha256(body).digest() != hashlib.sha256(writer(8).partition(b"\r\n\r\n")[2]).digest()
