"""Stacks while they are created, updated or deleted: cancelled, deleted and listed as on AWS.

CancelUpdateStack ends the wait for a custom resource; MiniStack looks between two resources only. The wait lasts as
long as the resource's ServiceTimeout by AWS's date: minutes that are skipped count. The resource counts as failed, so
that the rollback sends it its old properties. DeleteStack ends a creation that runs; MiniStack goes on creating. What
is still created is awaited and deleted too, before the stack counts as deleted.

MiniStack lists the resources that are done, of a stack that is named. `seatrial doctor` finds by the others what a
stack waits for, and the stack of a resource; the trial service, whether a stack has a component. What a resource does
at the moment is its last event.

Done through names that are not MiniStack's interface; `packages/seatrial-laptop/tests/laptop` holds the contract.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ministack.services import cloudformation
from ministack.services.cloudformation import changesets, custom_resource, handlers

from seatrial_laptop.aws.ministack import parameter, replace, stack_operations, stack_records, validation_error, wrapper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from seatrial_laptop.aws.ministack import Parameters, Response

    Task = Callable[..., Awaitable[None]]
    Resource = Mapping[str, object]
    Handler = Callable[[Any], object]


POLL_S: Final = 0.1
CANCELLED: Final = "Resource update cancelled"

_stack: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("_stack", default="")
"""The stack whose custom resource is created or updated by this thread."""

LISTING: Final = ("DescribeStackResource", "DescribeStackResources", "ListStackResources")
BY_ID: Final = "DescribeStackResources"
AT_WORK: Final = "_IN_PROGRESS"
CHANGE_SET: Final = "ChangeSetId"
_lists: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("_lists", default=False)
"""Whether a request lists resources."""


class CancellableWait(threading.Event):
    """What waits for the answer of a custom resource, until it comes or the update is cancelled."""

    def __init__(
        self, cancelled: Callable[[], bool], cancel: Callable[[], object], date_s: Callable[[], float]
    ) -> None:
        super().__init__()
        self._cancelled = cancelled
        self._cancel = cancel
        self._date_s = date_s

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether there is an answer; a cancelled update gives one."""
        deadline_s = math.inf if timeout is None else self._date_s() + timeout
        # AWS's date may be skipped ahead meanwhile, so it is read again and again.
        while not super().wait(max(0.0, min(POLL_S, deadline_s - self._date_s()))):
            if self._date_s() >= deadline_s:
                return False
            if self._cancelled():
                self._cancel()
        return True


def end_waits_on_cancel(date_s: Callable[[], float]) -> None:
    """Let MiniStack's custom resources wait by `CancellableWait`; deletions are never cancelled."""
    invoke, register = custom_resource.invoke_custom_resource, custom_resource.register_token

    def invoke_custom_resource(
        request_type: str, logical_id: str, props: object, stack: str, *rest: object, **named: object
    ) -> object:
        token = _stack.set("" if request_type == "Delete" else stack)
        try:
            return invoke(request_type, logical_id, props, stack, *rest, **named)
        finally:
            _stack.reset(token)

    def register_token(token: str) -> threading.Event:
        stack = _stack.get()
        failure = {"Status": "FAILED", "Reason": CANCELLED}
        wait = CancellableWait(
            lambda: is_cancelled(stack), lambda: custom_resource.deliver_response(token, failure), date_s
        )
        # The function gets the token's address later: no response can come between the two lines.
        register(token)
        custom_resource._pending[token]["event"] = wait  # noqa: SLF001 (the contract)
        return wait

    custom_resource.invoke_custom_resource = invoke_custom_resource
    custom_resource.register_token = register_token


def is_cancelled(stack_name: str) -> bool:
    """Return whether the running update of a stack was cancelled; its rollback isn't."""
    stack = stack_records().get(stack_name) if stack_name else None
    return bool(stack and stack.get("StackStatus") == "UPDATE_IN_PROGRESS" and stack.get("_cancel_requested"))


class StackTasks:
    """The creations and updates of stacks that run, so that a deletion can wait for their end."""

    def __init__(self, deploy: Task, delete: Task, stack_of: Callable[[str], dict[str, object] | None]) -> None:
        self._deploy, self._delete, self._stack_of = deploy, delete, stack_of
        self._running: dict[str, asyncio.Event] = {}

    async def deploy(self, stack_name: str, stack_id: str, *rest: object, **named: object) -> None:
        """Create or update a stack."""
        ended = self._running[stack_id] = asyncio.Event()
        try:
            await self._deploy(stack_name, stack_id, *rest, **named)
        finally:
            self._running.pop(stack_id, None)
            ended.set()

    async def delete(self, stack_name: str, stack_id: str, *rest: object, **named: object) -> None:
        """Delete a stack, and again what was created meanwhile."""
        ended = self._running.get(stack_id)
        await self._delete(stack_name, stack_id, *rest, **named)
        stack = self._stack_of(stack_name)
        if ended is None or stack is None:
            return
        # The creation goes on making resources after this deletion: they are deleted once it has ended.
        stack["StackStatus"] = "DELETE_IN_PROGRESS"
        await ended.wait()
        if self._stack_of(stack_name) is stack:
            await self._delete(stack_name, stack_id, *rest, **named)


def delete_what_is_still_created() -> None:
    """Let MiniStack's deletions of stacks wait for creations."""
    tasks = StackTasks(
        handlers._deploy_stack_async,  # noqa: SLF001 (the contract)
        handlers._delete_stack_async,  # noqa: SLF001 (the contract)
        lambda name: stack_records().get(name),
    )
    replace("_deploy_stack_async", tasks.deploy, handlers, changesets)
    replace("_delete_stack_async", tasks.delete, handlers)


def name_change_sets() -> None:
    """Let DescribeStacks name the change set that created or last updated a stack; MiniStack leaves it out."""
    table = stack_operations()
    execute, describe = table["ExecuteChangeSet"], table["DescribeStacks"]

    def executed(params: Parameters) -> Response:
        name, stack_name = parameter(params, "ChangeSetName"), parameter(params, "StackName")
        _, change_set = changesets._find_change_set(name, stack_name)  # noqa: SLF001 (the contract)
        answer: Response = execute(params)  # a task does the work: its custom resources see what is set here
        if change_set and answer[0] < HTTPStatus.MULTIPLE_CHOICES:
            stack_records()[change_set["StackName"]][CHANGE_SET] = change_set[CHANGE_SET]
        return answer

    def described(params: Parameters) -> Response:
        status, headers, body = describe(params)
        for stack in stack_records().values():
            if CHANGE_SET in stack and isinstance(body, bytes):
                own, its = f"<StackId>{stack['StackId']}</StackId>", f"<{CHANGE_SET}>{stack[CHANGE_SET]}</{CHANGE_SET}>"
                body = body.replace(own.encode(), f"{own}{its}".encode())
        return status, headers, body

    table.update(ExecuteChangeSet=executed, DescribeStacks=described)


def list_resources_in_progress() -> None:
    """Let requests that list resources list those too that are created, updated or deleted at the moment."""
    table = stack_operations()
    table.update({name: partial(_listed, table[name]) for name in LISTING})
    table[BY_ID] = partial(_by_id, table[BY_ID])

    @wrapper("_resolve_stack", handlers)
    def resolve_stack(theirs: Callable[[str], dict[str, Any] | None], stack_name: str) -> dict[str, Any] | None:
        stack = theirs(stack_name)
        # Every other request goes on with the record itself, which it may change.
        if stack is None or not _lists.get() or not stack["StackStatus"].endswith(AT_WORK):
            return stack
        events = cloudformation._stack_events.get(stack["StackId"], ())  # noqa: SLF001 (the contract)
        return {**stack, "_resources": with_those_in_progress(stack.get("_resources", {}), events)}


def _by_id(theirs: Handler, params: Parameters) -> object:
    """Let a request name a resource by its physical ID in place of a stack, of which the whole is listed then.

    The wording for an ID that no stack has is that of public issues; AWS documents a ValidationError alone.
    """
    resource = parameter(params, "PhysicalResourceId")
    if not resource:
        return theirs(params)
    if parameter(params, "StackName"):
        return validation_error("StackName and PhysicalResourceId exclude each other")
    for stack_id, stack in stack_records().items():
        ids = {member["PhysicalResourceId"] for member in stack.get("_resources", {}).values()}
        if resource in ids and stack["StackStatus"] != "DELETE_COMPLETE":
            return theirs({"StackName": stack_id})
    return validation_error(f"Stack for {resource} does not exist")


def _listed(theirs: Handler, params: object) -> object:
    token = _lists.set(True)
    try:
        return theirs(params)
    finally:
        _lists.reset(token)


def with_those_in_progress(done: Mapping[str, Resource], events: Iterable[Resource]) -> dict[str, Resource]:
    """Return the resources of a stack with the status and the time of their last events, where these are no end.

    The deletion of what an update replaced is none of the resource that took its place.
    """
    last = {str(event["LogicalResourceId"]): event for event in events if event["StackId"] != _id(event)}
    at_work = {name: event for name, event in last.items() if str(event["ResourceStatus"]).endswith(AT_WORK)}
    return {**done, **{name: _resource(done.get(name), event) for name, event in at_work.items()}}


def _id(event: Resource) -> object:
    return event["PhysicalResourceId"]


def _resource(done: Resource | None, event: Resource) -> Resource:
    if done is not None and _id(event) not in ("", done["PhysicalResourceId"]):
        return done
    reported = {name: event[name] for name in ("LogicalResourceId", "ResourceType", "ResourceStatus", "Timestamp")}
    return {"PhysicalResourceId": _id(event), **(done or {}), **reported}
