from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog.engines import find_engine

if TYPE_CHECKING:
    from seatrial_base.catalog.engines import Family

A10G, B200 = "NVIDIA A10G", "NVIDIA B200 SXM"
H100, H200 = "NVIDIA H100 SXM5 80GB", "NVIDIA H200 SXM 141GB"


@pytest.mark.parametrize(
    ("family", "version", "row", "fitted"),
    [
        ("tgi", "1.1.0", "tgi-1.x", True),
        ("tgi", "3.3.6", "tgi", False),
        ("lmi", "0.36.0-lmi27.0.0", "lmi", False),
        ("lmi", "any-tag", "lmi", False),
    ],
)
def test_a_version_takes_the_row_of_its_longest_prefix(family: Family, version: str, row: str, *, fitted: bool) -> None:
    found = find_engine(family, version)

    assert (found.id, found.fitted) == (row, fitted)


def test_an_engine_borrows_constants_and_says_so() -> None:
    vllm = find_engine("vllm", "0.17.0")
    assert (vllm.performance.id, vllm.fitted) == ("vllm-v1", True)
    for borrowing in (find_engine("tgi", "3.3.6"), find_engine("lmi", "27")):
        assert (borrowing.performance, borrowing.fitted) == (vllm.performance, False)


@pytest.mark.parametrize(
    ("family", "accelerators"),
    [
        ("vllm", {A10G, "NVIDIA L40S", H100, H200, B200, "NVIDIA RTX PRO 6000 Blackwell Server"}),
        ("sglang", {H100, H200, B200}),
        ("trtllm", {"NVIDIA A100 80GB SXM4", "NVIDIA L40S", H100, H200, B200}),
    ],
)
def test_an_engine_of_today_is_fitted_on_the_measured_rows(family: Family, accelerators: set[str]) -> None:
    constants = find_engine(family, "").performance

    assert constants.fitted
    assert set(constants.fitted_accelerators) == accelerators
    assert constants.source.startswith("benchmarks/planner_accuracy/fit_engines.py on the published rows")


def test_the_constants_say_where_they_come_from() -> None:
    constants = find_engine("tgi", "1.1.0").performance

    assert "benchmarks/planner_accuracy/fit.py on the 52 published rows of Llama 2 7B" in constants.source
    assert constants.fitted_accelerators == ("NVIDIA A10G", "NVIDIA A100 40GB SXM4")


def test_ranks_that_wait_for_each_other_are_no_slow_host() -> None:
    """The one degree of ml.p4d's rows can't tell both apart: launching a kernel takes as long on either host."""
    assert find_engine("tgi", "1.1.0").performance.skew_s == pytest.approx(1.18e-5)


@pytest.mark.parametrize(
    ("family", "version", "share", "graphs"),
    [
        ("vllm", "0.19.1", 0.90, 0),
        ("vllm", "0.20.0", 0.92, 1_117_000_000),
        ("vllm", "v0.33.0", 0.92, 1_117_000_000),
        ("vllm", "2.0", 0.92, 1_117_000_000),  # AWS's line on Amazon Linux has vLLM 0.22 here
        ("vllm", "2.4", 0.90, 0),  # and nobody says which here
        ("vllm", "", 0.90, 0),
        ("lmi", "0.36.0-lmi24.0.0", 0.90, 0),  # vLLM 0.19.0
        ("lmi", "0.36.0-lmi25.0.0", 0.92, 1_117_000_000),  # vLLM 0.20.1
        ("lmi", "0.38.0-lmi29.0.0", 0.90, 0),  # nobody says which
        ("lmi", "any-tag", 0.90, 0),
        ("sglang", "0.5.20", 0.88, 0),
    ],
)
def test_the_share_of_memory_is_that_of_the_release(family: Family, version: str, share: float, graphs: int) -> None:
    found = find_engine(family, version)
    assert (found.memory_utilization, found.graphs_bytes) == (share, graphs)
