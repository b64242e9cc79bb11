from __future__ import annotations

import asyncio
import gc
import weakref

from seatrial_laptop.aws.__main__ import kept_task


def test_a_task_that_nobody_refers_to_outlives_the_garbage_collector() -> None:
    """`cdk destroy` waited for ever for a stack whose deletion had been collected."""

    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    async def started() -> bool:
        asyncio.get_running_loop().set_task_factory(kept_task)  # type: ignore[arg-type] # as in the embedded AWS
        task = weakref.ref(asyncio.get_running_loop().create_task(never()))
        await asyncio.sleep(0)
        gc.collect()
        lives = task() is not None
        for left in asyncio.all_tasks() - {asyncio.current_task()}:
            left.cancel()
        return lives

    assert asyncio.run(started())
