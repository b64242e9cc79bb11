"""The custom resource `Candidate`: a new configuration is tried beside the live one, before anything that serves moves.

It answers with the copies that the component's update is to carry. While CloudFormation gets the same copies as
before, and nothing else of the component changes, it does not touch the component. Whether a candidate has room beside
the copies that serve depends on accelerators alone.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from seatrial_base.bounds import LONGEST_TRIAL_S
from seatrial_base.catalog.symptoms import is_lack_of_capacity
from seatrial_base.tags import candidate_tags
from seatrial_cdk.trials.runtime.attributes import NOT_TRIED, copies_attributes
from seatrial_cdk.trials.runtime.components import accelerators_of, read_specification
from seatrial_cdk.trials.runtime.custom_resource import (
    DirectionUnknownError,
    before_update,
    end_hold,
    end_trials,
    is_unchanged,
    remove_candidates,
    start,
    touches_component,
)
from seatrial_cdk.trials.runtime.log_groups import log
from seatrial_cdk.trials.runtime.order import (
    Answer,
    CarriedCopies,
    configuration_of,
    passed_key,
    read_copies,
    write_copies,
)
from seatrial_cdk.trials.runtime.properties import read_properties
from seatrial_cdk.trials.runtime.scaling import read_held
from seatrial_cdk.trials.runtime.store import UnavailableError, no_room_key, run_key
from seatrial_load.documents.result import StartTime
from seatrial_load.documents.strict_json import read_document, write_document

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.components import Components, ComponentState
    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent, Manner, Order
    from seatrial_cdk.trials.runtime.properties import TrialProperties


REFUSED_S: Final = 300.0
"""How long a refused creation is requested again: while the endpoint's instances change, SageMaker takes none."""
TAGS_S: Final = 300.0
"""How long the tags of a candidate are waited for: before IAM sees them, requests to it are denied."""


LATEST_LOOK_S: Final = 15
"""Between two looks at what SageMaker is doing, at most."""
SOON_S: Final = 900.0
"""How soon after a component's last change the order of its first trial comes, at most."""


class OldSdkError(Exception):
    """The function's SDK can't send what a candidate needs; the message says what, and how to fix it."""


class CandidateFailedError(Exception):
    """The candidate did not come into service; the message says why."""


class NoRoomError(Exception):
    """No instance has room for a candidate, and none may be added; the message says why."""


class CandidateStartingError(Exception):
    """The candidate is not in service yet."""


def candidate_answer(event: CustomResourceEvent, properties: TrialProperties, context: TrialContext) -> Answer | None:
    """Return the answer to a creation or update of `Candidate`; `None` when the workflow gives it.

    Where nothing serves yet, or the endpoint gets another name, there are no users to spare: the component itself is
    tried once it is created. A rollback goes back to what was deployed before: the candidate goes, and no trial is
    made.

    Raises:
        UnavailableError: AWS did not answer, or the owner can't be written.
        DirectionUnknownError: The stack's status can't be read, and the update would move the component.
        OldSdkError: The function can't send the specification of a candidate.
    """
    try:
        live = context.components.describe(properties.inference_component_name)
    except UnavailableError:
        if event["RequestType"] != "Update" or "ROLLBACK" not in context.stack_status(event["StackId"]):
            raise
        return _carry_live(event, context, None)  # a rollback must go on
    if live is None:
        return _carry_planned(properties, context, _before(event, properties, context), event["RequestId"])
    if event["RequestType"] == "Update":
        if _goes_back(event, context, live):
            return _gone_back(event, properties, context, live)
        if is_unchanged(event) and not touches_component(event) and _is_known(properties, context):
            return _carry_live(event, context, None)
    return _started(properties, event, context, live)


def _before(event: CustomResourceEvent, properties: TrialProperties, context: TrialContext) -> ComponentState | None:
    """Return the component whose users the new one is to take over; `None` when there is none."""
    for name in (before_update(event).inference_component_name, *properties.replaces):
        if name and (state := context.components.describe(name)) is not None:
            return state
    return None


def _goes_back(event: CustomResourceEvent, context: TrialContext, live: ComponentState) -> bool:
    try:
        return "ROLLBACK" in context.stack_status(event["StackId"])
    except UnavailableError as unavailable:
        if not _moves(event, live):
            return True  # the same in either direction
        raise DirectionUnknownError(f"{live.endpoint_name}: {unavailable}") from unavailable


def _started(
    properties: TrialProperties, event: CustomResourceEvent, context: TrialContext, live: ComponentState
) -> Answer | None:
    """Start the workflow, of a trial or to carry the copies alone; where nothing is to be done, answer."""
    manner: Manner = "candidate" if properties.update == "candidate" and not is_unchanged(event) else "carry"
    if manner == "candidate" and context.store.read(passed_key(properties)) is not None:
        manner = "carry"
    if manner == "candidate":
        _check_sdk(properties, context)
    if manner == "candidate" or _moves(event, live) or not _is_known(properties, context):
        return start(event, properties, context, manner=manner)
    return _carry_live(event, context, live)


def _check_sdk(properties: TrialProperties, context: TrialContext) -> None:
    """Find whether the function can send the specification of a candidate."""
    unknown = context.components.unknown_members(read_specification(properties.specification))
    if unknown:
        raise OldSdkError(
            f"the boto3 of the trial function does not know {', '.join(unknown)}: deploy the trial service of this "
            f"release (seatrial-{properties.environment}-trials), which brings the model of the API, or set "
            "trial.update to in_place"
        )


def _is_known(properties: TrialProperties, context: TrialContext) -> bool:
    """Tell whether the copies of the last response to CloudFormation are known."""
    carried = read_copies(context.store, properties.endpoint_name)
    return carried is not None and carried.is_certain


def _moves(event: CustomResourceEvent, live: ComponentState) -> bool:
    """Tell whether CloudFormation will update the component."""
    specification = read_specification(read_properties(event["ResourceProperties"]).specification)
    return not live.runs(specification) or (event["RequestType"] == "Update" and touches_component(event))


def _carry_planned(
    properties: TrialProperties, context: TrialContext, before: ComponentState | None, request_id: str
) -> Answer:
    """Answer for a component that is about to be created: the planned copies, and no fewer than its users have now.

    There is room for `max_copies` at most.
    """
    copies = min(properties.most_copies, max(properties.copy_count, 0 if before is None else before.copies))
    carried = CarriedCopies(copies=copies, is_new=True, previous=copies, request_id=request_id)
    write_copies(context.store, properties.endpoint_name, carried)
    return Answer(data=copies_attributes(copies, NOT_TRIED))


def _carry_live(event: CustomResourceEvent, context: TrialContext, live: ComponentState | None) -> Answer:
    return Answer(data=copies_attributes(keep_copies(event, context, live), NOT_TRIED))


def _gone_back(
    event: CustomResourceEvent, properties: TrialProperties, context: TrialContext, live: ComponentState
) -> Answer:
    """Answer a rollback: the candidate goes, and where the component was not touched, scaling is as before."""
    with suppress(UnavailableError):
        end_trials(event, properties.endpoint_name, context)
        remove_candidates(context, properties.endpoint_name, until_gone=False)
    if live.runs(read_specification(properties.specification)):
        end_hold(context, properties.endpoint_name)
    return Answer(data=copies_attributes(keep_copies(event, context, live, going_back=True), NOT_TRIED))


def keep_copies(
    event: CustomResourceEvent, context: TrialContext, live: ComponentState | None, *, going_back: bool = False
) -> int:
    """Return the copies of the response, and keep them: the last ones, unless CloudFormation updates the component.

    A component that is updated keeps the copies that it has at this moment. Which number CloudFormation has in mind is
    not known after a rollback, and where no document has it: the next update then carries the live ones. Called again
    for the same request, it replaces what it kept, and not the response before.
    """
    properties = read_properties(event["ResourceProperties"])
    carried = read_copies(context.store, properties.endpoint_name)
    if carried is None:
        held = read_held(context.store, properties.endpoint_name)
        copies = max(properties.copy_count, 0 if held is None else held.copies)
        carried = CarriedCopies(copies=copies, is_new=False, previous=copies, is_certain=False)
    if carried.request_id == event["RequestId"] and not going_back:
        usual, is_certain = carried.previous, carried.previous_is_certain
    else:
        usual, is_certain = carried.copies, carried.is_certain
    moves = live is not None and (_moves(event, live) or not is_certain)
    copies = max(1, live.copies) if live is not None and moves else usual
    previous = carried.previous if going_back else usual
    kept = CarriedCopies(
        copies=copies,
        is_new=False,
        previous=previous,
        is_certain=not going_back or (previous == copies and carried.previous_is_certain),
        request_id=event["RequestId"],
        previous_is_certain=is_certain,
    )
    write_copies(context.store, properties.endpoint_name, kept)
    return copies


def await_candidate(order: Order, context: TrialContext) -> None:
    """Create the candidate of an order, and find it in service.

    Raises:
        CandidateStartingError: It is not in service yet.
        NoRoomError: No instance has room for it.
        CandidateFailedError: It did not come into service, or not in time.
        UnavailableError: AWS did not answer.
    """
    properties, name = order.properties, order.candidate
    state = context.components.describe(name)
    if state is None:
        _create(order, context)
        raise CandidateStartingError(f"{name} is created")
    if state.status == "Failed":
        error = NoRoomError if state.lacks_capacity else CandidateFailedError
        raise error(f"the candidate component {name} failed: {state.failure_reason}")
    if state.status != "InService" or not state.current_copies:
        _check_start(order, context, state)
        raise CandidateStartingError(f"{name} is {state.status}")
    text = context.store.read(_before_key(order))
    if text is not None:
        _keep_start(order, context, _Before.of(text), state)
    born_s = order.started_at_s if text is None else _Before.of(text).at_s
    if context.now_s() - born_s < TAGS_S and not context.components.tags(state):
        # The trial's budget begins after this wait: a good configuration must not fail for a young tag.
        raise CandidateStartingError(f"the tags of {name} can't be seen yet")
    key = run_key(properties.endpoint_name, order.request_id, "started")
    context.store.create(key, json.dumps({"at_s": context.now_s()}))


def _keep_start(order: Order, context: TrialContext, before: _Before, state: ComponentState) -> None:
    """Keep how long a candidate took from its creation until it was first seen in service."""
    if context.store.read(_start_key(order)) is None:
        added = context.components.capacity(state.endpoint_name, state.variant_name).instances - before.instances
        because = f"a candidate beside the live copies, seen in service at most {LATEST_LOOK_S} s late"
        _write_start(order, context, (before.at_s, context.now_s()), because, added=max(0, added))


def keep_first_start(order: Order, context: TrialContext) -> None:
    """Keep how long the component of a new endpoint took to start, by SageMaker's own times; no trial fails for it.

    SageMaker tells no moment in service. The last change is it where the order came at once after that.
    """
    properties = order.properties
    if order.event["RequestType"] != "Create" or properties.is_existing:
        return
    with suppress(UnavailableError):
        state = context.components.describe(properties.inference_component_name)
        if state is None or state.created is None or state.changed is None:
            return
        began_s, ended_s = state.created.timestamp(), state.changed.timestamp()
        longest_s = properties.start_s + properties.instance_s
        if 0 < ended_s - began_s <= longest_s and 0 <= order.started_at_s - ended_s <= SOON_S:
            because = "the first of its endpoint, image included, from CreationTime to LastModifiedTime"
            _write_start(order, context, (began_s, ended_s), because)


def _write_start(order: Order, context: TrialContext, span: tuple[float, float], because: str, added: int = 0) -> None:
    (began_s, ended_s), key = span, _start_key(order)
    created_at = datetime.fromtimestamp(began_s, UTC).isoformat(timespec="seconds")
    start = StartTime(created_at=created_at, seconds=ended_s - began_s, instances_added=added, because=because)
    context.store.create(key, write_document(start))


def read_start(order: Order, context: TrialContext) -> StartTime | None:
    """Return how long the copy on trial took to start; None where nobody saw it."""
    text = context.store.read(_start_key(order))
    return None if text is None else read_document(StartTime, text, where="start")


def _start_key(order: Order) -> str:
    return run_key(order.properties.endpoint_name, order.request_id, "start")


def _check_start(order: Order, context: TrialContext, state: ComponentState) -> None:
    """Find whether a candidate may go on starting.

    AWS often says nothing of a lack of capacity: the component stays `Creating`, for hours (GitHub,
    aws/amazon-sagemaker-examples issue 3432). One that needs an instance, and for which none came, has no room.
    """
    text, properties, now_s = context.store.read(_before_key(order)), order.properties, context.now_s()
    before = _Before(at_s=order.started_at_s) if text is None else _Before.of(text)
    wanted_s = properties.start_s + (0.0 if before.is_free else properties.instance_s)
    if now_s <= min(before.at_s + wanted_s, order.started_at_s + LONGEST_TRIAL_S - properties.budget_s):
        return
    late = f"the candidate component {state.name} was not in service after {now_s - before.at_s:.0f} s"
    if not before.is_free:
        capacity = context.components.capacity(state.endpoint_name, state.variant_name)
        if capacity.instances <= before.instances:
            raise NoRoomError(f"{late}, and no instance was added for it")
    raise CandidateFailedError(late)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """When a candidate was created, how many instances there were, and whether they surely had room for it."""

    at_s: float
    instances: int = 0
    is_free: bool = False

    @classmethod
    def of(cls, text: str) -> _Before:
        """Read it from JSON."""
        return cls(**json.loads(text))


def _before_key(order: Order) -> str:
    return run_key(order.properties.endpoint_name, order.request_id, "created")


def _create(order: Order, context: TrialContext) -> None:
    """Create the candidate; what SageMaker refuses for the moment is requested again for five minutes.

    A candidate that surely has no room is not created: while it waits for an instance it can't be deleted.
    """
    properties = order.properties
    live = context.components.describe(properties.inference_component_name)
    if live is None:
        raise CandidateFailedError(f"the component {properties.inference_component_name} is gone")
    specification = read_specification(properties.specification)
    room = room_beside(
        context.components,
        live,
        environment=properties.environment,
        needed=accelerators_of(specification),
        accelerators=properties.accelerators,
    )
    if room.is_full:
        raise NoRoomError(room.in_words)
    before = _Before(at_s=context.now_s(), instances=room.instances, is_free=room.is_free)
    # Before the creation: a function that dies between both leaves a time without a candidate, and no candidate without
    # a time, whose start would be waited for from the order on.
    context.store.write(_before_key(order), json.dumps(asdict(before)))
    tags = candidate_tags(properties.environment, properties.endpoint_name, order.request_id)
    try:
        context.components.create(order.candidate, live, specification, tags)
    except UnavailableError as refused:
        if is_lack_of_capacity(f"{refused}"):
            raise NoRoomError(f"{refused}") from refused
        if context.now_s() - order.started_at_s > REFUSED_S:
            raise
        raise CandidateStartingError(f"{refused}") from refused
    log(f"{order.candidate}: created beside {live.name}")


def keep_no_room(order: Order, context: TrialContext, because: str) -> None:
    """Keep that there was no room for a candidate of this configuration: it is tried in place, once it is deployed."""
    properties = order.properties
    context.store.write(no_room_key(properties.endpoint_name), json.dumps(configuration_of(properties)))
    log(f"no room for a candidate: {because}")


def started_at_s(order: Order, context: TrialContext) -> float:
    """Return since when an order is measured: a candidate's start is not of its budget."""
    text = context.store.read(run_key(order.properties.endpoint_name, order.request_id, "started"))
    return order.started_at_s if text is None else float(json.loads(text)["at_s"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The accelerators of a variant, and what a copy more needs of them.

    Attributes:
        instances: In service.
        most_instances: That it may have.
        accelerators: Of one instance; 0 where it is not known.
        used: By all copies on it.
        leaving: Of these, by copies that are being deleted.
    """

    instances: int
    most_instances: int
    accelerators: int
    used: int
    leaving: int = 0
    needed: int

    @property
    def is_known(self) -> bool:
        """Whether accelerators decide: not of instances without any."""
        return self.accelerators > 0 and self.needed > 0

    @property
    def staying(self) -> int:
        """Accelerators of the copies that are not being deleted."""
        return self.used - self.leaving

    @property
    def is_full(self) -> bool:
        """Whether not even the most instances have accelerators for it. Memory and processors are not looked at."""
        return self.is_known and self.most_instances * self.accelerators - self.staying < self.needed

    @property
    def is_free(self) -> bool:
        """Whether an instance in service surely has room: however copies lie, one has as many free accelerators."""
        free = self.instances * self.accelerators - self.used
        return self.is_known and free > self.instances * (self.needed - 1)

    @property
    def in_words(self) -> str:
        """How much there is, in words."""
        most = self.most_instances * self.accelerators
        return (
            f"{self.most_instances} instances at most have {most} accelerators, copies use {self.staying} of them, "
            f"and one more needs {self.needed}"
        )


def room_beside(
    components: Components, live: ComponentState, *, environment: str, needed: int, accelerators: int
) -> Room:
    """Ask what is used on the variant of a component.

    Args:
        environment: The environment's name: other components than its own may not be described, and count for nothing.
    """
    capacity = components.capacity(live.endpoint_name, live.variant_name)
    names = [name for name in components.on_endpoint(live.endpoint_name) if name.startswith(f"{environment}-")]
    states = (components.describe(name) for name in names)
    on_variant = [each for each in states if each is not None and each.variant_name in {live.variant_name, ""}]
    accelerators_used = [(each.copies * each.accelerators, each.status == "Deleting") for each in on_variant]
    return Room(
        instances=capacity.instances,
        most_instances=capacity.most,
        accelerators=accelerators,
        used=sum(used for used, _ in accelerators_used),
        leaving=sum(used for used, is_leaving in accelerators_used if is_leaving),
        needed=needed,
    )
