"""The sea trial from start to end: prove what is live, warm up, load level by level, prove again, conclude."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial.bench.address import address_of, socket_addresses
from seatrial.bench.client import Wave, WaveResult, run_wave
from seatrial.bench.conclusion import cost_at, fallback_target, scaling_target
from seatrial.bench.connection import dialer
from seatrial.bench.credentials import Credentials, ambient_credentials
from seatrial.bench.decode import record_of
from seatrial.bench.knee import kneedle_knee, slo_knee
from seatrial.bench.level import measure_level
from seatrial.bench.live import not_proven, prove_live
from seatrial.bench.payload import RequestWriter
from seatrial.bench.result import SCHEMA_VERSION, LevelResult, LiveProof, TrialResult
from seatrial.bench.sigv4 import Signer
from seatrial.bench.slo import inconclusive, verdict_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.bench.connection import Dial
    from seatrial.bench.record import RequestRecord
    from seatrial.bench.request import TrialRequest

ALL_MEASURED = "every level was measured"


def utc_now() -> datetime:
    """Return the time of day in UTC."""
    return datetime.now(UTC)


def run_trial(
    request: TrialRequest,
    *,
    on_level: Callable[[LevelResult], None] = lambda _level: None,
    clock: Callable[[], float] = time.perf_counter,
    wall_clock: Callable[[], datetime] = utc_now,
    credentials: Credentials | None = None,
    dial: Dial | None = None,
    sagemaker: SageMakerClient | None = None,
) -> TrialResult:
    """Run a trial. Requests that fail are data; only a trial that can't be one raises.

    Args:
        request: What to load and what is good.
        on_level: Called with each level as soon as it is measured.
        clock: Monotonic seconds.
        wall_clock: Time of day in UTC; dates the trial and its signatures, and seeds its prompts.
        credentials: What signs the requests; the process's own when not given.
        dial: Starts a connection; to the target's address when not given.
        sagemaker: The control plane's client; boto3's when not given.

    Raises:
        BenchError: SEA501 impossible request, SEA502 the live endpoint isn't this deployment's (before or after the
            measurement), SEA503 no credentials, SEA504 the endpoint's URL can't be used.
    """
    request.check()
    started_s, started_at = clock(), wall_clock().isoformat(timespec="seconds")
    writer = _writer(request, credentials or ambient_credentials(), wall_clock, started_at)
    dial = dial or dialer(writer.address, socket_addresses(writer.address))
    before = _prove(request, sagemaker)
    deadline_s = started_s + request.load.budget_s
    course = _Course(request=request, writer=writer, dial=dial, clock=clock, deadline_s=deadline_s)
    course.warm_up()
    levels, stopped_because = course.measure(on_level)
    after = _prove(request, sagemaker)
    return _conclude(
        request,
        tuple(levels),
        live=_proven_throughout(before, after, request.copy_count),
        changed=_changed_copies(before, after),
        engine_note=course.engine_note,
        started_at=started_at,
        duration_s=clock() - started_s,
        stopped_because=stopped_because,
    )


@dataclass(slots=True, kw_only=True)
class _Course:
    """The measuring part of one trial; numbers its requests through all waves, so that no prompt comes twice."""

    request: TrialRequest
    writer: RequestWriter
    dial: Dial
    clock: Callable[[], float]
    deadline_s: float
    sent: int = 0
    engine_note: str = ""
    levels: list[LevelResult] = field(default_factory=list)

    def warm_up(self) -> None:
        """Send the requests that aren't measured, at most as many at a time as the gate's level does."""
        request = self.request
        if request.load.warmup_requests:
            self._run(min(request.load.warmup_requests, request.gate_concurrency), request.load.warmup_requests)

    def measure(self, on_level: Callable[[LevelResult], None]) -> tuple[list[LevelResult], str]:
        """Measure the levels in turn; return them and why there are no more."""
        load = self.request.load
        for concurrency in load.concurrency_levels:
            streams = concurrency * self.request.copy_count
            wave = self._run(streams, streams * load.requests_per_concurrency)
            if wave.cut:
                return self.levels, self._cut(concurrency, len(wave.exchanges), streams * load.requests_per_concurrency)
            level = measure_level(concurrency, self._records(wave), self.request.objectives)
            self.levels.append(level)
            on_level(level)
            if reason := why_stop(self.levels):
                return self.levels, reason
        return self.levels, ALL_MEASURED

    def _run(self, streams: int, requests: int) -> WaveResult:
        first = self.sent
        self.sent += requests
        wave = Wave(
            streams=streams,
            requests=requests,
            timeout_s=self.request.load.request_timeout_s,
            deadline_s=self.deadline_s,
        )
        return run_wave(wave, lambda index: self.writer(first + index), self.dial, clock=self.clock)

    def _records(self, wave: WaveResult) -> list[RequestRecord]:
        records = [record_of(exchange, stream=self.request.workload.stream) for exchange in wave.exchanges]
        self.engine_note = self.engine_note or next((record.engine for record in records if record.engine), "")
        return records

    def _cut(self, concurrency: int, ended: int, requests: int) -> str:
        budget = f"the budget of {self.request.load.budget_s:g} s ended"
        return f"{budget} at concurrency {concurrency} per copy ({ended} of {requests} requests were over)"


def why_stop(levels: Sequence[LevelResult]) -> str:
    """Say why more load would teach nothing; empty when it would.

    That is so after a level without success, and after two levels in a row that each missed the SLO and had less
    throughput than the level before.
    """
    last = levels[-1]
    if not last.succeeded:
        return f"no request succeeded at concurrency {last.concurrency} per copy"
    falling = [not after.meets_slo and _throughput(after) < _throughput(before) for before, after in pairwise(levels)]
    if falling[-2:] == [True, True]:
        return f"throughput fell and the SLO was missed twice in a row, last at concurrency {last.concurrency} per copy"
    return ""


def _throughput(level: LevelResult) -> float:
    return level.requests_per_s or 0.0 if level.output_tok_s is None else level.output_tok_s


def _writer(
    request: TrialRequest, credentials: Credentials, wall_clock: Callable[[], datetime], started_at: str
) -> RequestWriter:
    target = request.target
    return RequestWriter(
        workload=request.workload,
        address=address_of(target, stream=request.workload.stream),
        inference_component=target.inference_component,
        signer=Signer(credentials, target.region),
        now=wall_clock,
        seed=f"{request.plan_digest}:{started_at}",
    )


def _prove(request: TrialRequest, sagemaker: SageMakerClient | None) -> LiveProof:
    if request.expected is None:
        return not_proven()
    return prove_live(request.target, request.expected, sagemaker=sagemaker)


def _proven_throughout(before: LiveProof, after: LiveProof, copy_count: int) -> LiveProof:
    """Join both proofs; copies that differ from those the trial loaded make its numbers per copy doubtful: say so."""
    counts = {proof.copy_count for proof in (before, after)} - {None, copy_count}
    if not counts:
        return after
    seen = " and ".join(str(count) for count in (before.copy_count, after.copy_count))
    note = f"beware: {seen} copies ran before and after, the load was made for {copy_count}"
    return replace(after, because=f"{after.because}; {note}")


def _changed_copies(before: LiveProof, after: LiveProof) -> str:
    """Say that copies came or went meanwhile; empty when none did. The load per copy is then unknown."""
    if before.copy_count == after.copy_count:
        return ""
    return f"copies changed from {before.copy_count} to {after.copy_count} during the trial"


def _conclude(
    request: TrialRequest,
    levels: tuple[LevelResult, ...],
    *,
    live: LiveProof,
    changed: str,
    engine_note: str,
    started_at: str,
    duration_s: float,
    stopped_because: str,
) -> TrialResult:
    slo, kneedle = slo_knee(levels), kneedle_knee(levels)
    verdict = verdict_at(request.gate_concurrency, levels, request.objectives)
    target = fallback_target(request, changed) if changed else scaling_target(request, levels, slo, kneedle)
    return TrialResult(
        schema_version=SCHEMA_VERSION,
        request=request,
        started_at=started_at,
        duration_s=duration_s,
        engine_note=engine_note,
        live=live,
        levels=levels,
        knees=(slo, kneedle),
        verdict=inconclusive(verdict, changed) if changed else verdict,
        target_concurrency_per_copy=target.concurrency_per_copy,
        target_detector=target.detector,
        target_because=target.because,
        usd_per_million_output_tokens=cost_at(request, target.level),
        stopped_because=stopped_because,
    )
