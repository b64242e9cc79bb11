"""What CloudFormation says of an endpoint's stack: its status, its resources, and what failed last."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from seatrial.account.response import rows, text_at
from seatrial.operations.doctor.facts import ResourceState, StackFacts
from seatrial.operations.doctor.moments import moment
from seatrial_base.printable import printable
from seatrial_base.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.account.reader import AwsReader

MOST_EVENTS = 500
STACK_TYPE = "AWS::CloudFormation::Stack"
_BEGINNINGS = frozenset({"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "REVIEW_IN_PROGRESS"})
_CONSEQUENCE = "cancelled"


def find_stack(endpoint: str, named: str, resources: Iterable[str], reader: AwsReader) -> StackFacts:
    """Read the stack of an endpoint: the one that is named, else the one that has one of its resources.

    Args:
        endpoint: The endpoint's name on SageMaker.
        named: The stack as an environment or a tag names it; empty for `seatrial-ENDPOINT`.
        resources: Physical IDs of what is there: a stack of any name may manage it.
        reader: Asks CloudFormation.
    """
    found = read_stack(named or f"seatrial-{endpoint}", reader)
    if found.existence != "absent":
        return found
    for resource in resources:
        answer = reader.read(
            f"stack of {resource}", "cloudformation", "describe_stack_resources", PhysicalResourceId=resource
        )
        if answer.state == "not asked":
            return StackFacts(name=found.name, existence="not asked")
        owner = next((text_at(row, "StackName") for row in rows(answer.document, "StackResources")), "")
        if owner:
            return read_stack(owner, reader)
    return found


def read_stack(name: str, reader: AwsReader) -> StackFacts:
    """Read a stack; its resources and events only where it is there."""
    answer = reader.read(f"stack {name}", "cloudformation", "describe_stacks", StackName=name)
    found = next(rows(answer.document, "Stacks"), None)
    if found is None:
        return StackFacts(name=name, existence="absent" if answer.state == "found" else answer.state)
    listed = reader.rows(
        f"resources of {name}", "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name
    )
    events = reader.rows(f"events of {name}", "cloudformation", "describe_stack_events", "StackEvents", StackName=name)
    return StackFacts(
        name=name,
        existence="found",
        status=text_at(found, "StackStatus"),
        reason=text_at(found, "StackStatusReason"),
        resources=tuple(_resource(row) for row in listed),
        failures=tuple(reversed([*_failures(islice(events, MOST_EVENTS))])),
    )


def _failures(events: Iterable[Mapping[str, object]]) -> Iterator[ResourceState]:
    """Yield the failed events of the last operation, newest first; what was only cancelled is a consequence."""
    for event in events:
        if text_at(event, "ResourceType") == STACK_TYPE and text_at(event, "ResourceStatus") in _BEGINNINGS:
            return
        failed = _resource(event)
        if failed.status.endswith("FAILED") and _CONSEQUENCE not in failed.reason.lower():
            yield failed


def _resource(row: Mapping[str, object]) -> ResourceState:
    return ResourceState(
        logical_id=text_at(row, "LogicalResourceId"),
        physical_id=text_at(row, "PhysicalResourceId"),
        resource_type=text_at(row, "ResourceType"),
        status=text_at(row, "ResourceStatus"),
        reason=printable(redacted(text_at(row, "ResourceStatusReason"))),
        changed=moment(row, "LastUpdatedTimestamp") or moment(row, "Timestamp"),
    )
