"""Carries out the steps that unstick an endpoint; a failed one stops what needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.account.reader import aws_failures, error_sentence, is_absent, rows, text_at
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seatrial.account.reader import AwsCalls
    from seatrial.operations.doctor.steps import FixStep

POLL_S = 5.0
LONGEST_STEP_S = 1800.0
"""A component of many copies drains for minutes; a stack with an endpoint takes up to half an hour."""
_TRANSIENT = ("transient", "is in progress", "cannot update in-progress", "cannot delete", "creating", "updating")


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step.

    Attributes:
        status: `done`, `failed`, or `left out` because a step before it failed.
        message: The error of AWS, or why it was left out; empty when it is done.
    """

    key: str
    status: Literal["done", "failed", "left out"]
    message: str = ""


class _NotYetError(Exception):
    """A step is not over: it is tried or looked at again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The longest wait for a step.

    Attributes:
        sleep: Waits a number of seconds.
        poll_s: Seconds between two looks.
        longest_s: Seconds after which a step has failed.
    """

    sleep: Callable[[float], None]
    poll_s: float = POLL_S
    longest_s: float = LONGEST_STEP_S


def carry_out(
    steps: Iterable[FixStep], calls: AwsCalls, patience: Patience, tell: Callable[[str], None]
) -> Iterator[StepOutcome]:
    """Do the steps in order and yield the outcome of each; `tell` gets each step before it is done.

    A step whose object is gone already is done. One that meets a change at work is tried again.
    """
    missing: set[str] = set()
    for step in steps:
        if lacking := sorted(missing & {*step.after}):
            missing.add(step.key)
            yield StepOutcome(step.key, "left out", f"{', '.join(lacking)} was not done")
            continue
        tell(step.command)
        outcome = _carried_out(step, calls, patience)
        if outcome.status != "done":
            missing.add(step.key)
        yield outcome


def _carried_out(step: FixStep, calls: AwsCalls, patience: Patience) -> StepOutcome:
    try:
        _until_done(lambda: _change(step, calls), patience, step)
        if step.look:
            _until_done(lambda: _look(step, calls), patience, step)
    except BenchError as error:
        return StepOutcome(step.key, "failed", error.problems[0].message)
    return StepOutcome(step.key, "done")


def _until_done(attempt: Callable[[], None], patience: Patience, step: FixStep) -> None:
    waited_s = 0.0
    while True:
        try:
            attempt()
        except _NotYetError as error:
            if waited_s >= patience.longest_s:
                message = f"it is not over after {patience.longest_s:.0f} s: {error}"
                raise BenchError.of("SEA769", message, where=step.key) from error
            patience.sleep(patience.poll_s)
            waited_s += patience.poll_s
        else:
            return


def _change(step: FixStep, calls: AwsCalls) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only a fix needs it here)

    try:
        # Since the examination another part may have been made under the same name: the tags are read again right
        # before a deletion.
        if step.arn:
            with aws_failures(step.key):  # at most 50 tags, so they are on one page
                response = calls("sagemaker", "list_tags", ResourceArn=step.arn, MaxResults=100)
            tags = {text_at(row, "Key"): text_at(row, "Value") for row in rows(response, "Tags")}
            if not step.tags.items() <= tags.items():
                proof = ", ".join(f"{key}={value}" for key, value in step.tags.items())
                raise BenchError.of("SEA769", f"it is not deleted: it does not carry {proof} any more", where=step.key)
        with aws_failures(step.key):
            calls(step.service, step.operation, **step.arguments)
    except ClientError as error:
        # What is gone already is what the step wanted: two runs of doctor must not fail each other.
        if is_absent(error):
            return
        message = error_sentence(error)
        # SageMaker refuses a deletion while a part of it is still going; it gives no code of its own for
        # that, so the message decides.
        if any(word in message.lower() for word in _TRANSIENT):
            raise _NotYetError(message) from error
        raise BenchError.of("SEA769", message, where=step.key) from error


def _look(step: FixStep, calls: AwsCalls) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 (likewise)

    try:
        with aws_failures(step.key):
            response = calls(step.service, step.look, **step.look_at)
    except ClientError as error:
        if is_absent(error) and step.until == "gone":
            return
        raise BenchError.of("SEA769", error_sentence(error), where=step.key) from error
    status = text_at(next(rows(response, "Stacks"), response), "StackStatus")
    if status == "DELETE_COMPLETE" and step.until == "gone":
        return
    # An operation that ended in another state than the wanted one never gets there by itself: to wait longer
    # would only hide the cause.
    if status and not status.endswith("IN_PROGRESS"):
        if step.until == "settled" and not status.endswith("FAILED"):
            return
        raise BenchError.of("SEA769", f"the stack is {status}", where=step.key)
    if "Failed" in {text_at(response, "InferenceComponentStatus"), text_at(response, "EndpointStatus")}:
        raise BenchError.of("SEA769", f"its deletion failed: {text_at(response, 'FailureReason')}", where=step.key)
    raise _NotYetError(f"{status or 'it is still there'}")
