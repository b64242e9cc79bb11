"""Where a request goes, and what is spoken there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from seatrial.payload.error import REQUEST_RULE, RequestError
from seatrial.payload.request import CONTENT_TYPE

if TYPE_CHECKING:
    from seatrial.payload.schema import Schema

NEW_SESSION = "NEW_SESSION"


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, or a part of it.

    Attributes:
        endpoint_name: SageMaker's name of the endpoint.
        schema: The schema to speak; the container behind the endpoint decides which ones it understands.
        inference_component: The component (or adapter component) that shall answer; needed where the endpoint has
            components.
        target_variant: The production variant that shall answer; None leaves the choice to the weights.
        session_id: The stateful session that the request belongs to.
    """

    endpoint_name: str
    schema: Schema
    inference_component: str | None = None
    target_variant: str | None = None
    session_id: str | None = None

    @property
    def where(self) -> str:
        """The target's name, for errors."""
        return "/".join(filter(None, (self.endpoint_name, self.inference_component, self.target_variant)))


class InvocationArguments(TypedDict, total=False):
    """The arguments that `invoke_endpoint` and `invoke_endpoint_with_response_stream` share."""

    EndpointName: str
    Body: bytes
    ContentType: str
    InferenceComponentName: str
    TargetVariant: str
    SessionId: str


def invocation_arguments(target: Target, body: bytes, *, stream: bool) -> InvocationArguments:
    """Return boto3's arguments for a request.

    Raises:
        RequestError: SEA370, a new session is asked for in a stream, whose answer has no place to name it.
    """
    if stream and target.session_id == NEW_SESSION:
        problem = "a stream can't open a session: open it with a whole answer"
        raise RequestError.of(REQUEST_RULE, problem, where=target.where, field="session_id")
    arguments = InvocationArguments(EndpointName=target.endpoint_name, Body=body, ContentType=CONTENT_TYPE)
    if target.inference_component:
        arguments["InferenceComponentName"] = target.inference_component
    if target.target_variant:
        arguments["TargetVariant"] = target.target_variant
    if target.session_id:
        arguments["SessionId"] = target.session_id
    return arguments
