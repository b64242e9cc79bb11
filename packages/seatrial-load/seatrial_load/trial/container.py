"""What the containers told CloudWatch during a trial, and how it explains the knee."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_load.aws.clock_skew import shifted
from seatrial_load.aws.cloudwatch import cloudwatch_client, cloudwatch_errors
from seatrial_load.aws.container_metrics import read_container_series, target_labels, with_component_gpus
from seatrial_load.aws.promql import cloudwatch_promql, own_cloudwatch
from seatrial_load.documents.container_metrics import ContainerMetrics, LevelMetrics
from seatrial_load.knee.causes import causes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.aws.container_metrics import ContainerSeries
    from seatrial_load.aws.promql import PromQl
    from seatrial_load.documents.container_metrics import Cause
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult, TrialResult
    from seatrial_load.trial.dependencies import Tools


NOTHING = (
    "CloudWatch has no metric of the container for that time: the endpoint publishes none "
    "(`hosting.metrics.detailed`), or its engine tells none"
)


def promql_of(request: TrialRequest, progress: TrialProgress, tools: Tools) -> PromQl | None:
    """Return whom to ask what the containers told; None where CloudWatch is not asked.

    A CloudWatch that is given without PromQL has none. Behind a local or simulated engine there is a CloudWatch only
    where boto3 is told its address.
    """
    if request.target.kind != "sagemaker" or not tools.asks_cloudwatch or progress.measured_from_s is None:
        return None
    if tools.promql is not None or tools.cloudwatch is not None:
        return tools.promql
    if progress.engine_note and not own_cloudwatch():
        return None
    region, offset_s = request.target.region, progress.clock_offset_s
    now = tools.wall_clock if offset_s is None else shifted(tools.wall_clock, offset_s)
    return cloudwatch_promql(region, tools.credentials, now=now)


def with_container_metrics(result: TrialResult, ask: PromQl | None, tools: Tools) -> TrialResult:
    """Return the result with what the containers told; a verdict that fails says what holds the throughput back.

    Args:
        result: The trial, judged.
        ask: Answers queries; None where CloudWatch is not asked.
        tools: Its CloudWatch is asked for the accelerators of a component that tells none in detail.
    """
    times_s = [time_s for level in result.levels for time_s in (level.from_s, level.to_s) if time_s is not None]
    if ask is None or not times_s:
        return result
    target, from_s, to_s = result.request.target, min(times_s), max(times_s)
    try:
        series = read_container_series(ask, target_labels(target), from_s=from_s, to_s=to_s)
    except (OSError, ValueError) as refused:
        return replace(result, container=ContainerMetrics(because=f"CloudWatch did not answer: {refused}"))
    if not series.gpu and target.inference_component is not None and not result.engine_note:
        with suppress(*cloudwatch_errors()):
            cloudwatch = tools.cloudwatch or cloudwatch_client(target.region)
            series = with_component_gpus(series, cloudwatch, target.inference_component, from_s=from_s, to_s=to_s)
    told = _told(result, series)
    verdict = result.verdict
    if told.causes and verdict.status == "fail" and not series.simulated_by:
        verdict = replace(verdict, because=f"{verdict.because}; {told.causes[0].because}")
    return replace(result, container=told, verdict=verdict)


def _told(result: TrialResult, series: ContainerSeries) -> ContainerMetrics:
    levels = tuple(_levels(result.levels, series))
    if not levels:
        return ContainerMetrics(because=NOTHING)
    source = (
        "CloudWatch, detailed observability" if series.waiting or series.running else "CloudWatch, accelerators alone"
    )
    if series.simulated_by:
        source = f"the embedded AWS, measured by {series.simulated_by}: no GPU, and another engine than the one named"
    return ContainerMetrics(levels=levels, causes=_causes(result, levels), because=source)


def _levels(levels: Sequence[LevelResult], series: ContainerSeries) -> Iterator[LevelMetrics]:
    for level in levels:
        if level.from_s is None or level.to_s is None:
            continue
        load = series.load(level.from_s, level.to_s)
        if not load.is_empty:
            yield LevelMetrics(
                concurrency=level.concurrency, offered_requests_per_s=level.offered_requests_per_s, load=load
            )


def _causes(result: TrialResult, levels: Sequence[LevelMetrics]) -> tuple[Cause, ...]:
    """Return what holds the throughput back at the first level past the knee; without one, at the highest.

    The queue of a closed loop can't grow: it sends no more than it has in flight.
    """
    knee = result.knee.concurrency if result.knee is not None else None
    past = [level for level in levels if knee is not None and level.concurrency > knee]
    level = (past or levels[-1:])[0]
    return tuple(
        cause
        for cause in causes_of(level.load)
        if cause.kind != "queue_grows" or level.offered_requests_per_s is not None
    )
