"""Which requests go where, which are mirrored, and which are captured."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seatrial_laptop.aws.runtime.data_capture import CapturedExchange, CaptureFiles, capture_key, captured
from seatrial_laptop.aws.runtime.invocation import answer_invocation
from seatrial_laptop.aws.runtime.running_copies import CopyPlace, TrafficSplit
from seatrial_laptop.loopback import Reply, read_request
from tests.stub_cloud import StubSageMaker, variant

if TYPE_CHECKING:
    from seatrial_laptop.aws.gateway.asgi import Message

CAPTURE: dict[str, object] = {
    "EnableCapture": True,
    "InitialSamplingPercentage": 50,
    "DestinationS3Uri": "s3://bucket/captured/",
    "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
    "CaptureContentTypeHeader": {"JsonContentTypes": ["application/json"]},
}


@dataclass
class Objects:
    """An S3 that only remembers."""

    written: dict[str, bytes] = field(default_factory=dict)

    def read(self, url: str) -> bytes:
        raise NotImplementedError(url)

    def write(self, url: str, body: bytes, content_type: str) -> None:
        assert content_type == "application/x-jsonlines"
        self.written[url] = body

    def publish(self, topic_arn: str, message: str) -> None:
        raise NotImplementedError(topic_arn, message)


def test_weights_are_shared_exactly() -> None:
    split = TrafficSplit()
    weights = {"a": 1.0, "b": 2.0, "c": 0.0}
    assert Counter(split.pick("chat", weights) for _ in range(30)) == {"a": 10, "b": 20}
    assert Counter(split.pick("other", {"a": 0.0, "b": 0.0}) for _ in range(4)) == {"a": 2, "b": 2}
    assert split.pick("chat", {"a": 0.0, "b": 1.0}) == "b"


def test_samples_are_taken_at_their_share() -> None:
    split = TrafficSplit()
    taken = [split.samples("chat", "capture", 0.3) for _ in range(100)]
    assert (sum(taken), taken[:4]) == (30, [False, False, False, True])
    assert not any(split.samples("chat", "shadow", 0.0) for _ in range(10))
    assert all(split.samples("chat", "all", 7.0) for _ in range(10))


def exchange_(content_type: str = "application/json") -> CapturedExchange:
    return CapturedExchange(content_type, b'{"inputs": "hi"}', "text/plain", b"hello", "id-1")


def test_a_captured_line_has_both_sides_in_their_encodings() -> None:
    line: Any = captured(CAPTURE, exchange_(), 1_795_305_600.0)
    assert line["captureData"] == {
        "endpointInput": {
            "observedContentType": "application/json",
            "mode": "INPUT",
            "data": '{"inputs": "hi"}',
            "encoding": "JSON",
        },
        "endpointOutput": {
            "observedContentType": "text/plain",
            "mode": "OUTPUT",
            "data": base64.b64encode(b"hello").decode(),
            "encoding": "BASE64",
        },
    }
    metadata = line["eventMetadata"]
    assert (metadata["inferenceId"], metadata["inferenceTime"]) == ("id-1", "2026-11-22T00:00:00Z")
    assert line["eventVersion"] == "0"
    only: Any = captured({**CAPTURE, "CaptureOptions": [{"CaptureMode": "Input"}]}, exchange_(), 0.0)
    assert list(only["captureData"]) == ["endpointInput"]


def test_captured_lines_are_written_by_endpoint_variant_and_hour() -> None:
    capture, objects = CaptureFiles(), Objects()
    capture.saw(CAPTURE, CopyPlace("chat", "a"), exchange_())
    capture.saw(CAPTURE, CopyPlace("chat", "a"), exchange_())
    capture.write(objects)
    (url,) = objects.written
    assert url.startswith("s3://bucket/captured/chat/a/20")
    assert len(objects.written[url].splitlines()) == 2
    capture.write(objects)
    assert len(objects.written) == 1
    key = capture_key(CopyPlace("chat", "a"), 1_795_305_725.25)
    assert key.startswith("chat/a/2026/11/22/00/02-05-250-")
    assert key.endswith(".jsonl")


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await read_request(reader)
    await Reply(writer).send(200, request.body if request else b"", {"content-type": "application/json"})
    writer.close()


async def ask(stub: StubSageMaker, times: int) -> list[object]:
    """Send requests to `chat`, and wait until what they caused has ended."""
    told: list[object] = []
    for _ in range(times):
        sent: list[Message] = []
        asked = iter([{"type": "http.request", "body": b"{}"}])

        async def receive(asked: Any = asked) -> Message:  # noqa: ANN401 (an iterator)
            found = next(asked, None)
            if found is None:
                await asyncio.Event().wait()
            return dict(found or {})

        async def send(message: Message, sent: list[Message] = sent) -> None:
            sent.append(message)

        await answer_invocation(
            stub.cloud, "chat", {"headers": [(b"content-type", b"application/json")]}, receive, send, streamed=False
        )
        told.append(sent[0]["status"])
    async with asyncio.timeout(20):
        while any(copy.outstanding for place in stub.running.places() for copy in stub.running.copies(place)):  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.005)
    return told


def test_half_of_the_requests_reach_the_shadow_and_are_captured(stub: StubSageMaker) -> None:
    async def run() -> list[object]:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            stub.running.port = server.sockets[0].getsockname()[1]
            stub.model("one")
            shadows = [variant("new", "one", InitialVariantWeight=0.5)]
            stub.config("c", variant("a", "one"), ShadowProductionVariants=shadows, DataCaptureConfig=CAPTURE)
            await asyncio.to_thread(stub.endpoint, "chat", "c")
            return await ask(stub, 8)

    assert asyncio.run(run()) == [200] * 8
    seen = {place.variant: len(told) for place, told in stub.cloud.telemetry.take().items()}
    assert seen == {"a": 8, "new": 4}
    objects = Objects()
    stub.cloud.capture.write(objects)
    (lines,) = objects.written.values()
    assert [json.loads(line)["captureData"]["endpointOutput"]["data"] for line in lines.splitlines()] == ["{}"] * 4
    told: Any = stub.call("DescribeEndpoint", EndpointName="chat")["DataCaptureConfig"]
    assert (told["CaptureStatus"], told["CurrentSamplingPercentage"]) == ("Started", 50)
