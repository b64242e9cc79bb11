"""Data capture: sampled requests and answers, kept until they are written to S3 as lines of JSON."""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.json_document import child, children, text_member, text_members, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.artifacts import Services
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace


LARGEST_LINES: Final = 10_000
"""Lines that are kept for one variant between two writings; more are dropped."""


@dataclass(frozen=True, slots=True)
class CapturedExchange:
    """One request with its answer."""

    content_type: str
    body: bytes
    answer_type: str
    answer: bytes
    inference_id: str = ""


@dataclass(slots=True)
class CaptureFiles:
    """What was captured and not written yet; the event loop adds to it, a thread writes it."""

    _lines: defaultdict[tuple[str, CopyPlace], list[str]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(self, config: Document, place: CopyPlace, exchange: CapturedExchange) -> None:
        """Keep a sampled exchange until it is written."""
        line = json.dumps(captured(config, exchange, time.time()), separators=(",", ":"))
        with self._lock:
            lines = self._lines[text_member(config, "DestinationS3Uri").rstrip("/"), place]
            if len(lines) < LARGEST_LINES:
                lines.append(line)

    def write(self, services: Services) -> None:
        """Write what was captured, one object for each variant.

        Raises:
            ServiceFailed: The bucket isn't there; what was captured for it is lost.
        """
        with self._lock:
            taken, self._lines = self._lines, defaultdict(list)
        for (prefix, place), lines in taken.items():
            url = f"{prefix}/{capture_key(place, time.time())}"
            services.write(url, ("\n".join(lines) + "\n").encode(), "application/x-jsonlines")


def sampling_share(config: Document) -> float:
    """Return the share of requests, 0 to 1, that a DataCaptureConfig wants; 0 when capture is not enabled."""
    if not config or config.get("EnableCapture", True) is not True:
        return 0.0
    return whole(config, "InitialSamplingPercentage") / 100


def capture_key(place: CopyPlace, at_s: float) -> str:
    """Return the key of an object with captured exchanges, below the destination."""
    moment = time.gmtime(at_s)
    hour, within = time.strftime("%Y/%m/%d/%H", moment), time.strftime("%M-%S", moment)
    return f"{place.owner}/{place.variant}/{hour}/{within}-{round(at_s % 1 * 1000):03d}-{uuid.uuid4()}.jsonl"


def captured(config: Document, exchange: CapturedExchange, at_s: float) -> Document:
    """Return one line of captured data, as SageMaker writes it."""
    modes = {text_member(option, "CaptureMode") for option in children(config, "CaptureOptions")}
    both = "InputAndOutput" in modes
    data: dict[str, object] = {}
    if both or "Input" in modes:
        data["endpointInput"] = _side(config, exchange.content_type, exchange.body, "INPUT")
    if both or "Output" in modes:
        data["endpointOutput"] = _side(config, exchange.answer_type, exchange.answer, "OUTPUT")
    named = {"inferenceId": exchange.inference_id} if exchange.inference_id else {}
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
    metadata = {"eventId": str(uuid.uuid4()), **named, "inferenceTime": moment}
    return {"captureData": data, "eventMetadata": metadata, "eventVersion": "0"}


def _side(config: Document, content_type: str, body: bytes, mode: str) -> Mapping[str, str]:
    headers = child(config, "CaptureContentTypeHeader")
    plain = content_type.partition(";")[0].strip()
    encoding = "BASE64"
    for name, kind in (("JsonContentTypes", "JSON"), ("CsvContentTypes", "CSV")):
        if plain in text_members(headers, name):
            encoding = kind
    data = base64.b64encode(body).decode() if encoding == "BASE64" else body.decode(errors="replace")
    return {"observedContentType": content_type, "mode": mode, "data": data, "encoding": encoding}
