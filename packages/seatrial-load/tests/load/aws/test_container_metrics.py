from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from seatrial_load.aws.container_metrics import (
    SIMULATED_LABEL,
    MetricSeries,
    PromQl,
    first_token_query,
    read_container_series,
    target_labels,
)
from seatrial_load.documents.container_metrics import ContainerLoad
from seatrial_load.documents.request import Statistic, TrialTarget

COMPONENT = TrialTarget(endpoint_name="chat", inference_component="chat-model", region="eu-west-1")


Published = dict[str, list[list[float]]]
Publish = Callable[..., PromQl]


Loads = Callable[..., list[ContainerLoad]]


@pytest.fixture
def loads(published: Publish) -> Loads:
    """Return what tells the loads of some windows by what was published."""

    def told(rows: Published, *windows: tuple[float, float]) -> list[ContainerLoad]:
        series = read_container_series(published(rows), target_labels(COMPONENT), from_s=0.0, to_s=60.0)
        return [series.load(*window) for window in windows]

    return told


def test_a_component_and_a_variant_are_told_by_their_labels() -> None:
    asked: list[str] = []

    def ask(query: str, **_times: float) -> tuple[MetricSeries, ...]:
        asked.append(query)
        return ()

    read_container_series(ask, target_labels(COMPONENT), from_s=0.0, to_s=60.0)
    assert asked[0] == '{"vllm:num_requests_running","aws.sagemaker.inference_component.name"="chat-model"}'
    variant = replace(COMPONENT, inference_component=None, target_variant="AllTraffic")
    assert target_labels(variant) == {
        "aws.sagemaker.endpoint.name": "chat",
        "aws.sagemaker.variant.name": "AllTraffic",
    }


def test_requests_of_all_copies_are_added_and_the_fullest_cache_counts(loads: Loads) -> None:
    rows = {
        "vllm:num_requests_running": [[4.0, 8.0, 8.0], [3.0, 8.0, 7.0]],
        "vllm:num_requests_waiting": [[0.0, 0.0, 6.0], [0.0, 2.0, 5.0]],
        "vllm:kv_cache_usage_perc": [[0.2, 0.9, 0.8], [0.1, 0.5, 0.97]],
        "DCGM_FI_DEV_GPU_UTIL": [[50.0, 100.0, 90.0]],
        "DCGM_FI_DEV_FB_USED": [[20.0, 20.0, 30.0]],
        "DCGM_FI_DEV_FB_FREE": [[20.0, 20.0, 10.0]],
    }
    assert loads(rows, (0.0, 20.0)) == [
        ContainerLoad(
            running_max=16.0,
            waiting_max=11.0,
            waiting_early=1.0,
            waiting_late=11.0,
            kv_cache_share_max=0.97,
            gpu_share_mean=0.8,
            gpu_memory_share_max=0.75,
        )
    ]


def test_preemptions_are_the_rise_of_the_counter_within_the_time_a_restart_included(loads: Loads) -> None:
    counter = {"vllm:num_preemptions_total": [[5.0, 5.0, 9.0, 2.0]]}
    first, second = loads(counter, (0.0, 10.0), (11.0, 30.0))
    assert (first.preemptions, second.preemptions) == (0.0, 4.0 + 2.0)


def test_sglang_is_asked_by_its_own_names_where_vllm_tells_nothing(loads: Loads) -> None:
    rows = {"sglang:num_queue_reqs": [[3.0]], "sglang:token_usage": [[0.5]]}
    assert loads(rows, (0.0, 5.0)) == [ContainerLoad(waiting_max=3.0, waiting_early=3.0, kv_cache_share_max=0.5)]


def test_what_nobody_published_is_missing_and_not_zero(loads: Loads) -> None:
    (nothing,) = loads({}, (0.0, 60.0))
    assert nothing.is_empty


def test_what_measured_in_place_of_an_engine_is_told(published: Publish) -> None:
    promql = published({"vllm:num_requests_waiting": [[1.0]]}, {SIMULATED_LABEL: "a laptop"})
    series = read_container_series(promql, target_labels(COMPONENT), from_s=0.0, to_s=60.0)
    assert series.simulated_by == "a laptop"


@pytest.mark.parametrize(
    ("statistic", "told"), [("mean", "histogram_avg("), ("p50", "histogram_quantile(0.5, "), ("p99", "(0.99, ")]
)
def test_first_tokens_are_those_of_all_copies_of_either_engine(statistic: Statistic, told: str) -> None:
    query = first_token_query(target_labels(COMPONENT), statistic)
    assert query.count(f'{told}sum(rate({{"') == query.count(" or ") + 1 == 4
    assert query.count('"aws.sagemaker.inference_component.name"="chat-model"') == 4
