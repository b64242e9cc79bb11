"""Asynchronous requests in process: a container that answers as it is told, an S3 and an SNS that only remember."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_laptop.aws.control_plane.records import Kind, Status
from seatrial_laptop.aws.gateway.asgi import headers_of
from seatrial_laptop.aws.runtime import async_invocation
from seatrial_laptop.aws.runtime.artifacts import ServiceFailed
from seatrial_laptop.aws.runtime.async_invocation import invoke_async
from seatrial_laptop.aws.runtime.invocation import answer_invocation
from seatrial_laptop.aws.runtime.sampling import take_samples
from seatrial_laptop.aws.runtime.telemetry import endpoint_dimensions
from seatrial_laptop.loopback import Reply, read_request
from tests.stub_cloud import StubSageMaker, variant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seatrial_laptop.aws.gateway.asgi import Message, Receive, Send

TOPICS = {
    "SuccessTopic": "arn:aws:sns:us-east-1:000000000000:good",
    "ErrorTopic": "arn:aws:sns:us-east-1:000000000000:bad",
}
INPUT = "x-amzn-sagemaker-inputlocation"


@dataclass
class Memory:
    """An S3 and an SNS."""

    objects: dict[str, bytes] = field(default_factory=dict)
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuses: str = "nothing"

    def read(self, url: str) -> bytes:
        if url not in self.objects:
            raise ServiceFailed(f"Could not find {url}.")
        return self.objects[url]

    def write(self, url: str, body: bytes, content_type: str) -> None:
        if url.startswith(self.refuses):
            raise ServiceFailed(f"Could not write {url}: {content_type}")
        self.objects[url] = body

    def publish(self, topic_arn: str, message: str) -> None:
        self.messages.append((topic_arn.rpartition(":")[2], json.loads(message)))


@dataclass
class Container:
    """Answers every request with its body in capitals, or an error; holds them back while `gate` is closed."""

    status: int = 200
    most: int = 0
    running: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        self.running += 1
        self.most = max(self.most, self.running)
        await self.gate.wait()
        self.running -= 1
        reply = Reply(writer)
        await reply.begin(self.status, {"content-type": "text/plain"})
        await reply.chunk((request.body if request else b"").upper())
        await reply.end()
        writer.close()


@dataclass
class World:
    stub: StubSageMaker
    memory: Memory
    container: Container

    async def ask(
        self,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        call: Callable[..., Awaitable[None]] = invoke_async,
    ) -> Any:  # noqa: ANN401 (JSON)
        """Send one request; return the status, the headers and the document of the answer."""
        sent: list[Message] = []
        receive, send = ends(body, sent)
        scope = {"headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()]}
        more = {"services": self.memory} if call is invoke_async else {"streamed": False}
        await call(self.stub.cloud, "queue", scope, receive, send, **more)
        content = sent[1]["body"]
        assert isinstance(content, bytes)
        return sent[0]["status"], headers_of(sent[0]), json.loads(content)

    async def until(self, told: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not told():  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0.005)


def ends(body: bytes, sent: list[Message]) -> tuple[Receive, Send]:
    asked = iter([{"type": "http.request", "body": body}])

    async def receive() -> Message:
        found = next(asked, None)
        if found is None:
            await asyncio.Event().wait()
        return dict(found or {})

    async def send(message: Message) -> None:
        sent.append(message)

    return receive, send


def in_world(
    stub: StubSageMaker,
    test: Callable[[World], Awaitable[None]],
    *,
    count: int = 1,
    client: dict[str, object] | None = None,
    failures: bool = True,
) -> None:
    async def run() -> None:
        world = World(stub, Memory(), Container())
        async with await asyncio.start_server(world.container.serve, "127.0.0.1", 0) as server:
            stub.running.port = server.sockets[0].getsockname()[1]
            await asyncio.to_thread(create, stub, count, client, failures)
            await test(world)

    asyncio.run(run())


def create(stub: StubSageMaker, count: int, client: dict[str, object] | None, failures: bool) -> None:  # noqa: FBT001 (one caller)
    output: dict[str, object] = {"S3OutputPath": "s3://bucket/out/", "NotificationConfig": TOPICS}
    if failures:
        output["S3FailurePath"] = "s3://bucket/failed"
    config: dict[str, object] = {"OutputConfig": output, **({"ClientConfig": client} if client else {})}
    stub.model("one")
    stub.config("queued", variant("a", "one", count=count), AsyncInferenceConfig=config)
    stub.endpoint("queue", "queued")


def test_a_request_is_queued_done_written_and_notified(stub: StubSageMaker) -> None:
    async def test(world: World) -> None:
        world.memory.objects["s3://bucket/in/1.json"] = b"hello"
        named = {"x-amzn-sagemaker-inference-id": "id-1", "x-amzn-sagemaker-content-type": "application/json"}
        status, headers, told = await world.ask(headers={INPUT: "s3://bucket/in/1.json", **named})
        output = headers["x-amzn-sagemaker-outputlocation"]
        assert (status, told) == (202, {"InferenceId": "id-1"})
        assert output.startswith("s3://bucket/out/")
        assert output.endswith(".out")
        assert headers["x-amzn-sagemaker-failurelocation"].startswith("s3://bucket/failed/")
        assert output not in world.memory.objects
        world.container.gate.set()
        await world.until(lambda: world.memory.messages)
        assert world.memory.objects[output] == b"HELLO"
        (topic, message) = world.memory.messages[0]
        assert (topic, message["invocationStatus"], message["inferenceId"]) == ("good", "Completed", "id-1")
        assert message["requestParameters"] == {
            "contentType": "application/json",
            "endpointName": "queue",
            "inputLocation": "s3://bucket/in/1.json",
        }
        assert message["responseParameters"] == {"contentType": "text/plain", "outputLocation": output}
        assert (message["eventSource"], message["eventName"]) == ("aws:sagemaker", "InferenceResult")

    in_world(stub, test)


def test_an_inline_body_goes_where_its_extension_and_file_name_say(stub: StubSageMaker) -> None:
    async def test(world: World) -> None:
        world.container.gate.set()
        where = {"x-amzn-sagemaker-s3outputpathextension": "tenant-1/", "x-amzn-sagemaker-filename": "answer.txt"}
        await world.ask(b"hi", where)
        await world.until(lambda: "s3://bucket/out/tenant-1/answer.txt" in world.memory.objects)

    in_world(stub, test)


def test_no_more_requests_run_on_an_instance_than_its_client_configuration_says(stub: StubSageMaker) -> None:
    async def test(world: World) -> None:
        for _ in range(7):
            await world.ask(b"hi")
        await world.until(lambda: world.container.running == 4)
        measured = sampled(world.stub, "ApproximateBacklogSize", "ApproximateBacklogSizePerInstance")
        assert measured == [7.0, 3.5]
        world.container.gate.set()
        await world.until(lambda: len(world.memory.messages) == 7)
        assert world.container.most == 4

    in_world(stub, test, count=2, client={"MaxConcurrentInvocationsPerInstance": 2})


def sampled(stub: StubSageMaker, *names: str) -> list[float]:
    take_samples(stub.cloud, 10.0, since_s=0.0)
    whose = endpoint_dimensions("queue")
    (*_, last) = stub.cloud.history.samples(whose, after_s=0.0, until_s=10.0)
    return [last.values[name][-1] for name in names]


@pytest.mark.parametrize(
    ("asked", "status", "reason"),
    [
        ({INPUT: "s3://bucket/none"}, 200, "ClientError: Could not find s3://bucket/none."),
        ({}, 400, 'Received client error (400) from primary with message "HI".'),
        ({}, 503, 'Received server error (503) from primary with message "HI".'),
    ],
)
def test_a_failure_is_written_and_notified(
    stub: StubSageMaker, asked: dict[str, str], status: int, reason: str
) -> None:
    async def test(world: World) -> None:
        world.container.gate.set()
        world.container.status = status
        _, headers, _ = await world.ask(b"" if asked else b"hi", asked)
        await world.until(lambda: world.memory.messages)
        (topic, message) = world.memory.messages[0]
        assert (topic, message["invocationStatus"], message["failureReason"]) == ("bad", "Failed", reason)
        failure = headers["x-amzn-sagemaker-failurelocation"]
        assert message["responseParameters"] == {"failureLocation": failure}
        assert world.memory.objects[failure] == (reason.encode() if asked else b"HI")
        assert world.stub.cloud.queues.backlog("queue").size == 0

    in_world(stub, test)


def test_an_answer_that_can_not_be_written_is_a_failure(stub: StubSageMaker) -> None:
    async def test(world: World) -> None:
        world.container.gate.set()
        world.memory.refuses = "s3://"
        _, headers, _ = await world.ask(b"hi")
        assert "x-amzn-sagemaker-failurelocation" not in headers
        await world.until(lambda: world.memory.messages)
        assert [topic for topic, _ in world.memory.messages] == ["bad"]
        assert "responseParameters" not in world.memory.messages[0][1]

    in_world(stub, test, failures=False)


def test_a_request_waits_without_instances_and_expires(stub: StubSageMaker) -> None:
    async def test(world: World) -> None:
        world.stub.cloud.clock.set_speed(0.001)
        wanted = [{"VariantName": "a", "DesiredInstanceCount": 0}]
        await asyncio.to_thread(
            lambda: world.stub.call(
                "UpdateEndpointWeightsAndCapacities", EndpointName="queue", DesiredWeightsAndCapacities=wanted
            )
        )
        record = await asyncio.to_thread(world.stub.settled, Kind.ENDPOINT, "queue")
        assert record.status is Status.IN_SERVICE
        await world.ask(b"hi", {"x-amzn-sagemaker-requestttlseconds": "60"})
        assert sampled(world.stub, "HasBacklogWithoutCapacity", "ApproximateBacklogSizePerInstance") == [1.0, 1.0]
        world.stub.cloud.clock.set_speed(600)
        await world.until(lambda: world.memory.messages)
        assert "expired after RequestTTLSeconds (60 s)" in world.memory.messages[0][1]["failureReason"]
        assert sampled(world.stub, "HasBacklogWithoutCapacity") == [0.0]

    in_world(stub, test)


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"", {}, "Either InputLocation or Body must be given"),
        (b"x", {INPUT: "s3://bucket/in"}, "Either InputLocation or Body must be given"),
        (b"", {INPUT: "file:///etc/passwd"}, "failed to satisfy constraint"),
        (b"x", {"x-amzn-sagemaker-requestttlseconds": "59"}, "RequestTTLSeconds"),
        (b"x", {"x-amzn-sagemaker-invocationtimeoutseconds": "3601"}, "InvocationTimeoutSeconds"),
        (b"x" * 128_001, {}, "Body"),
    ],
)
def test_what_is_not_allowed_is_refused_at_once(
    stub: StubSageMaker, body: bytes, headers: dict[str, str], said: str
) -> None:
    async def test(world: World) -> None:
        status, _, told = await world.ask(body, headers)
        assert (status, told["__type"], said in told["message"]) == (400, "ValidationError", True), told
        assert world.stub.cloud.queues.backlog("queue").size == 0

    in_world(stub, test)


def test_an_asynchronous_endpoint_takes_no_other_requests_and_another_takes_no_asynchronous_ones(
    stub: StubSageMaker,
) -> None:
    async def test(world: World) -> None:
        status, _, told = await world.ask(b"hi", call=answer_invocation)
        assert (status, told["message"]) == (400, "Endpoint queue is asynchronous: use InvokeEndpointAsync.")
        await asyncio.to_thread(world.stub.config, "plain", variant("a", "one"))
        await asyncio.to_thread(world.stub.call, "UpdateEndpoint", EndpointName="queue", EndpointConfigName="plain")
        await asyncio.to_thread(world.stub.settled, Kind.ENDPOINT, "queue")
        status, _, told = await world.ask(b"hi")
        assert (status, told["message"]) == (400, "Endpoint queue is not asynchronous: use InvokeEndpoint.")

    in_world(stub, test)


def test_the_limits_are_those_of_the_service() -> None:
    assert (async_invocation.TTL_S, async_invocation.TIMEOUT_S) == (21_600, 900)
