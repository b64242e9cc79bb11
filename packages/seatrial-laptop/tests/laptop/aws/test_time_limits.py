"""The runtime's time limits, shortened, against a container that begins to answer and never ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from botocore.eventstream import EventStreamBuffer

from seatrial_laptop.aws.control_plane.cloud import open_cloud
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status
from seatrial_laptop.aws.runtime import invocation
from seatrial_laptop.aws.runtime.running_copies import CopyPlace, CopyProcess
from seatrial_laptop.loopback import Reply, read_request

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_laptop.aws.gateway.asgi import Message


@pytest.fixture
def process() -> subprocess.Popen[bytes]:
    """Return a process that stands for the container's; it is stopped with the copies."""
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


async def never_ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    reply = Reply(writer)
    await reply.begin(200, {"content-type": "application/jsonlines"})
    await reply.chunk(b"first\n")
    await reader.read()
    writer.close()


async def answers_to_one_invocation(
    state_dir: Path, process: subprocess.Popen[bytes], *, streamed: bool
) -> list[Message]:
    cloud = open_cloud(state_dir, {})
    config = {"ProductionVariants": [{"VariantName": "main", "ModelName": "m"}]}
    cloud.store.add(Record(Kind.ENDPOINT_CONFIG, "c", config))
    cloud.store.add(Record(Kind.ENDPOINT, "e", {"EndpointConfigName": "c"}, status=Status.IN_SERVICE))
    sent: list[Message] = []
    asked = iter([{"type": "http.request", "body": b"{}"}])

    async def receive() -> Message:
        found = next(asked, None)
        if found is None:
            await asyncio.Event().wait()
        return dict(found or {})

    async def send(message: Message) -> None:
        sent.append(message)

    async with await asyncio.start_server(never_ends, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        cloud.running.put(
            CopyPlace("e", "main"), (CopyProcess(port, process, state_dir / "folder", state_dir / "log"),)
        )
        try:
            await invocation.answer_invocation(cloud, "e", {"headers": []}, receive, send, streamed=streamed)
        finally:
            cloud.running.close()
    return sent


def test_an_invocation_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(invocation, "INVOCATION_S", 0.1)
    head, body = asyncio.run(answers_to_one_invocation(tmp_path, process, streamed=False))
    assert head["status"] == 424
    content = body["body"]
    assert isinstance(content, bytes)
    told = json.loads(content)
    assert told["Message"].startswith(
        'Received server error (0) from primary with message "Your invocation timed out after 0.1 s.".'
    )
    assert (told["OriginalStatusCode"], told["OriginalMessage"]) == (0, "Your invocation timed out after 0.1 s.")


def test_a_stream_is_cut_with_an_exception_in_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(invocation, "STREAM_S", 0.1)
    head, *parts = asyncio.run(answers_to_one_invocation(tmp_path, process, streamed=True))
    buffer = EventStreamBuffer()
    for part in parts:
        content = part["body"]
        assert isinstance(content, bytes)
        buffer.add_data(content)
    first, last = [message.to_response_dict() for message in buffer]
    assert (head["status"], first["body"]) == (200, b"first\n")
    assert last["headers"][":exception-type"] == "ModelStreamError"
    assert json.loads(last["body"]) == {"Message": "No end after 0.1 s.", "ErrorCode": "ModelInvocationTimeExceeded"}


@pytest.mark.parametrize(("limit", "seconds"), [("INVOCATION_S", 60.0), ("STREAM_S", 480.0)])
def test_the_limits_are_those_of_the_service(limit: str, seconds: float) -> None:
    assert getattr(invocation, limit) == seconds
