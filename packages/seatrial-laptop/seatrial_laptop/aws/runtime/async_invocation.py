"""InvokeEndpointAsync: a request is queued and answered at once, done when a copy is free, and its end is notified."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError, check_api_request
from seatrial_laptop.aws.control_plane.containers import known_role
from seatrial_laptop.aws.control_plane.records import Kind, async_config, live_variants
from seatrial_laptop.aws.gateway.asgi import body_of, headers_of, reply, reply_error
from seatrial_laptop.aws.json_document import child, text_member, whole
from seatrial_laptop.aws.runtime.artifacts import OWN, RoleServices, ServiceFailed
from seatrial_laptop.aws.runtime.async_queue import AsyncJob
from seatrial_laptop.aws.runtime.invocation import ContainerAnswer, measured_call, received_error
from seatrial_laptop.aws.runtime.routing import serving_endpoint
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.gateway.asgi import Receive, Scope, Send
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.artifacts import Services
    from seatrial_laptop.aws.runtime.running_copies import CopyProcess


TTL_S: Final = 21_600
"""Virtual seconds that a request waits at most when it doesn't say (InvokeEndpointAsync: 6 hours)."""
TIMEOUT_S: Final = 900
"""Real seconds that a container may take when the request doesn't say (InvokeEndpointAsync: 15 minutes)."""
CONCURRENT: Final = 4
"""Requests on one instance at a time when ClientConfig doesn't say; SageMaker chooses a number of its own."""
WAIT_S: Final = 0.05
"""Real seconds between two looks for a free copy."""
_HEADERS: Final = {
    "ContentType": "x-amzn-sagemaker-content-type",
    "Accept": "x-amzn-sagemaker-accept",
    "CustomAttributes": "x-amzn-sagemaker-custom-attributes",
    "InferenceId": "x-amzn-sagemaker-inference-id",
    "InputLocation": "x-amzn-sagemaker-inputlocation",
    "S3OutputPathExtension": "x-amzn-sagemaker-s3outputpathextension",
    "Filename": "x-amzn-sagemaker-filename",
    "RequestTTLSeconds": "x-amzn-sagemaker-requestttlseconds",
    "InvocationTimeoutSeconds": "x-amzn-sagemaker-invocationtimeoutseconds",
}
_NUMBERS: Final = ("RequestTTLSeconds", "InvocationTimeoutSeconds")

_working: Final[set[asyncio.Task[None]]] = set()


async def invoke_async(
    cloud: Cloud, endpoint_name: str, scope: Scope, receive: Receive, send: Send, *, services: Services = OWN
) -> None:
    """Queue one request and answer 202, or reply why it isn't taken."""
    body, headers = await body_of(receive), headers_of(scope)
    try:
        job = accepted(cloud, endpoint_name, headers, body)
    except ApiError as error:
        await reply_error(send, error)
        return
    if cloud.queues.add(job):
        keep(asyncio.create_task(_Worker(cloud, endpoint_name, services).run()))
    places = {"x-amzn-sagemaker-outputlocation": job.output_location}
    if job.failure_location:
        places["x-amzn-sagemaker-failurelocation"] = job.failure_location
    head = {"content-type": "application/json", **places}
    await reply(send, HTTPStatus.ACCEPTED, {"InferenceId": job.inference_id}, head)


def keep(task: asyncio.Task[None]) -> None:
    """Hold a task until it has ended: the event loop's own references are weak."""
    _working.add(task)
    task.add_done_callback(_working.discard)


def accepted(cloud: Cloud, endpoint_name: str, headers: Mapping[str, str], body: bytes) -> AsyncJob:
    """Return the job of a request.

    Raises:
        ApiError: ValidationError, the endpoint takes no asynchronous requests, or the request isn't valid.
    """
    endpoint = serving_endpoint(cloud, endpoint_name)
    config = async_config(cloud.store, endpoint)
    if not config:
        raise ApiError("ValidationError", f"Endpoint {endpoint_name} is not asynchronous: use InvokeEndpoint.")
    request = _request(endpoint_name, headers, body)
    output = child(config, "OutputConfig")
    name, extension = str(uuid.uuid4()), text_member(request, "S3OutputPathExtension").strip("/")
    prefix = "/".join(part for part in (text_member(output, "S3OutputPath").rstrip("/"), extension) if part)
    failures = text_member(output, "S3FailurePath").rstrip("/")
    given = {
        "content-type": text_member(request, "ContentType"),
        "accept": text_member(request, "Accept"),
        "x-amzn-sagemaker-custom-attributes": text_member(request, "CustomAttributes"),
    }
    return AsyncJob(
        endpoint=endpoint_name,
        inference_id=text_member(request, "InferenceId") or str(uuid.uuid4()),
        input_location=text_member(request, "InputLocation"),
        body=body or None,
        headers={name: value for name, value in given.items() if value},
        output_location=f"{prefix}/{text_member(request, 'Filename') or f'{name}.out'}",
        failure_location=f"{failures}/{name}-error.out" if failures else "",
        received_s=time.time(),
        queued_s=cloud.clock.now_s(),
        ttl_s=whole(request, "RequestTTLSeconds", TTL_S),
        timeout_s=whole(request, "InvocationTimeoutSeconds", TIMEOUT_S),
    )


def _request(endpoint_name: str, headers: Mapping[str, str], body: bytes) -> Document:
    request: dict[str, object] = {"EndpointName": endpoint_name}
    for name, header in _HEADERS.items():
        if header in headers:
            given = headers[header]
            request[name] = int(given) if name in _NUMBERS and given.isdecimal() else given
    if body:
        request["Body"] = body
    try:
        check_api_request("sagemaker-runtime", "InvokeEndpointAsync", request)
    except ApiError as error:
        raise ApiError("ValidationError", error.message) from error
    if ("InputLocation" in request) == bool(body):
        raise ApiError("ValidationError", "Either InputLocation or Body must be given, and not both.")
    return request


@dataclass(slots=True)
class _Worker:
    """Does what waits in the queue of one endpoint, until nothing waits."""

    cloud: Cloud
    endpoint: str
    services: Services

    async def run(self) -> None:
        while job := self.cloud.queues.first(self.endpoint):
            record = self.cloud.store.find(Kind.ENDPOINT, self.endpoint)
            if record is None:
                self.cloud.queues.close(self.endpoint)
            elif self.cloud.clock.now_s() > job.queued_s + job.ttl_s:
                self._begin(job, _Done(self.cloud, job, record, self._services(record)).expire())
            elif (free := self._free_copy(record)) is not None:
                place, copy = free
                self._begin(job, _Done(self.cloud, job, record, self._services(record)).call(place, copy))
            else:
                await asyncio.sleep(WAIT_S)

    def _services(self, record: Record) -> Services:
        """Return S3 and SNS as the role of the model may use them."""
        live = live_variants(self.cloud.store, record)
        role = known_role(self.cloud.store, CopyPlace(self.endpoint, live[0].name)) if live else ""
        return RoleServices(role, self.services) if role else self.services

    def _begin(self, job: AsyncJob, work: Coroutine[object, object, None]) -> None:
        self.cloud.queues.begin(job)
        keep(asyncio.create_task(work))

    def _free_copy(self, record: Record) -> tuple[CopyPlace, CopyProcess] | None:
        client = child(async_config(self.cloud.store, record), "ClientConfig")
        most = whole(client, "MaxConcurrentInvocationsPerInstance", CONCURRENT)
        live = {variant.name: variant.weight for variant in live_variants(self.cloud.store, record)}
        free = {
            name: weight
            for name, weight in live.items()
            if any(copy.outstanding < most for copy in self.cloud.running.copies(CopyPlace(self.endpoint, name)))
        }
        if not free:
            return None
        place = CopyPlace(self.endpoint, self.cloud.traffic.pick(self.endpoint, free))
        copy = self.cloud.running.reserve(place)
        return (place, copy) if copy else None


@dataclass(frozen=True, slots=True)
class _Done:
    """The end of one job, whichever way."""

    cloud: Cloud
    job: AsyncJob
    record: Record
    services: Services

    async def expire(self) -> None:
        """Fail the job: it waited too long."""
        try:
            await self._fail(f"The request expired after RequestTTLSeconds ({self.job.ttl_s:g} s) in the queue.", b"")
        finally:
            self.cloud.queues.end(self.job)

    async def call(self, place: CopyPlace, copy: CopyProcess) -> None:
        """Let a copy answer, write its response and notify; the copy was reserved."""
        arrived_s = time.monotonic()
        # The copy is free again before its response is written and notified.
        try:
            try:
                body = self.job.body
                if body is None:
                    body = await asyncio.to_thread(self.services.read, self.job.input_location)
                answer, measured = await measured_call(
                    copy, self.job.headers, body, self.job.timeout_s, arrived_s=arrived_s
                )
            finally:
                copy.outstanding -= 1
            self.cloud.telemetry.saw(place, measured)
            await (self._succeed(answer) if answer.is_good else self._refused(answer))
        except ServiceFailed as failure:
            await self._fail(f"ClientError: {failure}", b"")
        finally:
            self.cloud.queues.end(self.job)

    async def _succeed(self, answer: ContainerAnswer) -> None:
        write = self.services.write
        await asyncio.to_thread(write, self.job.output_location, answer.body, answer.content_type)
        response = {"contentType": answer.content_type, "outputLocation": self.job.output_location}
        await self._notify("SuccessTopic", {"invocationStatus": "Completed", "responseParameters": response})

    async def _refused(self, answer: ContainerAnswer) -> None:
        reason = received_error(answer.status, answer.body.decode(errors="replace"))
        await self._fail(f"{reason}.", answer.body)

    async def _fail(self, reason: str, body: bytes) -> None:
        failure = self.job.failure_location
        if failure:
            try:
                await asyncio.to_thread(self.services.write, failure, body or reason.encode(), "text/plain")
            except ServiceFailed as error:
                # The failure is notified all the same: else it would be waited for for ever.
                sys.stderr.write(f"{error}\n")
        places = {"responseParameters": {"failureLocation": failure}} if failure else {}
        await self._notify("ErrorTopic", {"invocationStatus": "Failed", "failureReason": reason, **places})

    async def _notify(self, topic: str, outcome: Document) -> None:
        output = child(async_config(self.cloud.store, self.record), "OutputConfig")
        arn = text_member(child(output, "NotificationConfig"), topic)
        if not arn:
            return
        message = json.dumps(notification(self.job, outcome, time.time()))
        try:
            await asyncio.to_thread(self.services.publish, arn, message)
        except ServiceFailed as error:
            sys.stderr.write(f"{error}\n")


def notification(job: AsyncJob, outcome: Document, now_s: float) -> Document:
    """Return the message that the topics of an asynchronous endpoint get."""
    request = {"contentType": job.headers.get("content-type", ""), "endpointName": job.endpoint}
    located = {"inputLocation": job.input_location} if job.input_location else {}
    return {
        "awsRegion": REGION,
        "eventTime": _moment(now_s),
        "receivedTime": _moment(job.received_s),
        **outcome,
        "requestParameters": {**request, **located},
        "inferenceId": job.inference_id,
        "eventVersion": "1.0",
        "eventSource": "aws:sagemaker",
        "eventName": "InferenceResult",
    }


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s)) + f".{int(at_s % 1 * 1000):03d}Z"
