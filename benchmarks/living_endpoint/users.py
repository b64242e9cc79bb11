"""Users of the endpoint: requests at a steady rate, each with its latency and how it ended."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError

from seatrial.client import Alias, Options, generate
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

INTERVAL_S: Final = 0.5
THREADS: Final = 4
TOKENS: Final = 16


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of a user: when it was due, how long it took from then on, and why it failed; empty when not."""

    due_s: float
    latency_s: float
    failure: str


@dataclass(slots=True)
class Users:
    """What users have seen so far."""

    sent: list[Sent] = field(default_factory=list)

    def between(self, from_s: float, to_s: float) -> list[Sent]:
        """Return the requests that were due in a span of time."""
        return [each for each in self.sent if from_s <= each.due_s < to_s]


@contextmanager
def steady_users(client: SageMakerRuntimeClient, alias: Alias) -> Iterator[Users]:
    """Send two requests a second while the block runs: an open loop, so that a slow answer delays no other one.

    Args:
        client: Sends once: no retry hides a failure.
        alias: The endpoint, as users of `seatrial.client` name it.
    """
    users, ended = Users(), threading.Event()
    began_s = time.monotonic()

    def send(first: int) -> None:
        number = first
        while not ended.is_set():
            due_s = began_s + number * INTERVAL_S
            if ended.wait(max(0.0, due_s - time.monotonic())):
                return
            failure = _failure(client, alias)
            users.sent.append(Sent(due_s, time.monotonic() - due_s, failure))
            number += THREADS

    threads = [threading.Thread(target=send, args=(first,), daemon=True) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield users
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _failure(client: SageMakerRuntimeClient, alias: Alias) -> str:
    try:
        generate(client, alias, "Where does the boat go?", Options(max_tokens=TOKENS))
    except (SeatrialError, BotoCoreError, OSError) as failed:
        return f"{failed}"
    return ""
