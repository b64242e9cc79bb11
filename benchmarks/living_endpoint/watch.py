"""What happens to an endpoint meanwhile: its copies, candidates and suspended scaling, looked at again and again."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.living_endpoint.endpoint import LivingEndpoint

LOOK_S: Final = 0.5


@dataclass(slots=True)
class Seen:
    """What was seen.

    Attributes:
        copies: Copies that served, in the order of looks.
        candidates: Names of candidates that were there at any time.
        scale_in_was_suspended: Scale-in was suspended at any time.
    """

    copies: list[int] = field(default_factory=list)
    candidates: set[str] = field(default_factory=set)
    scale_in_was_suspended: bool = False


@contextmanager
def watching(living: LivingEndpoint, copies: Callable[[], int]) -> Iterator[Seen]:
    """Look twice a second while the block runs; a look that is throttled is made again.

    Raises:
        BotoCoreError, ClientError, OSError: A look failed, and none was made any more.
    """
    seen, ended = Seen(), threading.Event()
    failures: list[Exception] = []

    def look() -> None:
        while not ended.is_set():
            try:
                seen.copies.append(copies())
                seen.candidates |= set(living.candidates)
                seen.scale_in_was_suspended |= living.is_scale_in_suspended
            except (BotoCoreError, ClientError, OSError) as failure:
                if not _is_throttled(failure):
                    failures.append(failure)
                    return
            ended.wait(LOOK_S)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]


def _is_throttled(failure: Exception) -> bool:
    return isinstance(failure, ClientError) and failure.response["Error"]["Code"] == "ThrottlingException"
