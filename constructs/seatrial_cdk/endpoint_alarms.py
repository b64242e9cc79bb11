"""The alarms of an endpoint: it fails, or it is slower than its SLO allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from seatrial.spec.endpoint import Slo
    from seatrial_cdk.llm_endpoint import LlmEndpoint

MINUTES_WATCHED = 5
MINUTES_BAD = 3
ERRORS_PER_MINUTE = 5
US_PER_MS = MS_PER_S


class EndpointAlarms(Construct):
    """Alarms on the component's errors and latency; three bad minutes of five, and no traffic is no alarm.

    Args:
        endpoint: What is watched.
        slo: Bounds the latency; an SLO without latencies has no latency alarm.
        output_tokens: Length of an answer, in tokens.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: LlmEndpoint, slo: Slo, output_tokens: int
    ) -> None:
        super().__init__(scope, construct_id)
        self.errors = _alarm(
            self,
            "Errors",
            endpoint.metric_5xx_errors(),
            threshold=ERRORS_PER_MINUTE,
            description=f"{endpoint.endpoint_name} returns {ERRORS_PER_MINUTE} or more 5XX errors per minute",
        )
        longest_ms = longest_latency_ms(slo, output_tokens)
        self.latency = longest_ms and _alarm(
            self,
            "Latency",
            endpoint.metric_model_latency(statistic="p95"),
            threshold=longest_ms * US_PER_MS,
            description=f"p95 latency of {endpoint.endpoint_name} exceeds its SLO of {longest_ms:g} ms",
        )


def longest_latency_ms(slo: Slo, output_tokens: int) -> float | None:
    """Return the longest end-to-end latency (p95) that an SLO allows, in milliseconds; `None` when it allows any.

    Without a bound on the whole it is that of its parts: TTFT + (output tokens - 1) x TPOT (design.md, tpot_ms).
    """
    if slo.e2e_latency_ms.p95 is not None:
        return slo.e2e_latency_ms.p95
    if slo.ttft_ms.p95 is None or slo.tpot_ms.p95 is None:
        return None
    return slo.ttft_ms.p95 + (output_tokens - 1) * slo.tpot_ms.p95


def _alarm(
    scope: EndpointAlarms, construct_id: str, metric: cloudwatch.Metric, *, threshold: float, description: str
) -> cloudwatch.Alarm:
    return metric.create_alarm(
        scope,
        construct_id,
        alarm_description=description,
        threshold=threshold,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=MINUTES_WATCHED,
        datapoints_to_alarm=MINUTES_BAD,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
