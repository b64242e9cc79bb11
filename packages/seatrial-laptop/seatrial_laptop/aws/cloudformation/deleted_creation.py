"""DeleteStack ends a creation that runs, as on AWS; MiniStack goes on creating, and leaves what comes later.

What is still created is awaited and deleted too, before the stack counts as deleted. Done through names that are not
MiniStack's interface; `packages/seatrial-laptop/tests/laptop` holds the contract on them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ministack.services import cloudformation
from ministack.services.cloudformation import changesets, handlers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Task = Callable[..., Awaitable[None]]


class StackTasks:
    """The creations and updates of stacks that run, so that a deletion can wait for their end.

    Args:
        deploy: Creates or updates a stack, by its name and ID.
        delete: Deletes the resources that a stack has, by its name and ID.
        stack_of: Returns what is known of a stack by its name; `None` when there is none.
    """

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
        stack["StackStatus"] = "DELETE_IN_PROGRESS"
        await ended.wait()
        if self._stack_of(stack_name) is stack:
            await self._delete(stack_name, stack_id, *rest, **named)


def delete_what_is_still_created() -> None:
    """Let MiniStack's deletions of stacks wait for creations."""
    tasks = StackTasks(
        handlers._deploy_stack_async,  # noqa: SLF001 (the contract)
        handlers._delete_stack_async,  # noqa: SLF001 (the contract)
        lambda name: cloudformation._stacks.get(name),  # noqa: PLW0108, SLF001 (the contract; of the request's account)
    )
    handlers._deploy_stack_async = changesets._deploy_stack_async = tasks.deploy  # noqa: SLF001 (the contract)
    handlers._delete_stack_async = tasks.delete  # noqa: SLF001 (the contract)
