from __future__ import annotations

import http.client
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
TGI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311"


def body(text: str = "hello world", *, tokens: int = 4, **more: object) -> bytes:
    return json.dumps({"inputs": text, "parameters": {"max_new_tokens": tokens, "details": True}, **more}).encode()


def whole(laptop: Laptop, host: str, component: str, ask: bytes) -> Any:  # noqa: ANN401 (JSON of several schemas)
    answer = laptop.runtime.invoke_endpoint(EndpointName=host, InferenceComponentName=component, Body=ask)
    return json.loads(answer["Body"].read())


def stream(laptop: Laptop, host: str, component: str, ask: bytes) -> list[bytes]:
    answer = laptop.runtime.invoke_endpoint_with_response_stream(
        EndpointName=host, InferenceComponentName=component, Body=ask
    )
    return [event["PayloadPart"]["Bytes"] for event in answer["Body"]]


def model_error(laptop: Laptop, host: str, component: str, ask: bytes) -> tuple[int, Any]:
    with pytest.raises(ClientError) as refused:
        laptop.runtime.invoke_endpoint_with_response_stream(
            EndpointName=host, InferenceComponentName=component, Body=ask
        )
    answer: Any = refused.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("ModelError", 424)
    return answer["OriginalStatusCode"], json.loads(answer["OriginalMessage"])


@contextmanager
def endless(laptop: Laptop, host: str, component: str) -> Iterator[None]:
    """Keep a slot of a component busy; an answer of a second can be over before a starved test looks."""
    ask = body(tokens=30_000, stream=True)
    answer = laptop.runtime.invoke_endpoint_with_response_stream(
        EndpointName=host, InferenceComponentName=component, Body=ask
    )
    next(iter(answer["Body"]))
    try:
        yield
    finally:
        answer["Body"].close()


@pytest.fixture(scope="module")
def long(laptop: Laptop, host: str) -> str:
    """Return a component of two slots whose answers may be long."""
    limits = {"OPTION_MAX_ROLLING_BATCH_SIZE": "2", "OPTION_MAX_MODEL_LEN": "32768"}
    return str(laptop.component(host, laptop.model(OPTION_ROLLING_BATCH="vllm", **limits)))


def info(port: int) -> Any:  # noqa: ANN401 (JSON)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/info")
    return json.loads(connection.getresponse().read())


def await_requests(port: int, *, running: int, waiting: int = 0) -> None:
    until(lambda: (info(port)["running"], info(port)["waiting"]) == (running, waiting), f"{running} + {waiting}")


def test_a_whole_answer_counts_its_tokens(laptop: Laptop, host: str, chat: str) -> None:
    answer = whole(laptop, host, chat, body(tokens=3))
    details = answer["details"]
    assert (details["generated_tokens"], len(details["tokens"]), details["finish_reason"]) == (3, 3, None)
    assert answer["generated_text"] == "".join(token["text"] for token in details["tokens"])


def test_a_stream_is_a_json_line_per_token_and_the_last_has_the_counts(laptop: Laptop, host: str, chat: str) -> None:
    parts = stream(laptop, host, chat, body(tokens=5, stream=True))
    lines = [json.loads(line) for line in b"".join(parts).splitlines()]
    assert [line["index"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line["details"] for line in lines[:4]] == [None] * 4
    assert lines[4]["generated_text"] == "".join(line["token"]["text"] for line in lines)
    assert lines[4]["details"] == {
        "finish_reason": "length",
        "generated_tokens": 5,
        "input_length": whole(laptop, host, chat, body())["details"]["input_length"],
    }


def test_the_prompt_is_counted_by_the_engines_tokenizer(laptop: Laptop, host: str, chat: str) -> None:
    one, two = (whole(laptop, host, chat, body("word " * count))["details"]["input_length"] for count in (50, 100))
    assert 50 <= one < two <= 2 * one


def test_a_stop_sequence_ends_the_text(laptop: Laptop, host: str, chat: str) -> None:
    text = whole(laptop, host, chat, body(tokens=8))["generated_text"]
    ask = {"inputs": "hello world", "parameters": {"max_new_tokens": 8, "stop": [text[-3:]]}, "stream": True}
    last = json.loads(b"".join(stream(laptop, host, chat, json.dumps(ask).encode())).splitlines()[-1])
    assert (last["details"]["finish_reason"], text.startswith(last["generated_text"])) == ("stop", True)


def test_chat_bodies_stream_as_bare_json_lines(laptop: Laptop, host: str, chat: str) -> None:
    ask = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "stream": True}
    lines = b"".join(stream(laptop, host, chat, json.dumps(ask).encode())).splitlines()
    chunks = [json.loads(line) for line in lines]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "length"]
    assert chunks[-1]["usage"]["completion_tokens"] == 3


def test_a_request_that_is_too_long_is_the_clients_error(laptop: Laptop, host: str, chat: str) -> None:
    status, said = model_error(laptop, host, chat, body("x", tokens=2048))
    assert (status, said) == (
        400,
        {
            "code": 400,
            "type": "validation",
            "message": "This model's maximum context length is 2048 tokens. However, you requested 2049 tokens "
            "(1 in the prompt, 2048 in the output).",
        },
    )


def test_a_full_job_queue_answers_503(laptop: Laptop, host: str) -> None:
    limits = {"OPTION_MAX_ROLLING_BATCH_SIZE": "2", "OPTION_MAX_MODEL_LEN": "32768", "SERVING_JOB_QUEUE_SIZE": "1"}
    component = laptop.component(host, laptop.model(OPTION_ROLLING_BATCH="vllm", **limits))

    (port,) = laptop.ports(component)
    with ThreadPoolExecutor(1) as pool, endless(laptop, host, component):
        with endless(laptop, host, component):
            waits = pool.submit(whole, laptop, host, component, body(tokens=1))
            await_requests(port, running=2, waiting=1)
            assert model_error(laptop, host, component, body())[0] == 503
        assert waits.result()["details"]["generated_tokens"] == 1
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_two_slots_run_and_the_next_waits(laptop: Laptop, host: str, long: str) -> None:
    (port,) = laptop.ports(long)
    with ThreadPoolExecutor(1) as pool, endless(laptop, host, long):
        with endless(laptop, host, long):
            third = pool.submit(whole, laptop, host, long, body(tokens=1))
            await_requests(port, running=2, waiting=1)
        assert third.result()["details"]["generated_tokens"] == 1


def test_a_client_that_leaves_frees_its_slot(laptop: Laptop, host: str, long: str) -> None:
    (port,) = laptop.ports(long)
    await_requests(port, running=0)
    with endless(laptop, host, long):
        await_requests(port, running=1)
    await_requests(port, running=0)


def test_a_container_that_dies_in_the_middle_breaks_the_stream_loudly(
    laptop: Laptop, host: str, processes: Callable[[str], list[int]]
) -> None:
    component = laptop.component(host, laptop.model(OPTION_MAX_MODEL_LEN="32768"))
    (port,) = laptop.ports(component)
    answer = laptop.runtime.invoke_endpoint_with_response_stream(
        EndpointName=host, InferenceComponentName=component, Body=body(tokens=20_000, stream=True)
    )
    events = iter(answer["Body"])
    next(events)
    (engine,) = processes(f"--port {port} ")
    os.kill(engine, signal.SIGKILL)
    with pytest.raises(EventStreamError) as broken:
        list(events)
    assert broken.value.response["Error"]["Code"] == "ModelStreamError"
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_the_copy_with_the_least_outstanding_requests_is_chosen(laptop: Laptop, host: str) -> None:
    component = laptop.component(host, laptop.model(OPTION_MAX_MODEL_LEN="32768"), copies=2)
    ports = laptop.ports(component)
    with endless(laptop, host, component), endless(laptop, host, component):
        assert [info(port)["running"] for port in ports] == [1, 1]
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_the_runtime_refuses_what_it_cannot_route(laptop: Laptop, host: str, chat: str) -> None:
    def said(endpoint: str, **more: str) -> str:
        with pytest.raises(ClientError) as refused:
            laptop.runtime.invoke_endpoint(EndpointName=endpoint, Body=b"{}", **more)
        return str(refused.value).partition("operation: ")[2]

    assert said("none") == "Endpoint none of account 000000000000 not found."
    assert said(host, InferenceComponentName="none") == f"Inference Component none of endpoint {host} not found."
    assert said(host).startswith("Inference Component Name header is required for endpoints to which you plan")


def refused(laptop: Laptop, host: str, chat: str, body: bytes = b"{}", **more: str) -> ClientError:
    with pytest.raises(ClientError) as caught:
        laptop.runtime.invoke_endpoint(EndpointName=host, InferenceComponentName=chat, Body=body, **more)
    return caught.value


def test_a_body_above_25_mib_is_refused_before_a_container_sees_it(laptop: Laptop, host: str, chat: str) -> None:
    """It was accepted, and the container answered 424 after 20 seconds."""
    error = refused(laptop, host, chat, b"x" * (25 * 2**20 + 1))
    assert error.response["Error"] == {"Code": "413", "Message": "HTTP content length exceeded 26214400 bytes."}


def test_every_answer_of_the_runtime_has_a_request_id(laptop: Laptop, host: str, chat: str) -> None:
    answered = laptop.runtime.invoke_endpoint(EndpointName=host, InferenceComponentName=chat, Body=body())
    ids = [answered["ResponseMetadata"]["RequestId"], laptop.sagemaker.list_models()["ResponseMetadata"]["RequestId"]]
    ids += [refused(laptop, host, chat).response["ResponseMetadata"]["RequestId"]]
    ids += [refused(laptop, "none", chat).response["ResponseMetadata"]["RequestId"]]
    assert [len(one) for one in ids] == [36] * 4
    assert len(set(ids)) == 4


def test_a_model_error_leads_to_the_containers_log(laptop: Laptop, host: str, chat: str) -> None:
    error = refused(laptop, host, chat, body("x", tokens=2048))
    group = f"/aws/sagemaker/InferenceComponents/{chat}"
    console = "https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1#logEventViewer:group="
    said: dict[str, object] = {**error.response}
    assert said["LogStreamArn"] == f"arn:aws:logs:us-east-1:000000000000:log-group:{group}"
    assert f"See {console}{group} in account 000000000000 for more" in error.response["Error"]["Message"]


def test_what_this_endpoint_has_not_is_refused(laptop: Laptop, host: str, chat: str) -> None:
    model = refused(laptop, host, chat, TargetModel="a.tar.gz")
    session = refused(laptop, host, chat, SessionId="not a session")
    for error, word in ((model, "TargetModel"), (session, "sessionId")):
        assert (error.response["Error"]["Code"], word in str(error)) == ("ValidationError", True)
    with pytest.raises(ClientError) as caught:
        laptop.runtime.invoke_endpoint_async(EndpointName=host, InputLocation="s3://bucket/key")
    assert caught.value.response["Error"]["Code"] == "ValidationError"
    assert "InvokeEndpointAsync" in str(caught.value)


def test_metrics_and_the_containers_log_reach_cloudwatch(laptop: Laptop, host: str, chat: str) -> None:
    """Alarms stayed at INSUFFICIENT_DATA, and no /aws/sagemaker log group was there."""
    whole(laptop, host, chat, body())
    refused(laptop, host, chat)
    metrics, logs = boto3.client("cloudwatch"), boto3.client("logs")
    since = datetime.now(UTC) - timedelta(minutes=30)

    def total(name: str) -> float:
        found = metrics.get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName=name,
            Dimensions=[{"Name": "InferenceComponentName", "Value": chat}],
            StartTime=since,
            EndTime=datetime.now(UTC) + timedelta(minutes=1),
            Period=3600,
            Statistics=["Sum"],
        )
        return float(sum(point["Sum"] for point in found["Datapoints"]))

    deadline = time.monotonic() + 60
    while not total("Invocation4XXErrors") and time.monotonic() < deadline:
        time.sleep(0.5)
    assert total("Invocations") >= 2
    assert total("Invocation4XXErrors") >= 1
    assert total("ModelLatency") > 0
    assert total("ConcurrentRequestsPerCopy") >= 1
    (stream, *_) = logs.describe_log_streams(logGroupName=f"/aws/sagemaker/InferenceComponents/{chat}")["logStreams"]
    events = logs.get_log_events(
        logGroupName=f"/aws/sagemaker/InferenceComponents/{chat}", logStreamName=stream["logStreamName"]
    )["events"]
    assert any(event["message"].startswith("ready: http://") for event in events)


def test_tgi_speaks_its_own_schema(laptop: Laptop, host: str) -> None:
    limits = {"MAX_INPUT_TOKENS": "20", "MAX_TOTAL_TOKENS": "32768", "MAX_CONCURRENT_REQUESTS": "1"}
    component = laptop.component(host, laptop.model(image=TGI, **limits))
    (answer,) = whole(laptop, host, component, body(tokens=3))
    assert (answer["details"]["finish_reason"], answer["details"]["generated_tokens"]) == ("length", 3)
    events = b"".join(stream(laptop, host, component, body(tokens=3, stream=True))).split(b"\n\n")
    assert [json.loads(event.removeprefix(b"data:"))["index"] for event in events[:-1]] == [1, 2, 3]
    status, said = model_error(laptop, host, component, body("word " * 30))
    assert (status, said["error_type"]) == (422, "validation")
    assert said["error"].startswith("Input validation error: `inputs` must have less than 21 tokens. Given: ")
    with endless(laptop, host, component):
        overloaded = {"error": "Model is overloaded", "error_type": "overloaded"}
        assert model_error(laptop, host, component, body()) == (429, overloaded)
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
