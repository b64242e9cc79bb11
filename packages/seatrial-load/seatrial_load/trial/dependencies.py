"""Dependencies of a trial: clocks, connections, credentials and the clients of the control plane."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_load.aws.clock_skew import shifted
from seatrial_load.client.connection import dialer, socket_addresses
from seatrial_load.client.request_writer import request_writer
from seatrial_load.client.worker_pool import PoolOrder, load_with_workers
from seatrial_load.documents.arrivals import arrivals_of
from seatrial_load.documents.progress import unwatched
from seatrial_load.prompts.choose import prompts_of
from seatrial_load.prompts.trace import TracePrompts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_load.aws.container_metrics import PromQl
    from seatrial_load.aws.credentials import CredentialSource
    from seatrial_load.client.connection import Dial
    from seatrial_load.client.event_loop import Wave
    from seatrial_load.client.request_writer import RequestWriter
    from seatrial_load.client.worker_pool import PoolResult
    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.progress import TrialProgress, Watch
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.stop import Stop


def utc_now() -> datetime:
    """Return the time of day in UTC."""
    return datetime.fromtimestamp(time.time(), UTC)


# Returns why the trial is to stop at once; None while it may go on.
ShouldStop: TypeAlias = "Callable[[], Stop | None]"


def go_on() -> Stop | None:
    """Return no reason to stop."""
    return None


class Keep(Protocol):
    """Takes the records of a level."""

    def __call__(self, records: Sequence[RequestRecord], *, concurrency: int, ramp: int) -> None:
        """Keep the requests of a level; its first `ramp` ones aren't measured."""


def _not_kept(records: Sequence[RequestRecord], *, concurrency: int, ramp: int) -> None:
    del records, concurrency, ramp


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The dependencies of a trial; each has a default.

    Attributes:
        clock: Monotonic seconds, the same in all processes of the machine.
        wall_clock: Time of day in UTC; dates the trial and its signatures, and seeds its prompts.
        credentials: Sign the requests; None is the process's own.
        dial: Starts a connection; None connects to the target's address.
        promql: CloudWatch's PromQL API, with the containers' metrics; None is that of the target's region.
        prompts_file: The file that the workload names; None for made-up prompts.
        replay_speed: How much faster than recorded a trace is replayed.
        calibrates: Whether the client is measured against a server that costs nothing.
        asks_cloudwatch: Whether CloudWatch is read, for SageMaker's overhead (never of an engine that announces itself)
            and for the users' load.
        may_scale: Whether a component at zero may be set to one copy; otherwise requests wake it.
    """

    clock: Callable[[], float] = time.perf_counter
    wall_clock: Callable[[], datetime] = utc_now
    sleep: Callable[[float], None] = time.sleep
    credentials: CredentialSource | None = None
    dial: Dial | None = None
    sagemaker: SageMakerClient | None = None
    cloudwatch: CloudWatchClient | None = None
    promql: PromQl | None = None
    prompts_file: Path | None = None
    replay_speed: float = 1.0
    watch: Watch = unwatched
    keep: Keep = _not_kept
    calibrates: bool = True
    asks_cloudwatch: bool = True
    may_scale: bool = False

    def writer(
        self,
        request: TrialRequest,
        *,
        started_at: str,
        words_per_token: float | None = None,
        clock_offset_s: float | None = None,
        first: int = 0,
    ) -> RequestWriter:
        """Return the writer of the trial's requests.

        Args:
            started_at: When it started; with the plan's digest it seeds the prompts.
            first: The number of the request that takes the first of the lengths, or the first row of a trace.

        Raises:
            BenchError: SEA501, SEA503, SEA504, SEA509 or SEA510, as its parts do.
        """
        prompts = prompts_of(
            request.workload,
            seed=f"{request.plan_digest}:{started_at}",
            words_per_token=words_per_token or 1.0,
            file=self.prompts_file,
            first=first,
        )
        now = self.wall_clock if clock_offset_s is None else shifted(self.wall_clock, clock_offset_s)
        return request_writer(request.target, request.workload, prompts, now=now, credentials=self.credentials)

    def writer_of(self, request: TrialRequest, progress: TrialProgress) -> RequestWriter:
        """Return the writer of the requests of a trial's next level; raises as `writer` does."""
        return self.writer(
            request,
            started_at=progress.started_at,
            words_per_token=progress.words_per_token,
            clock_offset_s=progress.clock_offset_s,
            first=progress.sent,
        )

    def schedule(self, request: TrialRequest, progress: TrialProgress) -> tuple[float, ...] | None:
        """Return the seconds from the next level's start at which its requests are due; None of a closed loop.

        Raises:
            BenchError: SEA501, the level has no request, or a replay has no trace.
        """
        arrivals = arrivals_of(request.load, request.workload.times_s)
        if not arrivals.is_open:
            return None
        if arrivals.follows_trace:
            prompts = self.writer(request, started_at=progress.started_at).prompts
            if not isinstance(prompts, TracePrompts):
                message = f"a replay needs a trace; the workload's prompts are {request.workload.source}"
                raise BenchError.of("SEA501", message, where="trial request", field="workload.source")
            arrivals = replace(arrivals, times_s=prompts.trace.due_s, speed=self.replay_speed)
        due_s = arrivals.schedule(request.load, len(progress.levels))
        if not due_s:
            message = f"no request is due within {request.load.level_s:g} s"
            raise BenchError.of("SEA501", message, where="trial request", field="load.level_s")
        return due_s

    def dial_to(self, writer: RequestWriter) -> Dial:
        """Return what starts connections to a writer's address.

        Raises:
            BenchError: SEA504, the name doesn't resolve.
        """
        return self.dial or dialer(writer.address, socket_addresses(writer.address))

    def send(self, request: TrialRequest, writer: RequestWriter, wave: Wave, workers: int | None) -> PoolResult:
        """Send a wave of a trial's requests; a connection of one's own is of this process alone."""
        dial = self.dial_to(writer)
        order = PoolOrder(wave=wave, stream=request.workload.stream, secret=writer.secret, terms=writer.terms)
        workers = 1 if self.dial is not None else workers
        return load_with_workers(order, writer, lambda: dial, workers=workers, clock=self.clock)
