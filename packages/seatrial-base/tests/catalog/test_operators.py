from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.catalog import engines, operators
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import ACCELERATORS, INSTANCES
from seatrial_base.catalog.operators import Kind, Operator, find_operator

GPUS = sorted({instance.accelerator for instance in INSTANCES.rows if instance.link != "neuron"})
SHARED = sorted({instance.accelerator for instance in INSTANCES.rows if instance.link in {"nvlink", "pcie"}})
QUANTIZATIONS = (None, "fp8", "int8", "w8a16", "awq", "gptq", "int4", "mxfp4", "nvfp4")
B200, H100, L40S, A100 = "NVIDIA B200 SXM", "NVIDIA H100 SXM5 80GB", "NVIDIA L40S", "NVIDIA A100 80GB SXM4"


def seconds(operator: Operator, read_s: float, arithmetic_s: float) -> float:
    """Return the time that the catalog's formula gives for the data sheet's reading and arithmetic."""
    sharpness = operator.sharpness
    read = (read_s / operator.memory_efficiency) ** sharpness
    arithmetic = (arithmetic_s / operator.compute_efficiency) ** sharpness
    return operator.latency_s + float((read + arithmetic) ** (1 / sharpness))


def test_every_gpu_of_the_instances_is_known() -> None:
    assert set(GPUS) <= {accelerator.name for accelerator in ACCELERATORS.rows}


@pytest.mark.parametrize("accelerator", GPUS)
@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_gpu_runs_every_operator_at_every_precision(
    accelerator: str, kind: Kind, quantization: str | None
) -> None:
    found = find_operator(accelerator, kind, quantization)

    assert found.operator == kind
    assert found.accelerator == accelerator or not operators.is_measured(accelerator)
    assert operators.is_measured(found.accelerator)


@pytest.mark.parametrize("accelerator", SHARED)
@pytest.mark.parametrize("degree", [2, 4, 8])
def test_every_gpu_that_shares_an_instance_has_links(accelerator: str, degree: int) -> None:
    found = operators.link(accelerator, degree)

    assert found.degree == degree
    assert found.latency_s < 1e-3
    assert found.bus_bytes_s > 1e9


@pytest.mark.parametrize(
    ("accelerator", "measured"),
    [
        (H100, H100),
        ("NVIDIA A10G", L40S),
        ("NVIDIA L4", L40S),
        ("NVIDIA T4", L40S),
        ("NVIDIA A100 40GB SXM4", A100),
        ("NVIDIA RTX PRO 4500 Blackwell Server", "NVIDIA RTX PRO 6000 Blackwell Server"),
    ],
)
def test_an_accelerator_without_tables_takes_those_of_the_one_most_alike(accelerator: str, measured: str) -> None:
    assert find_operator(accelerator, "product", None).accelerator == measured
    assert operators.link(accelerator, 4).accelerator in {accelerator, measured}
    assert operators.is_measured(accelerator) == (accelerator == measured)


def test_an_accelerator_that_nobody_knows_has_no_tables() -> None:
    assert not operators.is_measured("AMD MI300X")
    with pytest.raises(KeyError):
        find_operator("AMD MI300X", "product", None)


@pytest.mark.parametrize(
    ("accelerator", "kind", "quantization", "precision"),
    [
        (H100, "product", None, "16-bit"),
        (H100, "product", "fp8", "fp8"),
        (H100, "product", "int8", "fp8"),
        (A100, "product", "int8", "16-bit"),
        (H100, "product", "w8a16", "16-bit"),
        (H100, "product", "awq", "16-bit"),
        (H100, "experts", "awq", "int4"),
        (H100, "experts", "gptq", "int4"),
        (H100, "experts", "mxfp4", "mxfp4"),
        (A100, "experts", "mxfp4", "16-bit"),
        (B200, "product", "nvfp4", "nvfp4"),
        (H100, "product", "nvfp4", "16-bit"),
        (H100, "experts", "nvfp4", "mxfp4"),
        (A100, "experts", "nvfp4", "16-bit"),
    ],
)
def test_a_precision_without_a_table_takes_the_nearest(
    accelerator: str, kind: Kind, quantization: str | None, precision: str
) -> None:
    assert find_operator(accelerator, kind, quantization).precision == precision


@pytest.mark.parametrize(("asked", "measured"), [(2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (16, 8)])
def test_a_degree_that_nobody_measured_takes_the_next_higher(asked: int, measured: int) -> None:
    assert operators.link(H100, asked).degree == measured


@given(
    st.sampled_from(GPUS),
    st.sampled_from(["product", "experts"]),
    st.sampled_from(QUANTIZATIONS),
    st.integers(1, 100_000),
    st.integers(1, 100_000),
)
def test_no_product_gets_faster_with_more_tokens(
    accelerator: str, kind: Kind, quantization: str | None, tokens: int, more: int
) -> None:
    operator = find_operator(accelerator, kind, quantization)
    few, many = (seconds(operator, 1e-4, count * 1e-7) for count in (tokens, tokens + more))

    assert operator.latency_s < few <= many


@pytest.mark.parametrize("accelerator", GPUS)
@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_no_operator_beats_the_data_sheet(accelerator: str, kind: Kind, quantization: str | None) -> None:
    found = find_operator(accelerator, kind, quantization)

    assert 0 < found.memory_efficiency <= 1
    assert 0 < found.compute_efficiency <= 1
    assert found.sharpness >= 1
    assert 0 <= found.latency_s < 1e-3


@pytest.mark.parametrize("family", ["tgi", "lmi", "sglang", "trtllm"])
def test_an_engines_factors_are_on_operators_that_it_runs(family: engines.Family) -> None:
    for entry in find_engine(family, "").performance.kernel_factors:
        accelerator, kind, precision = entry.rpartition("=")[0].split("/")
        if kind == "link":
            assert accelerator in SHARED
            continue
        found = find_operator(accelerator, _kind(kind), None if precision == "16-bit" else precision)
        assert found.precision == precision


def _kind(name: str) -> Kind:
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    return kinds[name]
