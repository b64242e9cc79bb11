"""Requests of CloudFormation for the two custom resources of an endpoint, and the responses that need no workflow.

`Candidate` comes before endpoint and component are updated (`candidate`), `Trial` after. A request that needs a trial
starts the workflow, whose last step answers it (`answer`); every other one is answered by the call that takes it.
Whatever goes wrong here is an answer too, so that CloudFormation never waits for nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import BenchError
from seatrial_base.tags import is_candidate_name
from seatrial_cdk.trials.runtime.attributes import (
    copies_attributes,
    measured_attributes,
    unmeasured_attributes,
)
from seatrial_cdk.trials.runtime.components import TagsUnseenError, candidate_of, remove_candidate
from seatrial_cdk.trials.runtime.log_groups import log, log_group_name, log_groups_of
from seatrial_cdk.trials.runtime.order import (
    UNKNOWN_ENDPOINT,
    Answer,
    Attributes,
    CustomResourceEvent,
    Manner,
    Order,
    endpoint_of,
    has_no_room,
    latest_key,
    passed_key,
    read_copies,
    trial_key,
)
from seatrial_cdk.trials.runtime.ownership import STOPPED, read_owner, take_ownership
from seatrial_cdk.trials.runtime.properties import read_what_is_there
from seatrial_cdk.trials.runtime.scaling import read_held, restore_scaling
from seatrial_cdk.trials.runtime.store import UnavailableError, released_key, run_key
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.properties import TrialProperties
    from seatrial_cdk.trials.runtime.store import TrialStore


DEPLOYED: Final = attrgetter("plan_digest", "endpoint_config_name", "model_name", "specification")
"""What distinguishes deployed configurations."""
STOP_WAIT_S = 60.0  # a trial looks at the owner every 10 s, and stops at once
STOP_LOOK_S = 2.0
ANSWER_S = 30.0  # of the function's time, for the answer
QUIET_S: Final = 60.0
"""Without a request for this long, the endpoint is not in use: clients look at the alias again after 30 s."""
LONGEST_DRAIN_S: Final = 600.0
LOOK_S: Final = 10.0


class DirectionUnknownError(Exception):
    """It is not known whether the stack goes forward, where a trial is due, or back, where one must not be made."""


def deployed_answer(event: CustomResourceEvent, properties: TrialProperties, context: TrialContext) -> Answer | None:
    """Return the answer to a creation or update of `Trial`; `None` when the workflow gives it.

    A trial is due on Create and on an Update that deploys something else. The same plan may be deployed again, by a
    release that renders it otherwise: plan, endpoint config, model and specification must all be the same to be what
    was tried. What an update deploys was tried as a candidate before: it is verified only, or, where there was no room
    for a candidate, loaded beside its users.

    CloudFormation's own rollback is no reason for a trial: it goes back to what was deployed before, whose result is
    known or was never requested, and a trial that failed there would leave the stack stuck. Nor may an unreadable
    result leave it stuck there. Every request becomes the owner: a trial that still runs for the one before stops.

    Raises:
        UnavailableError: Going forward, the stored result can't be read, and with it the target of scaling; or the
            owner can't be written.
        DirectionUnknownError: The stack's status can't be read, and no stored pass answers in both directions.
    """
    data = _known(event, properties, context) if event["RequestType"] == "Update" else None
    if data is None:
        return start(event, properties, context, manner=_manner(event, properties, context.store))
    with suppress(UnavailableError):
        take_ownership(context.store, properties.endpoint_name, event["RequestId"], document="", now_s=context.now_s())
    return Answer(data=data)


def _manner(event: CustomResourceEvent, properties: TrialProperties, store: TrialStore) -> Manner:
    """Return how a deployed configuration is tried: loaded while it is not in use, else beside users or not at all."""
    if properties.is_existing:
        return "in_place" if properties.update == "in_place" else "verify"
    carried = read_copies(store, properties.endpoint_name)
    if (event["RequestType"] == "Create" or is_renamed(event)) and (carried is None or carried.is_new):
        return "load"
    if store.read(passed_key(properties)) is not None:
        return "verify"
    return "in_place" if properties.update == "in_place" or has_no_room(store, properties) else "verify"


def before_update(event: CustomResourceEvent) -> TrialProperties:
    """Return the properties before an update, of whatever release; empty ones on any other request."""
    return read_what_is_there(event.get("OldResourceProperties", {}))


def is_renamed(event: CustomResourceEvent) -> bool:
    """Tell whether an update moves to another endpoint, which is not in use yet."""
    return before_update(event).endpoint_name not in {"", endpoint_of(event)}


def touches_component(event: CustomResourceEvent) -> bool:
    """Tell whether CloudFormation updates the component for another reason than its specification: policy or tags."""
    return before_update(event).component != read_what_is_there(event["ResourceProperties"]).component


def start(
    event: CustomResourceEvent, properties: TrialProperties, context: TrialContext, *, manner: Manner
) -> Answer | None:
    """Start the workflow of a request.

    A repeated delivery of the request starts nothing new and orders nothing else: an execution is named after its
    request. One that comes after a later request is not carried out.
    """
    store, request_id = context.store, event["RequestId"]
    document, now_s = trial_key(properties, request_id), context.now_s()
    owner = take_ownership(
        store, properties.endpoint_name, request_id, document=document, now_s=now_s, budget_s=properties.budget_s
    )
    # A delivery may come after the request that follows it: what it would start is no longer requested.
    if owner.request_id != request_id:
        return not_made(properties, STOPPED)
    live_config = context.components.live_config(properties.endpoint_name) if manner == "candidate" else ""
    order = Order(event, owner.seen_at_s, manner, live_config)
    store.create(run_key(properties.endpoint_name, request_id, "request"), json.dumps(asdict(order)))
    try:
        context.workflow.start(properties.endpoint_name, request_id)
    except UnavailableError as unavailable:
        return not_made(properties, f"{unavailable}")
    return None


def restarted(event: CustomResourceEvent, properties: TrialProperties, context: TrialContext) -> bool:
    """Start the workflow of a request that an earlier delivery ordered; tell whether one did, as far as is known."""
    request_id, ordered = event["RequestId"], None
    with suppress(UnavailableError):
        owner = read_owner(context.store, properties.endpoint_name)
        if owner is not None and owner.request_id == request_id:
            ordered = context.store.read(run_key(properties.endpoint_name, request_id, "request"))
    if ordered is not None:
        context.workflow.start(properties.endpoint_name, request_id)
    return ordered is not None


def not_made(properties: TrialProperties, message: str, *, uri: str = "unknown", copies: int | None = None) -> Answer:
    """Return the answer where there is no result: in mode `rollback` the deployment fails, else it stays unverified.

    Before the component is updated it fails in any mode where no copies are known that it could carry.
    """
    is_candidate = properties.phase == "candidate"
    if properties.mode == "rollback" or (is_candidate and copies is None):
        return Answer(
            failed_because=f"The sea trial of {properties.endpoint_name} failed to run: {message} (result: {uri})"
        )
    if is_candidate and copies is not None:
        return Answer(data=copies_attributes(copies, "error", uri))
    return Answer(data=unmeasured_attributes(properties.fallback_target, verdict="error", uri=uri))


def _known(event: CustomResourceEvent, properties: TrialProperties, context: TrialContext) -> Attributes | None:
    """Return the attributes of an update that needs no trial; `None` when it needs one."""
    store = context.store
    try:
        going_back = "ROLLBACK" in context.stack_status(event["StackId"])
    except UnavailableError as unavailable:
        return _known_either_way(event, properties, store, unavailable)
    if going_back or is_unchanged(event):
        end_hold(context, properties.endpoint_name)
    if is_unchanged(event):
        read = _readable if going_back else _stored
        return read(store, latest_key(properties), properties)
    return _gone_back(store, properties) if going_back else None


def end_hold(context: TrialContext, endpoint_name: str) -> None:
    """Restore copies and scaling after an update that failed; what can't be restored now is left to the sweep."""
    try:
        held = read_held(context.store, endpoint_name)
        if held is not None and not restore_scaling(context.scaling, context.store, context.components, held):
            log(f"the sweep restores the scaling of {held.component}: its copies are in transit")
    except UnavailableError as unavailable:
        log(f"the sweep restores the scaling of {endpoint_name}: {unavailable}")


def _gone_back(store: TrialStore, properties: TrialProperties) -> Attributes:
    """Answer a rollback from the passing result of what it goes back to, which is what is released again."""
    key = passed_key(properties)
    with suppress(UnavailableError):
        if text := store.read(key):
            store.write(released_key(properties.endpoint_name), text)
    return _readable(store, key, properties)


def _known_either_way(
    event: CustomResourceEvent, properties: TrialProperties, store: TrialStore, unavailable: UnavailableError
) -> Attributes | None:
    """Answer an update whose direction is unknown.

    What stays the same, and what has passed as it is, is answered from the store: right in both directions. Else in
    mode `report` a trial is started, which can't fail. In mode `rollback` the update fails: going forward, an unproven
    configuration must not stay; going back to one that has never passed, the stack waits for
    `continue-update-rollback`, which asks again.
    """
    if is_unchanged(event):
        return _readable(store, latest_key(properties), properties)
    with suppress(UnavailableError):
        if store.read(passed_key(properties)) is not None:
            return _readable(store, passed_key(properties), properties)
    if properties.mode == "rollback":
        raise DirectionUnknownError(
            f"{properties.endpoint_name}: the stack's state is unknown and no trial of this plan passed before "
            f"({unavailable})"
        ) from unavailable
    return None


def is_unchanged(event: CustomResourceEvent) -> bool:
    """Tell whether an update deploys nothing else."""
    return bool(DEPLOYED(before_update(event)) == DEPLOYED(read_what_is_there(event["ResourceProperties"])))


def _readable(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; what can't be read verifies nothing."""
    try:
        return _stored(store, key, properties)
    except UnavailableError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))


def _stored(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; one that is missing, or of another version's schema, verifies nothing."""
    text = store.read(key)
    if text is None:
        return unmeasured_attributes(properties.fallback_target)
    try:
        return measured_attributes(TrialResult.from_json(text), store.uri(key))
    except BenchError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))


def deleted(event: CustomResourceEvent, context: TrialContext) -> Answer:
    """Stop the endpoint's trial, remove its candidates, restore scaling; a deletion that fails leaves the stack stuck.

    Where it is a creation that is rolled back, later deployments must not be answered from what was never released;
    the trial's own document stays. The properties are those of the resource that goes: where the endpoint was renamed,
    what is stopped and removed is the old name's, once its last requests have ended.
    """
    endpoint_name = endpoint_of(event)
    if endpoint_name != UNKNOWN_ENDPOINT:
        try:
            _end(event, endpoint_name, context)
        except Exception as error:  # noqa: BLE001 (whatever it is, the stack must go)
            log(f"left behind: {error!r}")
    return Answer()


def _end(event: CustomResourceEvent, endpoint_name: str, context: TrialContext) -> None:
    if not end_trials(event, endpoint_name, context):
        return
    try:
        remove_candidates(context, endpoint_name)
    except UnavailableError as unavailable:
        log(f"{endpoint_name} can't be deleted yet: {unavailable}")
    end_hold(context, endpoint_name)
    properties = read_what_is_there(event["ResourceProperties"])
    is_candidate = properties.phase == "candidate"
    if is_candidate:
        await_release(properties, context)
    with suppress(UnavailableError):
        status = context.stack_status(event["StackId"])
        if "ROLLBACK" in status:
            context.store.clear(endpoint_name)
        elif is_candidate and properties.removal == "destroy":
            # The environment keeps nothing, and `Candidate` goes after the containers: their logs are not written
            # again.
            context.logs.delete(log_groups_of(endpoint_name, properties.inference_component_name))
        elif not is_candidate and properties.alias:
            serving = context.serving(properties.alias)
            if serving is not None and serving != endpoint_name:  # users are moving to another endpoint
                await_quiet(properties.inference_component_name, context)


def end_trials(event: CustomResourceEvent, endpoint_name: str, context: TrialContext) -> bool:
    """Make a request the owner that needs no trial, and wait until the one before has stopped.

    Returns:
        Whether it is the owner: not after a later request.
    """
    store, began_s = context.store, context.now_s()
    before = read_owner(store, endpoint_name)
    owner = take_ownership(store, endpoint_name, event["RequestId"], document="", now_s=began_s)
    if owner.request_id != event["RequestId"]:
        return False
    if before is not None and before.document and not before.is_over(began_s):
        while store.read(before.document) is None and context.now_s() - began_s < STOP_WAIT_S:
            context.sleep(STOP_LOOK_S)
        if store.read(before.document) is None:
            context.workflow.stop(before.request_id, STOPPED)
    return True


def remove_candidates(context: TrialContext, endpoint_name: str, *, until_gone: bool = True) -> None:
    """Remove every candidate of an endpoint, and wait until they are gone: with one of them no endpoint can go.

    SageMaker refuses to delete a component that is being created, and what made one is not known before its tags are
    seen: both are waited for as long as this function may run, unless they may stay. The sweep removes what is left.
    Their logs end after a month.

    Raises:
        UnavailableError: It is not known whether one is left, or one is.
    """
    candidates = _candidates_on(context, endpoint_name)
    try:
        context.logs.limit(map(log_group_name, candidates))
    except UnavailableError as unavailable:
        log(f"logs of candidates stay as they are: {unavailable}")
    while left := [name for name in _candidates_on(context, endpoint_name) if not _is_removed(context, name)]:
        states = [context.components.describe(name) for name in left] if not until_gone else []
        if not until_gone and all(state is None or state.is_being_created for state in states):
            return
        if context.now_s() > context.ends_s - ANSWER_S:
            raise UnavailableError(f"{', '.join(left)}: not deleted yet; the sweep deletes them")
        context.sleep(STOP_LOOK_S)


def _candidates_on(context: TrialContext, endpoint_name: str) -> list[str]:
    """Return the names of the candidates on an endpoint, and of what may turn out to be one."""
    names = filter(is_candidate_name, context.components.on_endpoint(endpoint_name))
    return [name for name in names if _may_be_candidate(context, name)]


def _may_be_candidate(context: TrialContext, name: str) -> bool:
    try:
        return candidate_of(context.components, name, context.environment) is not None
    except TagsUnseenError:
        return True


def _is_removed(context: TrialContext, name: str) -> bool:
    try:
        return remove_candidate(context.components, name, context.environment)
    except TagsUnseenError as unseen:
        log(f"{unseen}")
        return False


def await_release(properties: TrialProperties, context: TrialContext) -> None:
    """Wait until AWS has released what a deleted endpoint leaves behind; the roles that it needs for it go later.

    AWS does not report when that is. Where the endpoint stays, as one whose trials are turned off, nothing is waited
    for.
    """
    if properties.release_s <= 0:
        return
    with suppress(UnavailableError):
        if context.components.live_config(properties.endpoint_name):
            return
    context.sleep(max(0.0, min(properties.release_s, context.ends_s - ANSWER_S - context.now_s())))


def await_quiet(component: str, context: TrialContext) -> None:
    """Wait until a component has had no request for a minute: ten minutes at most, and no longer than there is time.

    A component whose metric can't be read is waited for a minute.
    """
    # A function that is still waiting when its time ends gives no answer, and Lambda begins the wait again.
    until_s = min(context.now_s() + LONGEST_DRAIN_S, context.ends_s - ANSWER_S)
    context.sleep(max(0.0, min(QUIET_S, until_s - context.now_s())))
    while context.now_s() < until_s:
        try:
            busy = context.requests_since(component, context.now_s() - QUIET_S)
        except UnavailableError as unavailable:
            log(f"the requests of {component} are unknown: {unavailable}")
            return
        if not busy:
            return
        context.sleep(LOOK_S)
    log(f"{component} is deleted though it still has requests")
