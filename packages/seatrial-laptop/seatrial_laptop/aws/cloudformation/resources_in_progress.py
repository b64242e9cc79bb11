"""The resources of a stack as AWS lists them; MiniStack lists what is done, of a stack that is named.

`seatrial doctor` finds by them what a stack waits for, and the stack of a resource; the trial service, whether a stack
has a component. What a resource does at the moment is its last event. Done
through names that are not MiniStack's interface; `packages/seatrial-laptop/tests/laptop` holds the contract on them.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any, Final

from ministack.services import cloudformation
from ministack.services.cloudformation import handlers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Resource = Mapping[str, object]
    Handler = Callable[[object], object]

LISTING: Final = ("DescribeStackResource", "DescribeStackResources", "ListStackResources")
BY_ID: Final = "DescribeStackResources"
AT_WORK: Final = "_IN_PROGRESS"
_lists: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("_lists", default=False)
"""Whether a request lists resources."""


def list_resources_in_progress() -> None:
    """Let requests that list resources tell those that are created, updated or deleted at the moment."""
    theirs = handlers._resolve_stack  # noqa: SLF001 (the contract)

    def resolve_stack(stack_name: str) -> dict[str, Any] | None:
        stack: dict[str, Any] | None = theirs(stack_name)
        if stack is None or not _lists.get() or not stack["StackStatus"].endswith(AT_WORK):
            return stack
        events = cloudformation._stack_events.get(stack["StackId"], ())  # noqa: SLF001 (the contract)
        return {**stack, "_resources": with_those_in_progress(stack.get("_resources", {}), events)}

    handlers._resolve_stack = resolve_stack  # noqa: SLF001 (the contract)
    table = handlers._ACTION_HANDLERS  # noqa: SLF001 (the contract)
    table.update({name: _listing(table[name]) for name in LISTING})
    table[BY_ID] = _by_id(table[BY_ID])


def _by_id(theirs: Handler) -> Handler:
    """Let a request name a resource by its physical ID in place of a stack, of which the whole is listed then.

    The wording for an ID that no stack has is that of public issues; AWS documents a ValidationError alone.
    """

    def listed(params: object) -> object:
        resource = handlers._p(params, "PhysicalResourceId")  # noqa: SLF001 (the contract)
        if not resource:
            return theirs(params)
        if handlers._p(params, "StackName"):  # noqa: SLF001 (the contract)
            return handlers._error("ValidationError", "StackName and PhysicalResourceId exclude each other")  # noqa: SLF001
        for stack_id, stack in cloudformation._stacks.items():  # noqa: SLF001 (the contract)
            ids = {each["PhysicalResourceId"] for each in stack.get("_resources", {}).values()}
            if resource in ids and stack["StackStatus"] != "DELETE_COMPLETE":
                return theirs({"StackName": stack_id})
        return handlers._error("ValidationError", f"Stack for {resource} does not exist")  # noqa: SLF001 (the contract)

    return listed


def _listing(theirs: Handler) -> Handler:
    def listed(params: object) -> object:
        token = _lists.set(True)
        try:
            return theirs(params)
        finally:
            _lists.reset(token)

    return listed


def with_those_in_progress(done: Mapping[str, Resource], events: Iterable[Resource]) -> dict[str, Resource]:
    """Return the resources of a stack with the status and the time of their last events, where these are no end.

    The deletion of what an update replaced is none of the resource that took its place.

    Args:
        done: The resources that are done, by logical ID.
        events: The stack's events, the oldest first.
    """
    last = {str(event["LogicalResourceId"]): event for event in events if event["StackId"] != _id(event)}
    at_work = {name: event for name, event in last.items() if str(event["ResourceStatus"]).endswith(AT_WORK)}
    return {**done, **{name: _resource(done.get(name), event) for name, event in at_work.items()}}


def _id(event: Resource) -> object:
    return event["PhysicalResourceId"]


def _resource(done: Resource | None, event: Resource) -> Resource:
    if done is not None and _id(event) not in ("", done["PhysicalResourceId"]):
        return done
    told = {name: event[name] for name in ("LogicalResourceId", "ResourceType", "ResourceStatus", "Timestamp")}
    return {"PhysicalResourceId": _id(event), **(done or {}), **told}
