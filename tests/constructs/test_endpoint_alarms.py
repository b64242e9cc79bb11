from __future__ import annotations

import pytest

from seatrial.spec.endpoint import Slo
from seatrial_cdk.endpoint_alarms import longest_latency_ms


@pytest.mark.parametrize(
    ("slo", "longest_ms"),
    [
        ({"e2e_latency_ms": {"p95": 9000}, "ttft_ms": {"p95": 1}, "tpot_ms": {"p95": 1}}, 9000),
        ({"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 100}}, 2000 + 255 * 100),
        ({"ttft_ms": {"p95": 2000}}, None),
        ({"tpot_ms": {"p95": 100}}, None),
        ({"e2e_latency_ms": {"p50": 9000}}, None),
        ({}, None),
    ],
)
def test_the_longest_latency_that_an_slo_allows(slo: dict[str, object], longest_ms: float | None) -> None:
    assert longest_latency_ms(Slo.model_validate(slo), output_tokens=256) == longest_ms
