from __future__ import annotations

import asyncio

import pytest

from seatrial_laptop.engine.container import Admission
from seatrial_laptop.engine.generation import Overloaded


def admission(*, slots: int = 1, tokens: int = 100, in_flight: int = 10) -> Admission:
    return Admission(slots=slots, batch_total_tokens=tokens, max_in_flight=in_flight)


async def hold(queue: Admission, name: str, order: list[str], *, tokens: int = 1) -> None:
    async with queue.slot(tokens):
        order.append(name)
        await asyncio.sleep(0)


def test_requests_wait_in_order_of_arrival() -> None:
    async def scenario() -> list[str]:
        queue, order = admission(), list[str]()
        await asyncio.gather(*(hold(queue, name, order) for name in "abcd"))
        return order

    assert asyncio.run(scenario()) == ["a", "b", "c", "d"]


def test_the_token_budget_bounds_the_batch_and_nobody_overtakes() -> None:
    async def scenario() -> tuple[int, int]:
        queue = admission(slots=8, tokens=100)
        async with queue.slot(60):
            waiting = [asyncio.create_task(hold(queue, "big", [], tokens=50))]
            waiting.append(asyncio.create_task(hold(queue, "small", [], tokens=1)))
            await asyncio.sleep(0.01)
            seen = (queue.running, queue.waiting)
        await asyncio.gather(*waiting)
        return seen

    assert asyncio.run(scenario()) == (1, 2)


def test_one_request_more_than_the_container_admits_is_refused() -> None:
    async def scenario() -> None:
        queue = admission(in_flight=2)
        async with queue.slot(1):
            waiting = asyncio.create_task(hold(queue, "second", []))
            await asyncio.sleep(0.01)
            with pytest.raises(Overloaded):
                async with queue.slot(1):
                    pass
        await waiting

    asyncio.run(scenario())


def test_a_request_more_than_the_prompt_tokens_that_may_wait_is_refused() -> None:
    async def scenario() -> None:
        queue = Admission(slots=1, batch_total_tokens=100, max_in_flight=10, max_queued_tokens=8)

        async def wait(prompt: int) -> None:
            async with queue.slot(1, prompt=prompt):
                pass

        async with queue.slot(1, prompt=50):  # runs: it waits no more
            waiting = [asyncio.create_task(wait(prompt)) for prompt in (6, 6)]
            await asyncio.sleep(0.01)
            with pytest.raises(Overloaded):
                await wait(1)
        await asyncio.gather(*waiting)
        await wait(1)

    asyncio.run(scenario())


def test_a_client_that_leaves_the_queue_gives_its_place_back() -> None:
    async def scenario() -> tuple[int, int]:
        queue = admission()
        async with queue.slot(1):
            leaving = asyncio.create_task(hold(queue, "leaving", []))
            await asyncio.sleep(0.01)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        return queue.running, queue.waiting

    assert asyncio.run(scenario()) == (0, 0)


def test_a_client_that_leaves_as_its_turn_comes_gives_its_slot_back() -> None:
    async def scenario() -> int:
        queue = admission()
        async with queue.slot(1):
            leaving = asyncio.create_task(hold(queue, "leaving", []))
            await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        return queue.running

    assert asyncio.run(scenario()) == 0
