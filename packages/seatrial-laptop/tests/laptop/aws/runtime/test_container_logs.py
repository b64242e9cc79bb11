"""What containers write reaches CloudWatch Logs while they are there, and never after they are deleted."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.runtime.sampling import Publisher
from tests.stub_cloud import variant

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stub_cloud import StubSageMaker

CHAT = CopyPlace("chat")
GROUP = "/aws/sagemaker/InferenceComponents/chat"


@dataclass
class StubLogs:
    """Groups with their lines, and metrics that nobody reads."""

    groups: dict[str, list[str]] = field(default_factory=dict)
    streams: set[tuple[str, str]] = field(default_factory=set)

    def put_metric_data(self, **request: object) -> None: ...

    def create_log_group(self, **request: object) -> None:
        self.groups.setdefault(f"{request['logGroupName']}", [])

    def create_log_stream(self, **request: object) -> None:
        self.streams.add((f"{request['logGroupName']}", f"{request['logStreamName']}"))

    def put_log_events(self, **request: object) -> None:
        where = (f"{request['logGroupName']}", f"{request['logStreamName']}")
        if where not in self.streams:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "PutLogEvents")
        events = request["logEvents"]
        assert isinstance(events, list)
        self.groups[where[0]] += [each["message"] for each in events]

    def delete(self, group: str) -> None:
        del self.groups[group]
        self.streams = {each for each in self.streams if each[0] != group}


@dataclass
class Told:
    """A copy that writes lines, what publishes them, and where they come to."""

    stub: StubSageMaker
    logs: StubLogs
    publisher: Publisher
    log: Path

    def write(self, line: str) -> None:
        with self.log.open("a") as lines:
            lines.write(f"{line}\n")


@pytest.fixture
def told(stub: StubSageMaker, tmp_path: Path) -> Told:
    logs, log = StubLogs(), tmp_path / "chat.log"
    log.touch()
    stub.running.keep_log(CHAT, log)
    clients: Any = logs
    publisher = Publisher(stub.cloud, clients, clients)
    stub.running.tell_ended(publisher.publish_logs)
    return Told(stub, logs, publisher, log)


def test_lines_are_published_once(told: Told) -> None:
    told.write("first")
    told.publisher.publish()
    told.write("second")
    told.publisher.publish()
    assert told.logs.groups == {GROUP: ["first", "second"]}


def test_the_last_lines_of_what_is_deleted_come_before_it_is_gone_and_none_afterwards(told: Told) -> None:
    told.publisher.publish()
    assert told.logs.groups == {}, "nothing was written"
    told.write("last")
    told.stub.running.delete(CHAT)
    assert told.logs.groups == {GROUP: ["last"]}
    told.logs.delete(GROUP)
    told.write("later")
    told.publisher.publish()
    assert told.logs.groups == {}


def test_a_group_that_is_deleted_meanwhile_is_made_again_and_stops_nothing_else(told: Told, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text("of the other\n")
    told.write("first")
    told.publisher.publish()
    told.logs.delete(GROUP)
    told.write("second")
    told.stub.running.keep_log(CopyPlace("other"), other)
    told.publisher.publish()
    assert told.logs.groups == {GROUP: ["second"], "/aws/sagemaker/InferenceComponents/other": ["of the other"]}


def test_a_variant_that_is_deleted_publishes_its_last_lines(told: Told, tmp_path: Path) -> None:
    stub = told.stub
    stub.config("of-models", variant("main", stub.model("one")))
    stub.endpoint("host", "of-models")
    log = tmp_path / "host.log"
    log.write_text("of the variant\n")
    stub.running.keep_log(CopyPlace("host", "main"), log)
    stub.call("DeleteEndpoint", EndpointName="host")
    deadline = time.monotonic() + 20
    while stub.cloud.store.find(Kind.ENDPOINT, "host"):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert told.logs.groups == {"/aws/sagemaker/Endpoints/host": ["of the variant"]}
    assert CopyPlace("host", "main") not in stub.running.known_places()
