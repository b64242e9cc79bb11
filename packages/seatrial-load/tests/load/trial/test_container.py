"""What the containers told CloudWatch meanwhile explains a knee, and never stops a trial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest

from seatrial_load.aws.container_metrics import SIMULATED_LABEL
from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.request import Objective, TrialRequest
from seatrial_load.documents.result import LevelResult, TrialResult
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.slo.verdict import judged
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.finalize import conclude_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient

    from seatrial_load.aws.container_metrics import MetricSeries, PromQl

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
OVER = Stop(reason=StopReason.ALL_MEASURED, because="every level of the list was measured")
FULL = {
    "vllm:num_requests_waiting": [[0.0] * 6 + [4.0] * 7],
    "vllm:num_preemptions_total": [[0.0] * 7 + [3.0] * 6],
    "vllm:kv_cache_usage_perc": [[0.4] * 6 + [1.0] * 7],
}
"""A minute at concurrency 4, and another at 8 with a full KV cache; a value each 10 s."""


class NoMetrics:
    """A CloudWatch that nobody has written to."""

    def get_metric_data(self, **_asked: object) -> dict[str, object]:
        return {"MetricDataResults": []}


class MinutesOfGpus:
    """A CloudWatch with two minutes of a component's accelerators."""

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's name)
        **_asked: object,
    ) -> dict[str, object]:
        told = {"gpu": [20.0, 95.0], "memory": [50.0, 80.0]}
        minutes = [datetime.fromtimestamp(at_s, UTC) for at_s in (990.0, 1_020.0)]
        ids = [f"{query['Id']}" for query in MetricDataQueries]
        return {
            "MetricDataResults": [
                {"Id": each, "Values": told[each], "Timestamps": minutes} for each in ids if each in told
            ]
        }


@dataclass
class Ended:
    """A trial of two levels of a minute each, with the second past its SLO."""

    request: TrialRequest
    levels: tuple[LevelResult, ...]

    def told(
        self, promql: PromQl | None, cloudwatch: NoMetrics | MinutesOfGpus | None = None, **changes: object
    ) -> TrialResult:
        progress = TrialProgress(started_at="2026-11-26T01:02:03+00:00", elapsed_s=120.0, sent=0, live=not_proven(),
                                 levels=self.levels, stopped=OVER)  # fmt: skip
        tools = Tools(cloudwatch=cast("CloudWatchClient", cloudwatch or NoMetrics()), promql=promql)
        return conclude_trial(replace(self.request, **changes), progress, tools, patience_s=0.0)  # type: ignore[arg-type]  # of a test


@pytest.fixture
def ended(trial_request: Callable[..., TrialRequest], level: Callable[..., LevelResult]) -> Ended:
    levels = tuple(
        judged(level(at, ttft_ms=ttft_ms, from_s=from_s, to_s=from_s + 55.0), [TTFT])
        for at, ttft_ms, from_s in ((4, 100.0, 1_000.0), (8, 900.0, 1_060.0))
    )
    return Ended(trial_request(objectives=(TTFT,), gate_concurrency=8, expected=None), levels)


def test_each_level_has_what_the_containers_told_in_its_time(ended: Ended, published: Callable[..., PromQl]) -> None:
    container = ended.told(published(FULL)).container
    assert container is not None
    assert container.because == "CloudWatch, detailed observability"
    assert [
        (each.concurrency, each.load.waiting_max, each.load.preemptions, each.load.kv_cache_share_max)
        for each in container.levels
    ] == [(4, 0.0, 0.0, 0.4), (8, 4.0, 3.0, 1.0)]


def test_a_verdict_that_fails_says_what_held_it_back(ended: Ended, published: Callable[..., PromQl]) -> None:
    result = ended.told(published(FULL))
    assert result.container is not None
    assert [cause.kind for cause in result.container.causes] == ["preempted"]
    assert result.verdict.status == "fail"
    assert result.verdict.because.endswith("; 3 preemptions: the KV cache was full, and requests were computed again")


def test_the_queue_of_a_closed_loop_does_not_grow(ended: Ended, published: Callable[..., PromQl]) -> None:
    growing = {"vllm:num_requests_waiting": [[0.0] * 9 + [4.0] * 4]}
    (closed,) = causes_of_trial(ended.told(published(growing)))
    assert closed == "batch_full"
    ended.levels = tuple(
        replace(level, offered_requests_per_s=float(level.concurrency), in_flight_per_copy=float(level.concurrency))
        for level in ended.levels
    )
    assert causes_of_trial(ended.told(published(growing))) == ["batch_full", "queue_grows"]


def causes_of_trial(result: TrialResult) -> list[str]:
    assert result.container is not None
    return [cause.kind for cause in result.container.causes]


def test_a_laptop_explains_no_verdict_and_is_named(ended: Ended, published: Callable[..., PromQl]) -> None:
    result = ended.told(published(FULL, {SIMULATED_LABEL: "llama.cpp"}))
    assert result.container is not None
    assert result.container.because == (
        "the embedded AWS, measured by llama.cpp: no GPU, and another engine than the named one"
    )
    assert "preemption" not in result.verdict.because


def test_accelerators_are_known_without_detailed_observability(ended: Ended, published: Callable[..., PromQl]) -> None:
    """A minute counts at its end: 1050 s and 1080 s lie within the two levels."""
    container = ended.told(published({}), MinutesOfGpus()).container
    assert container is not None
    assert container.because == "CloudWatch, accelerators alone"
    assert [(each.load.gpu_share_mean, each.load.gpu_memory_share_max) for each in container.levels] == [
        (0.2, 0.5),
        (0.95, 0.8),
    ]


def test_nothing_published_is_told_with_what_would_publish_it(ended: Ended, published: Callable[..., PromQl]) -> None:
    container = ended.told(published({})).container
    assert container is not None
    assert (container.levels, container.causes) == ((), ())
    assert "`hosting.metrics.detailed`" in container.because


def test_a_refusal_is_told_and_changes_no_verdict(ended: Ended) -> None:
    def refuse(query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        raise ValueError(f"HTTP 403: {query[2:7]} {start_s:g} {end_s:g} {step_s:g}")

    result = ended.told(refuse)
    assert result.container is not None
    assert result.container.because == "CloudWatch did not respond: HTTP 403: vllm: 1000 1115 10"
    assert result.verdict == ended.told(None).verdict


def test_a_server_that_is_no_sagemaker_is_not_asked(ended: Ended, published: Callable[..., PromQl]) -> None:
    target = replace(ended.request.target, kind="openai", endpoint_url="http://127.0.0.1:9")
    assert ended.told(published(FULL), target=target).container is None


def test_a_result_with_them_is_read_as_it_was_written(ended: Ended, published: Callable[..., PromQl]) -> None:
    result = ended.told(published(FULL))
    assert TrialResult.from_json(result.to_json()) == result
