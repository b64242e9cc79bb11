"""The SageMaker Python SDK as the transport: runs where the extra `sagemaker` is installed."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from seatrial.client import Options, Schema, Target, generate, generate_stream, invoke_many, read_answer, request_body

if TYPE_CHECKING:
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sagemaker") is None, reason="opt-in: uv sync --extra local --extra sagemaker"
)
OPTIONS = Options(max_tokens=4, temperature=0)


def test_the_sdks_own_client_serves_as_ours(runtime: SageMakerRuntimeClient, target: Target) -> None:
    from sagemaker.core.utils.utils import SageMakerClient  # noqa: PLC0415 (seven seconds)

    client: SageMakerRuntimeClient = SageMakerClient(region_name="us-east-1").sagemaker_runtime_client
    whole = generate(client, target, "Where does the boat go?", OPTIONS)
    with generate_stream(client, target, "Where does the boat go?", OPTIONS) as stream:
        assert "".join(piece.text for piece in stream) == whole.text
    body = request_body(target.schema, "Where does the boat go?", OPTIONS)
    outcomes = invoke_many(client, target, [body] * 3, concurrency=1)
    assert {read_answer(target.schema, outcome.body or b"").text for outcome in outcomes} == {whole.text}


def test_bodies_and_answers_pass_through_the_sdks_endpoint(runtime: SageMakerRuntimeClient, target: Target) -> None:
    from sagemaker.core.resources import Endpoint  # noqa: PLC0415 (seven seconds)

    endpoint = Endpoint.get(endpoint_name=target.endpoint_name, region="us-east-1")
    answer = endpoint.invoke(
        body=request_body(target.schema, "Where does the boat go?", OPTIONS),
        content_type="application/json",
        inference_component_name=target.inference_component,
    )
    completion = read_answer(target.schema, answer.body.read())
    assert completion.text == generate(runtime, target, "Where does the boat go?", OPTIONS).text
    assert completion.usage.output_tokens == 4


def test_the_sdks_endpoint_can_not_read_a_stream_so_take_its_client(runtime: SageMakerRuntimeClient) -> None:
    from sagemaker.core.resources import Endpoint  # noqa: PLC0415 (seven seconds)

    endpoint = Endpoint.get(endpoint_name="chat", region="us-east-1")
    with pytest.raises(AttributeError, match="'EventStream' object has no attribute 'get'"):
        endpoint.invoke_with_response_stream(
            body=request_body(Schema.LMI_ASYNC, "hello", OPTIONS, stream=True),
            content_type="application/json",
            inference_component_name="chat-copy",
        )
