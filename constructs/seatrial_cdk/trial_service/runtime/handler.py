"""The one function of an environment's trials: each of its tasks is told by the form of its event."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from seatrial_cdk.trial_service.runtime.answer import give
from seatrial_cdk.trial_service.runtime.custom_resource import Answer
from seatrial_cdk.trial_service.runtime.dead_execution import bury
from seatrial_cdk.trial_service.runtime.load_share import ShareCall, work
from seatrial_cdk.trial_service.runtime.log import log
from seatrial_cdk.trial_service.runtime.request import answered_at_once
from seatrial_cdk.trial_service.runtime.scheduled import ScheduledCall, start_scheduled
from seatrial_cdk.trial_service.runtime.steps import StepCall, take_step
from seatrial_cdk.trial_service.runtime.surroundings import aws_surroundings
from seatrial_cdk.trial_service.runtime.sweep import sweep

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.trial_service.runtime.dead_execution import Execution
    from seatrial_cdk.trial_service.runtime.load_share import Share
    from seatrial_cdk.trial_service.runtime.scheduled import ScheduledAnswer
    from seatrial_cdk.trial_service.runtime.steps import Position
    from seatrial_cdk.trial_service.runtime.surroundings import LambdaContext, Surroundings


class ExecutionEvent(TypedDict):
    """The event of AWS Step Functions on EventBridge."""

    detail: Execution


class ScheduledEvent(TypedDict):
    """The event of an endpoint's schedule, or of `seatrial trial start`."""

    Scheduled: ScheduledCall


class SweepEvent(TypedDict):
    """The event of the schedule."""

    Sweep: bool


Event: TypeAlias = "CustomResourceEvent | StepCall | ShareCall | ExecutionEvent | ScheduledEvent | SweepEvent"


def handler(event: Event, context: LambdaContext) -> Position | Share | ScheduledAnswer | None:
    """Do one task in this function's region."""
    return dispatch(event, aws_surroundings(context))


def dispatch(event: Event, around: Surroundings) -> Position | Share | ScheduledAnswer | None:
    """Do the task of an event: a request of CloudFormation, a step, a share of the load, a schedule, or a clean-up."""
    if "Step" in event:
        return take_step(cast("StepCall", event), around)
    if "Share" in event:
        return work(cast("ShareCall", event), around)
    if "Scheduled" in event:
        return start_scheduled(cast("ScheduledEvent", event)["Scheduled"], around)
    if "Sweep" in event:
        sweep(around)
    elif "detail" in event:
        bury(cast("ExecutionEvent", event)["detail"], around)
    else:
        receive(event, around)
    return None


def receive(event: CustomResourceEvent, around: Surroundings) -> None:
    """Answer a request of CloudFormation, or start the workflow that does.

    Raises:
        UnavailableError: CloudFormation did not take the answer; Lambda then calls again.
    """
    log(f"{event['RequestType']} of {event['ResourceProperties'].get('EndpointName', 'unknown')}")
    try:
        given = answered_at_once(event, around)
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: CloudFormation must learn of any failure)
        log(f"{error!r}")
        words = f"{error}" if f"{error}" and not isinstance(error, KeyError) else repr(error)
        given = Answer(failed_because=f"The sea trial's request failed: {words}")
    if given is not None:
        give(event, given, around.respond, bucket=around.bucket)
