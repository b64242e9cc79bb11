"""What the doctor makes of what containers told CloudWatch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from seatrial.operations.doctor.diagnose import diagnose
from seatrial.operations.doctor.view import part_rows
from seatrial_load.aws.container_metrics import SIMULATED_LABEL, MetricSeries
from tests.operations.doctor.sample_account import COMPONENT, NOW, Aws, component

if TYPE_CHECKING:
    from collections.abc import Mapping

PART = f"inference component {COMPONENT}"


@dataclass
class Published:
    """Two values of each metric, the first a quarter of the way through the last 15 minutes, the second at the end."""

    values: Mapping[str, tuple[float, float]]
    labels: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        assert (end_s, end_s - start_s, step_s) == (NOW.timestamp(), 900.0, 10.0)
        self.asked.append(query)
        found = self.values.get(query[2:].partition('"')[0])
        return () if found is None else (MetricSeries(self.labels, ((start_s + 225, found[0]), (end_s, found[1]))),)


@pytest.mark.parametrize(
    ("published", "rule", "cause"),
    [
        (
            {"vllm:kv_cache_usage_perc": (0.9, 1.0), "vllm:num_preemptions_total": (2.0, 9.0)},
            "SEA772",
            "7 preemptions: the KV cache was full, and requests were computed again.",
        ),
        ({"vllm:kv_cache_usage_perc": (0.9, 0.96)}, "SEA772", "the KV cache is 96% full."),
        (
            {"vllm:num_requests_waiting": (1.0, 8.0)},
            "SEA773",
            "the queue grows: 1.0 requests in the first half of the time, 8.0 in the second.",
        ),
        (
            {"vllm:num_requests_waiting": (4.0, 4.0), "DCGM_FI_DEV_GPU_UTIL": (20.0, 30.0)},
            "SEA774",
            "up to 4 requests in the queue, and the accelerators compute only 25% of the time.",
        ),
    ],
)
def test_what_holds_an_engine_back_is_named(published: dict[str, tuple[float, float]], rule: str, cause: str) -> None:
    (found,) = diagnose(Aws().examined(promql=Published(published)))
    assert (found.rule, found.place.resource) == (rule, PART)
    assert found.message == f"In the last 15 minutes: {cause}"


@pytest.mark.parametrize(
    "published",
    [
        {"vllm:num_requests_waiting": (4.0, 4.0), "DCGM_FI_DEV_GPU_UTIL": (99.0, 99.0)},
        {"vllm:num_requests_waiting": (0.0, 0.0), "DCGM_FI_DEV_GPU_UTIL": (99.0, 99.0)},
        {},
    ],
)
def test_an_engine_at_work_is_no_problem(published: dict[str, tuple[float, float]]) -> None:
    assert diagnose(Aws().examined(promql=Published(published))) == ()


def test_what_containers_told_is_a_part_of_the_table() -> None:
    told = Published(
        {"vllm:num_requests_running": (3.0, 5.0), "vllm:kv_cache_usage_perc": (0.1, 0.125)},
        {SIMULATED_LABEL: "llama.cpp"},
    )
    rows = part_rows(Aws().examined(promql=told), ())
    status = "running 5, KV cache 12% (measured by llama.cpp)"
    assert [row.status for row in rows if row.part == f"containers of {PART}"] == [status]


def test_a_variant_with_a_model_is_asked_by_its_own_labels_and_an_empty_component_not_at_all() -> None:
    promql = Published({})
    endpoint = {
        "EndpointStatus": "InService",
        "ProductionVariants": [{"VariantName": "AllTraffic", "CurrentInstanceCount": 1, "DesiredInstanceCount": 1}],
    }
    Aws(endpoint=endpoint, components={COMPONENT: component(copies=0)}).examined(promql=promql)
    assert promql.asked == []


def test_a_refusal_is_told_and_is_no_problem() -> None:
    def refuse(query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        raise ValueError(f"HTTP 403: {query[2:6]} {end_s - start_s:g} {step_s:g}")

    found = Aws().examined(promql=refuse)
    assert (found.unreadable, diagnose(found)) == (("metrics of the containers: HTTP 403: vllm 900 10",), ())
