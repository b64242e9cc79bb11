"""State of a running embedded AWS, as it reports it."""

from __future__ import annotations

import hashlib
import http.client
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, NotRequired, TypedDict

from seatrial_laptop.loopback import HOST
from seatrial_laptop.state import REGION
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import Signer

if TYPE_CHECKING:
    from seatrial_laptop.state import LocalAws

STATUS_PATH: Final = "/_seatrial/status"
CONTROL_PATH: Final = "/_seatrial/control"
NO_BODY: Final = hashlib.sha256(b"").hexdigest()


LocalState = Literal["running", "not answering", "starting", "killed", "not running"]
ANSWER_S: Final = 5.0
"""How long an answer is waited for."""


class PlaceEntry(TypedDict):
    """An endpoint or an inference component, as the embedded AWS reports it."""

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
    """What runs on this machine.

    Attributes:
        local: The embedded AWS that holds the folder; `None` when none does, or its state is not written yet.
        endpoints: Its endpoints; none unless it answers.
        components: Its inference components, likewise.
        state: `running` and it answers; `not answering`, as while it is suspended; `starting`; `killed`: it ended
            without being stopped; `not running`.
    """

    local: LocalAws | None
    endpoints: tuple[RunningEndpoint, ...] = ()
    components: tuple[RunningComponent, ...] = ()
    state: LocalState = "not running"

    @property
    def running(self) -> bool:
        """Whether the embedded AWS runs and answers."""
        return self.state == "running"


def status_document(process: LocalAws) -> StatusDocument | None:
    """Ask an embedded AWS for its status; None when nothing answers that knows the question and accepts the key."""
    signer = Signer(Credentials(process.access_key_id, process.secret_access_key), REGION)
    headers = signer.signed_headers(STATUS_PATH, {"Host": f"{HOST}:{process.port}"}, NO_BODY, datetime.now(UTC))
    connection = http.client.HTTPConnection(HOST, process.port, timeout=ANSWER_S)
    try:
        connection.request("POST", STATUS_PATH, headers=headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        return None
    try:
        document: StatusDocument = json.loads(body)
    except (ValueError, RecursionError):
        # Something else listens on the port of one that was killed.
        return None
    return document if isinstance(document, dict) and StatusDocument.__required_keys__ <= document.keys() else None


def silence_hint(pid: int) -> str:
    """Return what to do about an embedded AWS that does not answer."""
    return f"if it is suspended, `kill -CONT {pid}`; else stop it: seatrial local down"


def status_of_document(local: LocalAws, document: StatusDocument) -> LocalStatus:
    """Return the status of a document."""
    return LocalStatus(
        local=local,
        state="running",
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
