"""Many requests at once: N payloads over a number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.client.generation import invoke_endpoint
from seatrial.client.transport import InvocationError
from seatrial_load.payload.json_text import REQUEST_RULE, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

    from seatrial.client.alias import Alias
    from seatrial.client.transport import Target
    from seatrial_load.decode.failure import Failure


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one payload: the answer's bytes, or why there are none.

    Attributes:
        body: The answer, for `read_answer`; None on failure.
        failure: Why it failed; None on success.
    """

    index: int
    body: bytes | None
    failure: Failure | None


def invoke_many(
    client: SageMakerRuntimeClient, target: Target | Alias, payloads: Iterable[bytes], *, concurrency: int
) -> tuple[Outcome, ...]:
    """Send every payload, `concurrency` at a time, and return the outcomes in the order of the payloads.

    A failed request is data, and the rest goes on; what would fail for every request (credentials, an impossible name)
    is raised. The payloads are taken from the iterable as they are sent, so that it may be a generator.

    Args:
        payloads: The bodies, as of `request_body`, not streamed.
        concurrency: Requests in flight at once; the client must keep as many connections.

    Raises:
        RequestError: SEA370, the concurrency is below 1 or above the client's connections.
    """
    kept: object = getattr(client.meta.config, "max_pool_connections", None)
    if concurrency < 1:
        raise RequestError.of(REQUEST_RULE, f"{concurrency} is below 1", where="invoke_many", field="concurrency")
    if isinstance(kept, int) and concurrency > kept:
        message = f"{concurrency} exceeds the client's {kept} connections"
        hint = f"create the client with client_config(concurrency={concurrency})"
        raise RequestError.of(REQUEST_RULE, message, hint=hint, where="invoke_many", field="concurrency")
    work = _Work(payloads)
    with ThreadPoolExecutor(concurrency) as pool:
        threads = [pool.submit(_drain, client, target, work) for _ in range(concurrency)]
        try:
            outcomes = [outcome for thread in threads for outcome in thread.result()]
        finally:
            work.stop()
    return tuple(sorted(outcomes, key=lambda outcome: outcome.index))


class _Work:
    """The payloads that are left, numbered, for several threads."""

    def __init__(self, payloads: Iterable[bytes]) -> None:
        self._numbered = enumerate(payloads)
        self._lock = threading.Lock()
        self._stopped = False

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while (item := self._next()) is not None:
            yield item

    def stop(self) -> None:
        """Hand out nothing more."""
        self._stopped = True

    def _next(self) -> tuple[int, bytes] | None:
        with self._lock:
            return None if self._stopped else next(self._numbered, None)


def _drain(client: SageMakerRuntimeClient, target: Target | Alias, work: _Work) -> list[Outcome]:
    try:
        return [_outcome(client, target, index, payload) for index, payload in work]
    except BaseException:
        work.stop()
        raise


def _outcome(client: SageMakerRuntimeClient, target: Target | Alias, index: int, payload: bytes) -> Outcome:
    try:
        return Outcome(index, invoke_endpoint(client, target, payload), None)
    except InvocationError as failed:
        return Outcome(index, None, failed.failure)
