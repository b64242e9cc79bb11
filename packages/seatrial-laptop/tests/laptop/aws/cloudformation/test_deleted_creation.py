"""A stack that is deleted while it is created leaves nothing."""

from __future__ import annotations

import asyncio
import inspect

from ministack.services.cloudformation import changesets, handlers, stacks

from seatrial_laptop.aws.cloudformation.stacks_in_progress import StackTasks


async def delete_in_mid_creation(known: dict[str, dict[str, object]], resources: list[str]) -> list[str]:
    statuses: list[str] = []
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def create(name: str, _stack_id: str) -> None:
        resources.append("first")
        reached.set()
        await go_on.wait()
        resources.append("second")
        known[name]["StackStatus"] = "CREATE_COMPLETE"

    async def delete(name: str, _stack_id: str) -> None:
        resources.clear()
        known[name]["StackStatus"] = "DELETE_COMPLETE"

    tasks = StackTasks(create, delete, known.get)
    creating = asyncio.create_task(tasks.deploy("stack", "id"))
    await reached.wait()
    deleting = asyncio.create_task(tasks.delete("stack", "id"))
    await asyncio.sleep(0)
    statuses.append(f"{known['stack']['StackStatus']}")
    go_on.set()
    await asyncio.gather(creating, deleting)
    return [*statuses, f"{known['stack']['StackStatus']}"]


def test_what_is_created_after_the_deletion_is_deleted_too() -> None:
    resources: list[str] = []
    statuses = asyncio.run(delete_in_mid_creation({"stack": {"StackStatus": "CREATE_IN_PROGRESS"}}, resources))
    assert (statuses, resources) == (["DELETE_IN_PROGRESS", "DELETE_COMPLETE"], [])


def test_the_tasks_of_stacks_have_a_name_and_an_id() -> None:
    deploy, delete = stacks._deploy_stack_async, stacks._delete_stack_async  # noqa: SLF001 (the contract)
    for task in (deploy, delete):
        assert list(inspect.signature(task).parameters)[:2] == ["stack_name", "stack_id"]
    for module in (handlers, changesets):
        assert "_deploy_stack_async(" in inspect.getsource(module)
    assert "_delete_stack_async(" in inspect.getsource(handlers)
