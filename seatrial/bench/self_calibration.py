"""What this client can take in here: measured in about a second, against a server that costs next to nothing."""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import TYPE_CHECKING

from seatrial.bench.address import Address, socket_addresses
from seatrial.bench.client import run_wave
from seatrial.bench.client_evidence import evidence_of
from seatrial.bench.connection import dialer
from seatrial.bench.decode import record_of
from seatrial.bench.evidence import ClientCalibration
from seatrial.bench.null_server import HOST, REQUEST, null_server
from seatrial.bench.wave import Wave

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.client import WaveResult

STREAMS = 64
TOKENS = 50
GAP_S = 0.004
ROUNDS = 5
TIMEOUT_S = 10.0


def calibrate_client(
    *, streams: int = STREAMS, tokens: int = TOKENS, gap_s: float = GAP_S, rounds: int = ROUNDS
) -> ClientCalibration:
    """Measure one process of the client. A measurement that fails is a calibration without numbers that says why.

    Args:
        streams: Connections.
        tokens: Token events of an answer.
        gap_s: Gap between token events.
        rounds: Answers of each connection; as it is given, all take streams x tokens x gap x rounds = 1 s.
    """
    offered_per_s = streams / gap_s
    try:
        with null_server(tokens=tokens, gap_s=gap_s) as port:
            wave = Wave(
                streams=streams,
                requests=streams * rounds,
                timeout_s=TIMEOUT_S,
                deadline_s=time.perf_counter() + TIMEOUT_S,
            )
            address = Address(tls=False, host=HOST, port=port, path="/")
            result = run_wave(wave, lambda _index: REQUEST, dialer(address, socket_addresses(address)))
    except OSError as impossible:
        return _nothing(streams, offered_per_s, f"the client's own speed couldn't be measured: {impossible}")
    return _calibration(wave, result, tokens, offered_per_s)


def _calibration(wave: Wave, result: WaveResult, tokens: int, offered_per_s: float) -> ClientCalibration:
    records = [record_of(exchange, stream=True) for exchange in result.exchanges]
    failed = [record for record in records if not record.succeeded]
    if result.cut or failed or any(len(record.token_times_s) != tokens for record in records):
        why = failed[0].detail if failed else "not every answer came in time"
        return _nothing(wave.streams, offered_per_s, f"the client's own speed couldn't be measured: {why}")
    times_s = sorted(at_s for record in records for at_s in record.token_times_s)
    cpu_s_per_1k = result.usage.cpu_s / len(times_s) * 1_000
    return ClientCalibration(
        streams=wave.streams,
        parts_per_s=_middle_rate_per_s(times_s),
        offered_parts_per_s=offered_per_s,
        cpu_s_per_1k_parts=cpu_s_per_1k,
        receive_lag_p99_ms=evidence_of(wave, result).receive_lag_p99_ms,
        because=(
            f"one process took {len(times_s):,} token events from a null server of ours over {wave.streams} connections"
            f" (plain HTTP on the loopback) at {cpu_s_per_1k:.3f} CPU seconds for a thousand"
        ),
    )


def _middle_rate_per_s(times_s: Sequence[float]) -> float | None:
    """Return the events per second in the middle half of the time, in which all streams are busy."""
    first_s, seconds = times_s[0], times_s[-1] - times_s[0]
    inside = bisect_left(times_s, first_s + 0.75 * seconds) - bisect_left(times_s, first_s + 0.25 * seconds)
    return inside / (seconds / 2) if seconds > 0 else None


def _nothing(streams: int, offered_per_s: float, because: str) -> ClientCalibration:
    return ClientCalibration(
        streams=streams,
        parts_per_s=None,
        offered_parts_per_s=offered_per_s,
        cpu_s_per_1k_parts=None,
        receive_lag_p99_ms=None,
        because=because,
    )
