"""What the report says of its own measurement: the client, the parser's check, SageMaker's share, the search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.report.document.client import (
    NO_CAUSE,
    container_section,
    service_section,
    validity_section,
    validity_sentence,
    validity_table,
)
from seatrial.report.document.levels import failures_section, levels_section, measurement_section, protocol_table
from seatrial.report.values import sentence
from seatrial_load.documents.container_metrics import Cause, ContainerLoad, ContainerMetrics, LevelMetrics
from seatrial_load.documents.result import ServiceOverhead
from tests.report.rich import VOID_BECAUSE

if TYPE_CHECKING:
    from seatrial_base.table import Table
    from seatrial_load.documents.result import TrialResult


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_a_void_level_is_named_with_its_reason(rich: TrialResult) -> None:
    assert "1 of 8 levels are void (concurrency 64)" in validity_section(rich).paragraphs[0]
    assert f"Concurrency 64 is void: {VOID_BECAUSE}." in levels_section(rich).remarks


def test_the_client_stands_beside_every_level(rich: TrialResult) -> None:
    table = validity_table(rich)
    assert [column.heading for column in table.columns] == [
        "concurrency (per copy)",
        "workers",
        "streams",
        "delivered (in flight)",
        "lag p99 (ms)",
        "busy",
        "delayed",
        "outcome",
    ]
    assert texts(table)[4] == ["16", "1", "32", "31.7", "0.9", "16.0 %", "2.0 %", "✓ valid"]
    assert texts(table)[7] == ["○ 64", "1", "128", "101", "71.4", "99.0 %", "2.0 %", "○ void"]


def test_what_only_an_open_loop_has_gets_its_column_there(rich: TrialResult) -> None:
    first = rich.levels[0]
    assert first.client
    opened = replace(
        first,
        arrival="poisson",
        offered_requests_per_s=0.4,
        client=replace(first.client, send_lag_p99_ms=0.0, full_share=0.25),
    )
    result = replace(rich, levels=(opened, *rich.levels[1:]))
    table = validity_table(result)
    assert [column.label for column in table.columns][5:7] == ["sent late p99", "all connections busy"]
    assert texts(table)[0][5:7] == ["0", "25.0 %"]
    assert table.rows[1][5].missing_because == "it was not measured"
    assert texts(protocol_table(result))[0][1:3] == ["poisson", "0.4"]
    assert protocol_table(result).rows[1][2].missing_because == "a closed loop offers no rate"


def test_the_self_calibration_is_told(rich: TrialResult) -> None:
    facts = {fact.name: (fact.value.text, fact.aside) for fact in validity_section(rich).facts}
    assert facts == {
        "Token events decoded": ("61,204 per s", "of 64,000 offered"),
        "CPU for 1,000 token events": ("0.015 s", ""),
        "Lag p99": ("3.20 ms", ""),
        "Streams": ("128", ""),
    }


def test_without_evidence_nothing_is_claimed(real: TrialResult, empty: TrialResult) -> None:
    assert "no client metrics" in validity_sentence(real)
    assert validity_section(real).tables == ()
    assert validity_section(empty).is_empty


def test_a_client_that_was_never_the_limit_is_said(rich: TrialResult) -> None:
    assert validity_sentence(replace(rich, levels=rich.levels[:7])).endswith("any of the 7 levels.")


def test_what_sagemaker_adds_is_told_in_its_own_names(rich: TrialResult) -> None:
    facts = {fact.name: fact.value.text for fact in service_section(rich).facts}
    assert facts == {
        "End to end at the client": "9,312 ms",
        "ModelLatency": "9,288 ms",
        "OverheadLatency": "11.2 ms",
        "Service and network": "24.5 ms",
    }


def test_a_missing_datapoint_is_a_dash_with_its_reason(rich: TrialResult) -> None:
    overhead = ServiceOverhead(
        client_mean_ms=10.0,
        model_latency_mean_ms=None,
        overhead_latency_mean_ms=None,
        overhead_ms=None,
        because="CloudWatch had no datapoint after 2 minutes",
    )
    section = service_section(replace(rich, overhead=overhead))
    assert section.paragraphs[0] == "SageMaker: CloudWatch had no datapoint after 2 minutes."
    assert [fact.value.missing_because for fact in section.facts[1:]] == [
        "CloudWatch had no datapoint",
        "CloudWatch had no datapoint",
        "both means are needed",
    ]


FULL = ContainerMetrics(
    levels=(
        LevelMetrics(concurrency=8, offered_requests_per_s=None, load=ContainerLoad(waiting_max=0.0)),
        LevelMetrics(
            concurrency=16,
            offered_requests_per_s=2.5,
            load=ContainerLoad(waiting_max=4.0, kv_cache_share_max=0.987, preemptions=12.0, gpu_share_mean=0.91),
        ),
    ),
    causes=(Cause(kind="preempted", because="12 preemptions: the KV cache was full", mend="Set a lower limit."),),
    because="CloudWatch, detailed observability",
)


def test_what_the_containers_told_explains_the_knee(rich: TrialResult) -> None:
    section = container_section(replace(rich, container=FULL))
    assert section.paragraphs == (
        "What holds the throughput back: 12 preemptions: the KV cache was full. Set a lower limit.",
        "Source: CloudWatch, detailed observability.",
    )
    (table,) = section.tables
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["8", "\u2013", "0", "\u2013", "\u2013", "\u2013", "\u2013"],
        ["16 at 2.5/s", "\u2013", "4", "98.7 %", "12", "91.0 %", "\u2013"],
    ]
    assert {cell.missing_because for row in table.rows for cell in row} == {"", "CloudWatch had no value"}
    assert not section.detail


def test_containers_that_explain_nothing_are_a_detail(rich: TrialResult) -> None:
    quiet = container_section(replace(rich, container=replace(FULL, causes=())))
    assert quiet.paragraphs[0] == NO_CAUSE
    silent = container_section(replace(rich, container=ContainerMetrics(because="CloudWatch did not respond: no")))
    assert (silent.paragraphs, silent.tables) == (("Source: CloudWatch did not respond: no.",), ())
    assert (quiet.detail, silent.detail) == (True, True)


def test_what_was_not_asked_is_left_out(real: TrialResult) -> None:
    assert service_section(real).is_empty
    assert container_section(real).is_empty


def test_repeated_failures_stand_beside_failed_ones(rich: TrialResult) -> None:
    (table,) = failures_section(rich).tables
    assert [column.label for column in table.columns] == [
        "concurrency",
        "class",
        "failed",
        "of all",
        "repeated",
        "first message of the service",
    ]
    assert texts(table) == [
        ["32", "throttled", "0", "0 %", "3", "–"],
        ["32", "not_ready", "0", "0 %", "1", "–"],
        ["○ 64", "throttled", "24", "6.2 %", "3", "HTTP 429 ThrottlingException: Rate exceeded"],
        ["○ 64", "not_ready", "0", "0 %", "1", "–"],
    ]


def test_failures_of_the_ramp_have_their_own_column(real: TrialResult) -> None:
    first = replace(real.levels[0], ramp_errors={"timeout": 2})
    section = failures_section(replace(real, levels=(first,)))
    assert texts(section.tables[0]) == [["1", "timeout", "0", "0 %", "0", "2", "–"]]
    assert len(section.paragraphs) == 1


def test_a_calm_trial_has_no_section_of_failures(real: TrialResult) -> None:
    assert failures_section(replace(real, levels=real.levels[:2])).is_empty


def test_why_each_level_was_measured_is_told_in_order(rich: TrialResult) -> None:
    section = measurement_section(rich)
    assert texts(section.tables[2])[:2] == [
        ["1", "16", "28.7 s", "the gate is always measured"],
        ["2", "64", "1 min 43 s", "the last level asked for"],
    ]


@pytest.mark.parametrize(
    ("clause", "written"),
    [
        ("the live model is this one", "The live model is this one."),
        ("it ended.", "It ended."),
        ("ttft_ms p95 rose, error_rate fell", "TTFT p95 rose, error rate fell."),
        ("", ""),
    ],
)
def test_a_clause_becomes_a_sentence(clause: str, written: str) -> None:
    assert sentence(clause) == written
