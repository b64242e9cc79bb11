"""What nobody else ended, found on a schedule: unanswered requests, candidates that cost money, suspended scale-in.

A candidate and a suspension are in use while the request that made them owns its endpoint and its trial is not over.
Of everything else the sweep makes an end: after a cancelled update, a rollback, a deletion, or when every function of a
trial has died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_base.bounds import LONGEST_ANSWER_S
from seatrial_cdk.trial_service.runtime.components import candidate_name, remove
from seatrial_cdk.trial_service.runtime.dead_execution import bury, is_answered
from seatrial_cdk.trial_service.runtime.log import log
from seatrial_cdk.trial_service.runtime.ownership import read_owner
from seatrial_cdk.trial_service.runtime.scaling import every_held, restore
from seatrial_cdk.trial_service.runtime.store import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.dead_execution import Execution
    from seatrial_cdk.trial_service.runtime.scaling import HeldScaling
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings

LONGEST_ORDER_S: Final = LONGEST_ANSWER_S + 300.0
"""CloudFormation waits an hour for an answer; five minutes later nothing of an order is in use."""


def sweep(around: Surroundings) -> None:
    """Answer for dead executions, and end what nothing uses any more; what can't be ended now, the next sweep ends.

    Raises:
        UnavailableError: Executions, candidates or suspensions can't be listed.
    """
    for execution in around.workflow.dead(around.now_s() - LONGEST_ORDER_S):
        _sweep_execution(execution, around)
    for name in around.components.candidates():
        if name.startswith(f"{around.environment}-"):
            _sweep_candidate(name, around)
    for held in every_held(around.store):
        _sweep_held(held, around)


def _sweep_execution(execution: Execution, around: Surroundings) -> None:
    try:
        if not is_answered(execution, around):
            log(f"sweep: nobody answered for {execution['input']}")
            bury(execution, around)
    except UnavailableError as unavailable:
        log(f"sweep: {execution['input']} is not answered: {unavailable}")


def _sweep_candidate(name: str, around: Surroundings) -> None:
    try:
        if not _is_used(name, around):
            log(f"sweep: candidate {name} is removed")
            remove(around.components, name)
    except UnavailableError as unavailable:
        log(f"sweep: candidate {name} stays: {unavailable}")


def _is_used(name: str, around: Surroundings) -> bool:
    """Tell whether the order that made a candidate owns its endpoint, and is not over."""
    found = around.components.describe(name)
    owner = None if found is None else read_owner(around.store, found.endpoint_name)
    if found is None or owner is None or candidate_name(found.endpoint_name, owner.request_id) != name:
        return False
    is_over = bool(owner.document) and around.store.read(owner.document) is not None
    return not is_over and around.now_s() - owner.seen_at_s < LONGEST_ORDER_S


def _sweep_held(held: HeldScaling, around: Surroundings) -> None:
    """Restore the scaling of a component whose stack is not updated any more."""
    try:
        status = around.stack_status(held.stack_id)
        if not status.endswith("IN_PROGRESS") or "CLEANUP" in status:
            log(f"sweep: the scaling of {held.component} is restored")
            restore(around.scaling, around.store, around.components, held)
    except UnavailableError as unavailable:
        log(f"sweep: the scaling of {held.component} stays suspended: {unavailable}")
