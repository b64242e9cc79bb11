"""What a stack's status, failed events and waiting resources tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.operations.doctor.diagnosis import by_symptom, diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.operations.doctor.facts import Examination, ResourceState, StackFacts
    from seatrial_base.findings import Finding

LONGEST_WAIT_MINUTES: Final = 60
"""CloudFormation waits for a custom resource for an hour at most."""
_CUSTOM: Final = ("Custom::", "AWS::CloudFormation::CustomResource")
_MEND: Final = {
    "UPDATE_ROLLBACK_FAILED": "Mend the cause, then `seatrial doctor --fix` continues the rollback.",
    "ROLLBACK_FAILED": "Delete the stack; `seatrial doctor --fix` removes what blocks it.",
    "CREATE_FAILED": "Delete the stack; `seatrial doctor --fix` removes what blocks it.",
    "DELETE_FAILED": "Remove what blocks the deletion and delete it again: `seatrial doctor --fix`.",
    "ROLLBACK_COMPLETE": "Mend the cause, delete the stack and deploy again.",
    "UPDATE_ROLLBACK_COMPLETE": "Mend the cause and deploy again; the former configuration serves.",
}
"""What to do about a stack, by its status."""


def stack_diagnoses(found: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the stack: the cause of its failure where an event tells it, and what waits."""
    stack, part = found.stack, f"stack {found.stack.name}"
    if stack.is_gone and found.endpoint.existence == "found" and found.endpoint.is_ours:
        kept = "Deploy its stack again under another name of the endpoint, or delete it with the AWS CLI; it serves."
        left = "Delete what is left: seatrial doctor --fix."
        cause = "Its stack does not exist any more, and the endpoint costs money."
        yield diagnosis(
            rule="SEA762",
            part=f"endpoint {found.name}",
            cause=cause,
            mend=kept if found.serves else left,
            seen=f"no {part}",
        )
    if (mend := _MEND.get(stack.status)) is not None:
        causes = [
            cause for each in stack.failures for cause in by_symptom(f"{part}, {each.logical_id}", (each.reason,))
        ]
        yield from causes[:1]
        yield diagnosis(rule="SEA762", part=part, cause=_cause(stack), mend=mend, seen=stack.status)
    for resource in _waiting(found):
        minutes = found.minutes_since(resource.changed)
        yield diagnosis(
            rule="SEA762",
            part=f"{part}, {resource.logical_id}",
            cause=f"CloudFormation has waited {minutes:.0f} minutes for the custom resource, which did not answer.",
            mend="Wait until CloudFormation gives up (an hour), or cancel the update: aws cloudformation "
            f"cancel-update-stack --stack-name {stack.name}.",
            seen=resource.status,
            source="public issue trackers: aws/aws-cdk #24974, #16764",
        )


def _cause(stack: StackFacts) -> str:
    """Return the first failed event of the last operation, else the stack's own reason."""
    if stack.failures:
        first = stack.failures[0]
        return f"{first.logical_id} ({first.resource_type}) failed: {first.reason or first.status}"
    return f"It is {stack.status}{f': {stack.reason}' if stack.reason else '.'}"


def _waiting(found: Examination) -> Iterator[ResourceState]:
    for resource in found.stack.resources:
        is_custom = resource.resource_type.startswith(_CUSTOM)
        waits = resource.status.endswith("IN_PROGRESS") and found.stack.is_at_work
        if is_custom and waits and found.minutes_since(resource.changed) > LONGEST_WAIT_MINUTES:
            yield resource
