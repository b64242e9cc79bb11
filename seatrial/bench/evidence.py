"""What a result says of its own measurement: the client, the check of its parser, and the service in between."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEvidence:
    """How the client itself fared at one level: whether the level measures the endpoint or the client.

    Attributes:
        workers: Processes that loaded.
        streams: Connections, all processes together.
        receive_lag_p99_ms: Time from when bytes may have arrived to their timestamp: from the return of the selector
            (of the one before, when it didn't wait) to the read; the worst process.
        delivered_concurrency: Time average of the requests in flight over the window, all processes together.
        cpu_share: CPU time of the loading thread over window, in the busiest process: 1 is a whole core.
        run_delay_share: Share of the window in which that process was ready to run but had no core; None where the
            kernel doesn't tell (`/proc/thread-self/schedstat`).
        send_lag_p99_ms: How late an open loop sent the requests that found a free connection; None in a closed loop.
        idle_ms: Mean time that a stream of a closed loop waited for the client to send its next request.
        full_share: Share of an open loop's requests that found every connection taken when they were due.
        reads_per_s: Reads of the busiest process per second; a read brings a token event, or several that had queued.
    """

    workers: int
    streams: int
    receive_lag_p99_ms: float | None
    delivered_concurrency: float | None
    cpu_share: float | None
    run_delay_share: float | None = None
    send_lag_p99_ms: float | None = None
    idle_ms: float | None = None
    full_share: float | None = None
    reads_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCalibration:
    """What this client can take in here, measured against a server that costs nothing (plain HTTP on the loopback).

    Attributes:
        streams: Connections of the measurement.
        parts_per_s: Token events per second that arrived; the server offered `offered_parts_per_s`.
        offered_parts_per_s: Token events per second that the server would have sent to an infinitely fast client.
        cpu_s_per_1k_parts: CPU seconds of the client for a thousand token events.
        receive_lag_p99_ms: As in `ClientEvidence`.
        because: What was measured, or why nothing was, in a sentence.
    """

    streams: int
    parts_per_s: float | None
    offered_parts_per_s: float
    cpu_s_per_1k_parts: float | None
    receive_lag_p99_ms: float | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOverhead:
    """What SageMaker adds to the container's time, over the trial's measured time.

    Attributes:
        client_mean_ms: Mean end-to-end latency at the client.
        model_latency_mean_ms: CloudWatch `ModelLatency`, mean; None when CloudWatch had no datapoint.
        overhead_latency_mean_ms: CloudWatch `OverheadLatency`, mean.
        overhead_ms: client_mean_ms - model_latency_mean_ms: service and network.
        because: Where it comes from, or why it is missing.
    """

    client_mean_ms: float | None
    model_latency_mean_ms: float | None
    overhead_latency_mean_ms: float | None
    overhead_ms: float | None
    because: str
