"""One ASGI app: our services in front, MiniStack behind; `gate` lets in what is signed.

The credential scope of the signature tells the service; the path tells the runtime from the control plane.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from seatrial.local.aws.api import ApiError, absent
from seatrial.local.aws.autoscaling.scalable_targets import Scaling, call_autoscaling
from seatrial.local.aws.control_plane.records import Kind
from seatrial.local.aws.control_plane.sagemaker import call_sagemaker
from seatrial.local.aws.gateway.asgi import body_of, headers_of, reply, reply_error
from seatrial.local.aws.json_document import Document, text
from seatrial.local.aws.runtime.invocation import invoke
from seatrial.local.aws.runtime.running_copies import Place
from seatrial.local.running import STATUS_PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.local.aws.control_plane.cloud import Cloud
    from seatrial.local.aws.gateway.asgi import App, Receive, Scope, Send


SERVICE_IN_SCOPE: Final = re.compile(r"Credential=[^/]+/[^/]+/[^/]+/([^/]+)/")
ASYNC_PATH: Final = re.compile(r"/endpoints/([^/]+)/async-invocations")
RUNTIME_PATH: Final = re.compile(r"/endpoints/([^/]+)/invocations(-response-stream)?")


@dataclass(frozen=True, slots=True)
class Gateway:
    """The ASGI app of the embedded AWS."""

    cloud: Cloud
    scaling: Scaling
    behind: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let MiniStack answer it."""
        if scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        path, headers = unquote(str(scope["path"])), headers_of(scope)
        found = SERVICE_IN_SCOPE.search(headers.get("authorization", ""))
        service = found[1] if found else ""
        if path == STATUS_PATH:
            await reply(send, HTTPStatus.OK, status_document(self.cloud), {"content-type": "application/json"})
        elif runtime := RUNTIME_PATH.fullmatch(path):
            await invoke(self.cloud, runtime[1], scope, receive, send, streamed=runtime[2] is not None)
        elif asynchronous := ASYNC_PATH.fullmatch(path):
            message = f"InvokeEndpointAsync: endpoint {asynchronous[1]} has no AsyncInferenceConfig."
            await reply_error(send, ApiError("ValidationError", message))
        elif service == "sagemaker":
            await _control(lambda name, ask: call_sagemaker(self.cloud, name, ask), headers, receive, send)
        elif service == "application-autoscaling":
            await _control(lambda name, ask: call_autoscaling(self.scaling, name, ask), headers, receive, send)
        elif service.startswith("bedrock"):
            await reply_error(send, absent("Amazon Bedrock is not supported: no model runs here"))
        else:
            await self.behind(scope, receive, send)


def status_document(cloud: Cloud) -> Document:
    """Return what the embedded AWS runs: its endpoints and components, with their copies' ports."""
    return {
        "pid": os.getpid(),
        "endpoints": [
            {"name": record.name, "status": record.status, "ports": _ports_of_variants(cloud, record.name)}
            for record in cloud.store.all(Kind.ENDPOINT)
        ],
        "inference_components": [
            {
                "name": record.name,
                "endpoint": text(record.request, "EndpointName"),
                "status": record.status,
                "ports": [copy.port for copy in cloud.running.copies(Place(record.name))],
            }
            for record in cloud.store.all(Kind.INFERENCE_COMPONENT)
        ],
    }


def _ports_of_variants(cloud: Cloud, endpoint_name: str) -> list[int]:
    places = [place for place in cloud.running.places() if place.variant and place.owner == endpoint_name]
    return [copy.port for place in places for copy in cloud.running.copies(place)]


async def _control(
    call: Callable[[str, Document], Document], headers: dict[str, str], receive: Receive, send: Send
) -> None:
    operation = headers.get("x-amz-target", "").rpartition(".")[2]
    body = await body_of(receive)
    try:
        answer = await asyncio.to_thread(call, operation, json.loads(body or b"{}"))
    except ApiError as error:
        await reply_error(send, error)
    else:
        await reply(send, HTTPStatus.OK, answer)
