"""Looks for the trial's document and tells CloudFormation what it says."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from seatrial.bench.result import TrialResult
from seatrial_cdk.smoke_benchmark.runtime.attributes import measured_attributes, unmeasured_attributes
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import aws_copy_scaling, resume
from seatrial_cdk.smoke_benchmark.runtime.trial_store import results_bucket, trial_key

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import Completion, CustomResourceEvent
    from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import CopyScaling
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

OVERDUE_MARGIN_S = 120.0
MAX_REASON_CHARACTERS = 700  # with an S3 URI behind it, less than the 1 KB that consoles show of a reason


class TrialNotPassedError(Exception):
    """The deployment is to be rolled back; the message is what CloudFormation shows: why, and where to read more."""

    def __init__(self, why: str, uri: str) -> None:
        whole = len(why) <= MAX_REASON_CHARACTERS
        super().__init__(f"{why if whole else f'{why[: MAX_REASON_CHARACTERS - 1]}…'} (result: {uri})")


def handler(event: CustomResourceEvent, _context: object) -> Completion:
    """Answer the provider framework."""
    return respond(event, results_bucket(), aws_copy_scaling(), now_s=time.time())


def respond(event: CustomResourceEvent, store: TrialStore, scaling: CopyScaling, *, now_s: float) -> Completion:
    """Complete when there is nothing to wait for, or when the trial's document is there and lets the stack go on.

    Whatever the final answer is, scaling is as it was before the trial: a runner that was killed has left it suspended.

    Raises:
        TrialNotPassedError: In mode `rollback`, when the trial was not passed, could not run, or is overdue.
    """
    if event["RequestType"] == "Delete" or "StartedAt" not in event:
        return {"IsComplete": True}
    properties = TrialProperties.of(event["ResourceProperties"])
    key = trial_key(properties, event["RequestId"])
    text = store.read(key)
    waited_s = now_s - event["StartedAt"]
    if text is None and waited_s <= properties.budget_s + OVERDUE_MARGIN_S:
        return {"IsComplete": False}
    resume(scaling, store, properties, event["RequestId"])
    if text is not None:
        return _concluded(properties, text, store.uri(key))
    return _failed(
        properties, f"no answer after {waited_s:.0f} s, the budget was {properties.budget_s:.0f} s", "unknown"
    )


def _concluded(properties: TrialProperties, text: str, uri: str) -> Completion:
    document = json.loads(text)
    if "error" in document:
        return _failed(properties, f"{document['error']}", uri)
    result = TrialResult.from_json(text)
    verdict = result.verdict
    if verdict.status != "pass" and properties.mode == "rollback":
        outcome = "failed" if verdict.status == "fail" else "was inconclusive"
        raise TrialNotPassedError(f"The sea trial of {properties.endpoint_name} {outcome}: {verdict.because}", uri)
    return {"IsComplete": True, "Data": measured_attributes(result, uri)}


def _failed(properties: TrialProperties, message: str, uri: str) -> Completion:
    if properties.mode == "rollback":
        raise TrialNotPassedError(f"The sea trial of {properties.endpoint_name} could not be made: {message}", uri)
    attributes = unmeasured_attributes(properties.fallback_target, verdict="error", uri=uri)
    return {"IsComplete": True, "Data": attributes}
