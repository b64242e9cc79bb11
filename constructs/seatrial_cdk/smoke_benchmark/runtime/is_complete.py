"""Looks for the trial's document, keeps the trial going until there is one, and tells CloudFormation what it says."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.bench.result import TrialResult
from seatrial.errors import BenchError
from seatrial.printable import printable
from seatrial.secrets import redacted
from seatrial_cdk.smoke_benchmark.runtime.attributes import UNKNOWN, measured_attributes, unmeasured_attributes
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.deletion import end_deletion
from seatrial_cdk.smoke_benchmark.runtime.evidence import level_sentence
from seatrial_cdk.smoke_benchmark.runtime.fleet_start import trial_start
from seatrial_cdk.smoke_benchmark.runtime.next_run import keep_going
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import aws_copy_scaling, resume
from seatrial_cdk.smoke_benchmark.runtime.trial_store import results_bucket, trial_key
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import Completion, CustomResourceEvent, TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import CopyScaling
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

OVERDUE_MARGIN_S = 240.0  # proof, pauses between runs, and one run that died
MAX_REASON_CHARACTERS = 700  # with an S3 URI behind it, less than the 1 KB that consoles show of a reason
DELETED = "a rollback of the creation deletes the result"


class TrialNotPassedError(Exception):
    """The deployment is to be rolled back; the message is what CloudFormation shows: why, and where to read more.

    Args:
        why: What is wrong.
        where: Where to read more, or why there will be nothing.
    """

    def __init__(self, why: str, where: str) -> None:
        why = printable(redacted(why))
        whole = len(why) <= MAX_REASON_CHARACTERS
        super().__init__(f"{why if whole else f'{why[: MAX_REASON_CHARACTERS - 1]}…'} ({where})")


class Starter(Protocol):
    """Starts a run of a trial and returns at once."""

    def start(self, order: TrialOrder) -> None:
        """Start it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is beside this function: the documents, the scaling of copies, and what starts runs."""

    store: TrialStore
    scaling: CopyScaling
    starter: Starter


def handler(event: CustomResourceEvent, _context: object) -> Completion:
    """Answer the provider framework."""
    surroundings = Surroundings(store=results_bucket(), scaling=aws_copy_scaling(), starter=trial_start())
    return respond(event, surroundings, now_s=time.time())


def respond(event: CustomResourceEvent, surroundings: Surroundings, *, now_s: float) -> Completion:
    """Complete when there is nothing to wait for, or when the trial's document is there and lets the stack go on.

    Until then a run that has paused, or whose function died, is followed by the next one. Whatever the final answer
    is, scaling is as it was before the trial: a function that died has left it suspended.

    The framework takes an error for the final answer, so a call of AWS that fails is made again at the next look, as
    long as there is one: neither may it fail a trial that was passed, nor a deployment that only reports.

    Raises:
        TrialNotPassedError: In mode `rollback`, when the trial was not passed, could not run, or is overdue.
    """
    if event["RequestType"] == "Delete":
        return end_deletion(event, surroundings.store, surroundings.scaling, now_s=now_s)
    if "StartedAt" not in event:
        return {"IsComplete": True}
    properties = TrialProperties.of(event["ResourceProperties"])
    try:
        return _looked(event, properties, surroundings, now_s)
    except UnavailableError as unavailable:
        if _overdue(event, properties, now_s):
            return _failed(event, properties, f"{unavailable}", UNKNOWN)
        sys.stdout.write(redacted(f"to be looked at again: {unavailable}\n"))
        return {"IsComplete": False}


def _looked(
    event: CustomResourceEvent, properties: TrialProperties, surroundings: Surroundings, now_s: float
) -> Completion:
    store, key = surroundings.store, trial_key(properties, event["RequestId"])
    text = store.read(key)
    why_not = "" if text is not None else _why_no_more(event, properties, surroundings, now_s)
    if text is None and not why_not:
        return {"IsComplete": False}
    resume(surroundings.scaling, store, properties, event["RequestId"])
    if text is None:
        return _failed(event, properties, why_not, UNKNOWN)
    return _concluded(event, properties, text, store.uri(key))


def _why_no_more(
    event: CustomResourceEvent, properties: TrialProperties, surroundings: Surroundings, now_s: float
) -> str:
    """Say why there will be no document; empty while there may be one."""
    if _overdue(event, properties, now_s):
        waited_s = now_s - event["StartedAt"]
        return f"no answer after {waited_s:.0f} s, the budget was {properties.budget_s:.0f} s"
    step = keep_going(event, properties, surroundings.store, now_s=now_s)
    if step.order is not None:
        sys.stdout.write(redacted(f"run {step.order['Run']}: {step.because}\n"))
        surroundings.starter.start(step.order)
        return ""
    return step.because


def _overdue(event: CustomResourceEvent, properties: TrialProperties, now_s: float) -> bool:
    return now_s - event["StartedAt"] > properties.budget_s + OVERDUE_MARGIN_S


def _concluded(event: CustomResourceEvent, properties: TrialProperties, text: str, uri: str) -> Completion:
    document = json.loads(text)
    if "error" in document:
        return _failed(event, properties, f"{document['error']}", uri)
    try:
        result = TrialResult.from_json(text)
    except BenchError as unreadable:
        return _failed(event, properties, f"another release wrote its result: {unreadable}", uri)
    if properties.mode == "rollback" and not _may_stay(result):
        outcome = "failed" if result.verdict.status == "fail" else "was inconclusive"
        message = f"The sea trial of {properties.endpoint_name} {outcome}: {result.verdict.because}"
        raise TrialNotPassedError(f"{message}{_numbers(event, result)}", _where(event, uri))
    return {"IsComplete": True, "Data": measured_attributes(result, uri)}


def _may_stay(result: TrialResult) -> bool:
    """Tell whether mode `rollback` lets this verdict stay: a pass, or one that proves nothing where that is allowed."""
    status = result.verdict.status
    return status == "pass" or (status == "inconclusive" and result.request.gate.on_inconclusive == "pass")


def _numbers(event: CustomResourceEvent, result: TrialResult) -> str:
    """Tell what was measured where nothing else will: the rollback of a creation empties the bucket of results."""
    if event["RequestType"] != "Create":
        return ""
    return "".join(f"; {level_sentence(level)}" for level in result.levels)


def _where(event: CustomResourceEvent, uri: str) -> str:
    """Say where the result lies, or that it will not stay."""
    return DELETED if event["RequestType"] == "Create" and uri != UNKNOWN else f"result: {uri}"


def _failed(event: CustomResourceEvent, properties: TrialProperties, message: str, uri: str) -> Completion:
    if properties.mode == "rollback":
        why = f"The sea trial of {properties.endpoint_name} could not be made: {message}"
        raise TrialNotPassedError(why, _where(event, uri))
    attributes = unmeasured_attributes(properties.fallback_target, verdict="error", uri=uri)
    return {"IsComplete": True, "Data": attributes}
