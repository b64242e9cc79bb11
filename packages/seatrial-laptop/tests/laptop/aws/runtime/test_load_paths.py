"""The load client on both paths of one endpoint: the same answers, tokens and counts, by signature and by token."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_load.aws.credentials import Credentials
from seatrial_load.client.connection import dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.client.request_writer import request_writer
from seatrial_load.decode.response import record_of
from seatrial_load.documents.request import TrialTarget, Workload
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.prompts.synthetic import SyntheticPrompts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import Api, PayloadSchema

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
VLLM = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker"
WORKLOAD = Workload(input_tokens=8, output_tokens=6, schema="openai_chat")


@pytest.fixture(scope="module")
def target(laptop: Laptop, host: str) -> Iterator[TrialTarget]:
    component = laptop.component(host, laptop.model(image=VLLM, SM_VLLM_MAX_MODEL_LEN="2048"))
    yield TrialTarget(
        endpoint_name=host,
        inference_component=component,
        region=laptop.local.region,
        endpoint_url=laptop.local.endpoint_url,
    )
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def asked(
    laptop: Laptop,
    target: TrialTarget,
    api: Api,
    *,
    stream: bool,
    secret: str = "",
    workload: Workload = WORKLOAD,
    requests: int = 4,
) -> list[RequestRecord]:
    """Return what became of some requests, two at a time."""
    key = Credentials(laptop.local.access_key_id, secret or laptop.local.secret_access_key)
    workload = replace(workload, api=api, stream=stream)
    prompts = SyntheticPrompts(seed="seed", lengths=lengths_of(workload))
    write = request_writer(target, workload, prompts, now=lambda: datetime.now(UTC), credentials=key)
    dial = dialer(write.address, socket_addresses(write.address))
    wave = Wave(streams=2, requests=requests, timeout_s=30, deadline_s=time.perf_counter() + 60)
    exchanges = run_wave(wave, write, dial).exchanges
    return [record_of(exchange, stream=stream, terms=write.terms(exchange.index)) for exchange in exchanges]


@pytest.mark.parametrize("stream", [True, False])
def test_both_paths_tell_the_same_of_the_same_requests(laptop: Laptop, target: TrialTarget, stream: bool) -> None:  # noqa: FBT001 (a case)
    told = {}
    for api in ("invoke", "openai"):
        records = sorted(asked(laptop, target, api, stream=stream), key=lambda record: record.index)
        told[api] = [
            (record.error, record.input_tokens, record.output_tokens, record.text_digest, record.doubts)
            for record in records
        ]
    assert told["openai"] == told["invoke"]
    assert [(error, output) for error, _, output, *_ in told["openai"]] == [(None, 6)] * 4


@pytest.mark.parametrize("output_tokens", [4, 48])
@pytest.mark.parametrize("schema", ["openai_chat", "lmi"])
def test_random_weights_that_may_not_end_say_something_in_every_answer(
    laptop: Laptop, host: str, target: TrialTarget, schema: PayloadSchema, output_tokens: int
) -> None:
    """A model repeats itself past the end of its text, which is ignored; no whole answer is blank or one token."""
    workload = Workload(input_tokens=48, output_tokens=output_tokens, schema=schema)
    if schema == "lmi":
        target = replace(target, inference_component=laptop.component(host, laptop.model()))
    records = asked(laptop, target, "invoke", stream=True, workload=workload, requests=100)
    assert {record.error for record in records} == {None}
    assert {kind for record in records for kind in record.doubts} == set()
    if schema == "lmi":
        laptop.sagemaker.delete_inference_component(InferenceComponentName=target.inference_component)


def test_a_token_of_a_wrong_key_is_refused_in_sagemakers_words(laptop: Laptop, target: TrialTarget) -> None:
    (record, *_) = asked(laptop, target, "openai", stream=True, secret="wrong")
    assert (record.error, record.status) == ("auth", 403)
    assert "sagemaker-api-key" not in record.detail
