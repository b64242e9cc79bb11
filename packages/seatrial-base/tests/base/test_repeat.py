from __future__ import annotations

import threading

from seatrial_base.repeat import repeat_meanwhile

PATIENCE_S = 30.0


def test_it_is_done_again_and_again_in_another_thread_while_the_block_runs() -> None:
    third, threads = threading.Event(), set[int]()
    times: list[None] = []

    def act() -> None:
        times.append(None)
        threads.add(threading.get_ident())
        if len(times) == 3:
            third.set()

    with repeat_meanwhile(0.001, act):
        assert third.wait(PATIENCE_S)
    done = len(times)
    assert threads.isdisjoint({threading.get_ident()})
    assert done == len(times), "nothing is done after the block"


def test_the_block_is_left_at_once_however_long_the_pause() -> None:
    acts: list[None] = []
    with repeat_meanwhile(3600.0, lambda: acts.append(None)):
        pass
    assert acts == []
