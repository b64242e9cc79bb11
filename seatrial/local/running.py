"""What a running embedded AWS tells about itself."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import NotRequired, TypedDict

from seatrial.local.loopback import HOST


class PlaceEntry(TypedDict):
    """An endpoint or an inference component, as the embedded AWS tells it."""

    name: str
    endpoint: NotRequired[str]
    status: str
    ports: list[int]


class StatusDocument(TypedDict):
    """The answer of the embedded AWS about itself."""

    pid: int
    endpoints: list[PlaceEntry]
    inference_components: list[PlaceEntry]


@dataclass(frozen=True, slots=True)
class LocalAws:
    """A running embedded AWS."""

    endpoint_url: str
    region: str
    account: str
    pid: int


@dataclass(frozen=True, slots=True)
class RunningEndpoint:
    """An endpoint of the embedded AWS; the ports are those of the engines of its variants with a model."""

    name: str
    status: str
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunningComponent:
    """An inference component of the embedded AWS; each port is one copy's engine."""

    name: str
    endpoint: str
    status: str
    ports: tuple[int, ...]

    @property
    def copy_count(self) -> int:
        """The copies that serve now."""
        return len(self.ports)


@dataclass(frozen=True, slots=True)
class LocalStatus:
    """What runs on this machine; `local` is None when nothing does."""

    local: LocalAws | None
    endpoints: tuple[RunningEndpoint, ...] = ()
    components: tuple[RunningComponent, ...] = ()

    @property
    def running(self) -> bool:
        """Whether the embedded AWS runs."""
        return self.local is not None


def status_document(port: int) -> StatusDocument | None:
    """Ask the embedded AWS on a port for its status; None when nothing that knows the question answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5.0)
    try:
        connection.request("GET", "/_seatrial/status")
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        return None
    document: StatusDocument = json.loads(body)
    return document


def local_status(local: LocalAws, document: StatusDocument) -> LocalStatus:
    """Return the status that a document tells."""
    return LocalStatus(
        local=local,
        endpoints=tuple(
            RunningEndpoint(name=entry["name"], status=entry["status"], ports=tuple(entry["ports"]))
            for entry in document["endpoints"]
        ),
        components=tuple(
            RunningComponent(
                name=entry["name"], endpoint=entry["endpoint"], status=entry["status"], ports=tuple(entry["ports"])
            )
            for entry in document["inference_components"]
        ),
    )
