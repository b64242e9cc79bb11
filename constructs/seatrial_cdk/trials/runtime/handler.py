"""The one function of an environment's trials: the form of an event says which task it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from seatrial_cdk.trials.runtime.answer import given_before, note_sent, send_answer, unsent_answer
from seatrial_cdk.trials.runtime.aws_context import aws_trial_context
from seatrial_cdk.trials.runtime.candidate import candidate_answer
from seatrial_cdk.trials.runtime.custom_resource import deleted, deployed_answer, restarted
from seatrial_cdk.trials.runtime.load_phase import FunctionShare, WorkerShare, error_document
from seatrial_cdk.trials.runtime.log_groups import log
from seatrial_cdk.trials.runtime.order import UNKNOWN_ENDPOINT, Answer, OrderRef, endpoint_of, read_order
from seatrial_cdk.trials.runtime.ownership import first_seen_s
from seatrial_cdk.trials.runtime.properties import read_properties
from seatrial_cdk.trials.runtime.scheduled import ScheduledCall, start_scheduled
from seatrial_cdk.trials.runtime.served_record import RECORD_TYPE, record_served
from seatrial_cdk.trials.runtime.service_model import log_version, use_own_models
from seatrial_cdk.trials.runtime.steps import StepCall, Trial, ownership_of, take_step
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_cdk.trials.runtime.sweep import end_dead_execution, lost_requests, note_request, sweep
from seatrial_load.documents.strict_json import write_document
from seatrial_load.trial.budget import live_request
from seatrial_load.trial.steps import LateStartError

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.context import LambdaContext, TrialContext
    from seatrial_cdk.trials.runtime.load_phase import LoadPhase
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent, Execution, Order
    from seatrial_cdk.trials.runtime.ownership import Ownership
    from seatrial_cdk.trials.runtime.scheduled import ScheduledAnswer
    from seatrial_cdk.trials.runtime.steps import Position


Event: TypeAlias = "CustomResourceEvent | StepCall | ShareCall | ExecutionEvent | ScheduledEvent | SweepEvent"
PAUSE_MARGIN_S = 15.0  # of the function's time, for the tally and for the last requests of a level to end


class ExecutionEvent(TypedDict):
    """The event of AWS Step Functions on EventBridge."""

    detail: Execution


class ScheduledEvent(TypedDict):
    """The event of an endpoint's schedule, or of `seatrial trial start`."""

    Scheduled: ScheduledCall


class SweepEvent(TypedDict):
    """The event of the schedule."""

    Sweep: bool


def handler(event: Event, lambda_context: LambdaContext) -> Position | WorkerShare | ScheduledAnswer | None:
    """Do one task in this function's region."""
    use_own_models(os.environ)
    log_version()
    return dispatch(event, aws_trial_context(lambda_context))


def dispatch(event: Event, context: TrialContext) -> Position | WorkerShare | ScheduledAnswer | None:
    """Do the task of an event: a request of CloudFormation, a step, a share of the load, a schedule, or a clean-up."""
    if "Step" in event:
        return take_step(cast("StepCall", event), context)
    if "Share" in event:
        return load_worker_share(cast("ShareCall", event), context)
    if "Scheduled" in event:
        return start_scheduled(cast("ScheduledEvent", event)["Scheduled"], context)
    if "Sweep" in event:
        sweep(context)
        receive_lost(context)
    elif "detail" in event:
        end_dead_execution(cast("ExecutionEvent", event)["detail"], context)
    elif event.get("ResourceType") == RECORD_TYPE:
        record_served(event, context)
    else:
        receive(event, context)
    return None


def receive(event: CustomResourceEvent, context: TrialContext) -> None:
    """Answer a request of CloudFormation, or start the workflow that does.

    Lambda may deliver a request more than once: it is noted first, and each delivery gets the answer of the first.

    Raises:
        UnavailableError: CloudFormation did not take the answer; Lambda then calls again.
    """
    event = {**event, "ResourceProperties": event.get("ResourceProperties") or {}}
    endpoint_name = endpoint_of(event)
    log(f"{event['RequestType']} of {endpoint_name}")
    try:
        given = _given_before(event, endpoint_name, context) or answered_at_once(event, context)
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: CloudFormation must learn of any failure)
        log(f"{error!r}")
        words = f"the property {error} is missing" if isinstance(error, KeyError) else f"{error}" or repr(error)
        given = Answer(failed_because=f"The sea trial's request failed: {words}")
    if given is not None:
        _respond(event, endpoint_name, given, context)


def receive_lost(context: TrialContext) -> None:
    """Take the requests again that have no answer; what can't be answered now, the next sweep takes."""
    for event in lost_requests(context.store, context.now_s()):
        log(f"sweep: {event['RequestType']} {event['RequestId']} has no answer: it is taken again")
        try:
            receive(event, context)
        except UnavailableError as unavailable:
            log(f"sweep: {event['RequestId']} is not answered: {unavailable}")


def _given_before(event: CustomResourceEvent, endpoint_name: str, context: TrialContext) -> Answer | None:
    """Note a request, and return what an earlier delivery of it was answered; `None` when there was none.

    CloudFormation's patience, and with it the trial's budget, begins with the note: whoever made it may have died.
    """
    store, request_id = context.store, event["RequestId"]
    try:
        first_seen_s(store, endpoint_name, request_id, note_request(store, event, context.now_s()))
        return given_before(store, endpoint_name, request_id)
    except UnavailableError as unavailable:
        log(f"whether {request_id} came before is unknown: {unavailable}")
        return None


def _respond(event: CustomResourceEvent, endpoint_name: str, given: Answer, context: TrialContext) -> None:
    """Answer a request once; where this can't be noted, CloudFormation gets its answer all the same."""
    store, request_id = context.store, event["RequestId"]
    try:
        unsent = unsent_answer(store, endpoint_name, request_id, given)
    except UnavailableError as unavailable:
        log(f"the answer to {request_id} is not noted: {unavailable}")
        unsent = given
    if unsent is not None:
        send_answer(event, unsent, context.respond, bucket=context.bucket)
        note_sent(store, endpoint_name, request_id)


def answered_at_once(event: CustomResourceEvent, context: TrialContext) -> Answer | None:
    """Return the answer to a request; `None` when the workflow gives it.

    Raises:
        UnavailableError: AWS did not answer, or the owner can't be written.
        DirectionUnknownError: It is not known whether the stack goes forward or back.
        KeyError: A property is missing.
        ValueError: The endpoint's name is none.
    """
    if event["RequestType"] == "Delete":
        return deleted(event, context)
    if endpoint_of(event) == UNKNOWN_ENDPOINT:
        raise ValueError("the property EndpointName is missing, or is no name of an endpoint")
    properties = read_properties(event["ResourceProperties"])
    if restarted(event, properties, context):
        return None
    answer = candidate_answer if properties.phase == "candidate" else deployed_answer
    return answer(event, properties, context)


class ShareCall(TypedDict):
    """One call of the function as a worker."""

    Order: OrderRef
    Share: WorkerShare


def load_worker_share(call: ShareCall, context: TrialContext) -> WorkerShare:
    """Load one share and write its tally, or why there is none; a share that was loaded already is not loaded again.

    Where the endpoint's documents were removed, it writes nothing more.
    """
    part, ref = call["Share"], call["Order"]
    order = read_order(context.store, ref["EndpointName"], ref["RequestId"])
    if order is None:
        return part
    trial = Trial(order, context, ownership_of(ref, context))
    this, ownership = trial.round(part["Round"]), trial.ownership
    key = this.tally_key(part["Worker"])
    if context.store.read(key) is not None:
        return part
    text = _loaded(order, this, part, ownership, context)
    ownership.check()
    if not ownership.forgotten:
        context.store.write(key, text)
    return part


def _loaded(order: Order, this: LoadPhase, part: WorkerShare, ownership: Ownership, context: TrialContext) -> str:
    late = False
    try:
        if (stop := ownership.check()) is not None:
            return error_document(RuntimeError(stop.because), late=False)
        share_order, progress = this.share(part["Worker"]), this.progress()
        late = share_order.workers > 1 and context.now_s() > share_order.start_at_epoch_s
        request = live_request(order.trial_request(context.region), progress)
        with (
            context.repeat_meanwhile(ownership.should_stop),
            context.guarded(request, lambda: ownership.stopped) as should_stop,
        ):
            load = FunctionShare(
                request=request,
                progress=progress,
                level=this.level(),
                share=share_order,
                now_s=context.now_s(),
                left_s=context.ends_s - context.now_s() - PAUSE_MARGIN_S,
                should_stop=should_stop,
            )
            return write_document(context.load(load))
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: the step that merges must learn of any failure)
        return error_document(error, late=late or isinstance(error, LateStartError))
