from __future__ import annotations

import selectors
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from seatrial_load.client.event_loop import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH = selectors.EVENT_READ | selectors.EVENT_WRITE


@pytest.fixture(params=["linux", "darwin"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch[str]]:
    monkeypatch.setattr(sys, "platform", request.param)
    watch: Watch[str] = Watch()
    yield watch
    watch.close()


def test_ready_descriptors_are_found_with_their_owners(watch: Watch[str]) -> None:
    near, far = socket.socketpair()
    with near, far:
        watch.set(near.fileno(), selectors.EVENT_READ, "near")
        assert watch.poll(0.0) == []
        watch.set(near.fileno(), BOTH, "near")
        assert [descriptor for descriptor, _ in watch.poll(0.0)] == [near.fileno()]
        watch.set(near.fileno(), selectors.EVENT_READ, "near again")
        far.send(b"x")
        ((descriptor, _),) = watch.poll(1.0)
        assert watch.owners[descriptor] == "near again"
        watch.forget(near.fileno())
        assert watch.poll(0.0) == []
        assert watch.owners == {}
