from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial_load.documents.result import ClientCalibration, ClientEvidence
from seatrial_load.documents.stop import VoidReason
from seatrial_load.health.client_health import void_of

HEALTHY = ClientEvidence(
    workers=1,
    streams=64,
    receive_lag_p99_ms=0.4,
    delivered_concurrency=63.9,
    cpu_share=0.2,
    run_delay_share=0.01,
    idle_ms=0.3,
    reads_per_s=3_000.0,
)
CALIBRATION = ClientCalibration(
    streams=64,
    parts_per_s=16_000.0,
    offered_parts_per_s=16_000.0,
    cpu_s_per_1k_parts=0.02,
    receive_lag_p99_ms=0.5,
    because="one process took 16,000 token events",
)
REMEDY = "use more workers or an idle machine"


def void_because(
    evidence: ClientEvidence,
    *,
    requested_streams: int | None,
    itl_p50_ms: float | None,
    e2e_p50_ms: float | None = None,
    tpot_p50_ms: float | None = None,
    calibration: ClientCalibration | None = None,
    beside_engine: bool = False,
) -> str:
    found = void_of(
        evidence,
        requested_streams=requested_streams,
        itl_p50_ms=itl_p50_ms,
        e2e_p50_ms=e2e_p50_ms,
        tpot_p50_ms=tpot_p50_ms,
        calibration=calibration,
        beside_engine=beside_engine,
    )
    return "" if found is None else found.because


def judged(**changes: float | None) -> str:
    evidence = replace(HEALTHY, **changes)  # type: ignore[arg-type]  # numbers all
    return void_because(
        evidence, requested_streams=64, itl_p50_ms=20.0, calibration=CALIBRATION, tpot_p50_ms=20.0, e2e_p50_ms=1_300.0
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"receive_lag_p99_ms": 5.1},
            "reads 5.1 ms late (p99), above 10% of the median gap between tokens (20.0 ms)",
        ),
        (
            {"delivered_concurrency": 62.7, "idle_ms": 26.0},
            "62.7 of 64 requests in flight on average, below 98%: streams waited 26.0 ms between two requests",
        ),
        ({"cpu_share": 0.71}, "busiest process at 71% of a core, above 70%"),
        (
            {"reads_per_s": 35_001.0},
            "busiest process at 35,001 reads/s, above 70% of its maximum of 50,000",
        ),
        (
            {"receive_lag_p99_ms": 9.0, "cpu_share": 0.95},
            "reads 9.0 ms late (p99), above 10% of the median gap between tokens (20.0 ms);"
            " busiest process at 95% of a core, above 70%",
        ),
    ],
)
def test_a_level_that_the_client_limited_is_void_and_says_why(changes: dict[str, float | None], reason: str) -> None:
    assert judged(**changes) == f"the client was the limit: {reason}: {REMEDY}"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"receive_lag_p99_ms": 5.0},
        {"receive_lag_p99_ms": None, "cpu_share": None, "delivered_concurrency": None, "reads_per_s": None},
        {"delivered_concurrency": 62.72, "idle_ms": 26.0},
        {"delivered_concurrency": 40.0, "idle_ms": 5.0},
        {"delivered_concurrency": 40.0, "idle_ms": None},
        {"cpu_share": 0.70},
        {"cpu_share": 1.0, "reads_per_s": 99.0},
        {"cpu_share": 1.0, "reads_per_s": None},
        {"reads_per_s": 35_000.0},
    ],
    ids=str,
)
def test_what_does_not_void(changes: dict[str, float | None]) -> None:
    assert judged(**changes) == ""


def test_ten_percent_of_a_long_gap_is_more_than_the_harmless_lag() -> None:
    slow = replace(HEALTHY, receive_lag_p99_ms=30.0)
    assert void_because(slow, requested_streams=64, itl_p50_ms=301.0) == ""
    assert "above 10% of the median gap" in void_because(slow, requested_streams=64, itl_p50_ms=299.0)


def test_bundled_tokens_have_no_gaps_so_tpot_takes_their_place() -> None:
    slow = replace(HEALTHY, receive_lag_p99_ms=30.0)
    assert void_because(slow, requested_streams=64, itl_p50_ms=0.0, tpot_p50_ms=301.0) == ""


def test_an_answer_that_is_not_streamed_is_measured_by_its_whole_time() -> None:
    slow = replace(HEALTHY, receive_lag_p99_ms=30.0)
    assert void_because(slow, requested_streams=64, itl_p50_ms=None, e2e_p50_ms=400.0) == ""
    assert "30.0 ms late (p99), above 10% of the median end-to-end latency (200.0 ms)" in void_because(
        slow, requested_streams=64, itl_p50_ms=None, e2e_p50_ms=200.0
    )


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"receive_lag_p99_ms": 9.0, "cpu_share": 0.95}, (VoidReason.READ_LATE, VoidReason.CPU)),
        ({"delivered_concurrency": 62.7, "idle_ms": 26.0}, (VoidReason.TOO_FEW_IN_FLIGHT,)),
        ({"send_lag_p99_ms": 140.0, "full_share": 0.25}, (VoidReason.CONNECTIONS, VoidReason.SENT_LATE)),
    ],
)
def test_programs_branch_on_the_reasons(changes: dict[str, float | None], reasons: tuple[VoidReason, ...]) -> None:
    evidence = replace(HEALTHY, **changes)  # type: ignore[arg-type]  # numbers all
    found = void_of(evidence, requested_streams=64, itl_p50_ms=20.0, e2e_p50_ms=1_300.0)
    assert found is not None
    assert found.reasons == reasons


def test_an_open_loop_is_void_when_its_arrivals_were_not_those_ordered() -> None:
    late = replace(HEALTHY, delivered_concurrency=12.0, send_lag_p99_ms=140.0, full_share=0.0)
    assert void_because(late, requested_streams=None, itl_p50_ms=20.0, e2e_p50_ms=1_300.0) == (
        "the client was the limit: requests sent 140.0 ms late (p99), above 10% of the median end-to-end"
        f" latency (1300.0 ms): {REMEDY}"
    )
    full = replace(late, send_lag_p99_ms=1.0, full_share=0.25)
    assert void_because(full, requested_streams=None, itl_p50_ms=20.0, e2e_p50_ms=1_300.0) == (
        "the client was the limit: 25% of the requests waited for one of 64 connections"
        f" (load.max_connections): {REMEDY}"
    )
    well = replace(late, send_lag_p99_ms=129.0, full_share=0.01)
    assert void_because(well, requested_streams=None, itl_p50_ms=20.0, e2e_p50_ms=1_300.0) == ""


def test_a_calibration_without_numbers_judges_nothing() -> None:
    failed = replace(CALIBRATION, parts_per_s=None, cpu_s_per_1k_parts=None, because="it couldn't be measured")
    busy = replace(HEALTHY, reads_per_s=80_000.0)
    assert void_because(busy, requested_streams=64, itl_p50_ms=20.0, calibration=failed) == ""


def test_beside_a_local_engine_the_scheduler_parts_the_cores_so_more_lag_is_harmless() -> None:
    late = replace(HEALTHY, receive_lag_p99_ms=49.0)
    assert void_because(late, requested_streams=64, itl_p50_ms=20.0).startswith("the client was the limit: reads")
    assert void_because(late, requested_streams=64, itl_p50_ms=20.0, beside_engine=True) == ""
    later = replace(HEALTHY, receive_lag_p99_ms=51.0)
    assert "reads 51.0 ms late" in void_because(later, requested_streams=64, itl_p50_ms=20.0, beside_engine=True)
