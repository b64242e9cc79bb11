from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from seatrial.documents.prediction import Band
from seatrial.planner.predict.band import ASSUMED, LONGEST_MEASURED_PROMPT, band_of, earned_band
from seatrial.planner.predict.copy_model import Speculation
from seatrial_base.catalog.bands import (
    BandCell,
    BandPlace,
    Facet,
    ModelFamily,
    bits_of,
    family_of,
    release_is_new,
)
from seatrial_base.catalog.engines import find_engine, release_of
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from seatrial_base.catalog import engines

TGI, LMI = find_engine("tgi", "1.1.0"), find_engine("lmi", "0.36.0")


def band(
    engine: engines.Engine = TGI,
    instance_type: str = "ml.g5.2xlarge",
    hub_id: str = "meta-llama/Llama-2-7b-hf",
    quantization: str | None = None,
    speculation: Speculation | None = None,
    calibrated: Band | None = None,
) -> Band:
    architecture, instance = find_model(hub_id), find_instance(instance_type)
    assert architecture is not None
    assert instance is not None
    return band_of(
        engine,
        "9.9",
        architecture,
        instance,
        quantization=quantization,
        speculation=speculation,
        calibrated=calibrated,
    )


def test_on_what_was_fitted_it_is_the_error_of_left_out_rows() -> None:
    found, constants = band(), TGI.performance

    assert (found.throughput, found.latency) == (constants.throughput_error, constants.latency_error)
    assert found.measured
    assert found.because == f"80 % of the rows held out of the fit of {constants.id} were predicted within this band."


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (band(instance_type="ml.g6.2xlarge"), "NVIDIA L4"),
        (band(hub_id="mistralai/Mixtral-8x7B-v0.1"), "mixture of experts"),
        (band(quantization="fp8"), "fp8 weights"),
        (band(speculation=Speculation(3, 0.7, 0.05)), "speculative decoding"),
    ],
)
def test_elsewhere_it_is_an_assumption_with_its_reasons(found: Band, reason: str) -> None:
    assert (found.throughput, found.latency, found.measured) == (ASSUMED, ASSUMED, False)
    assert f"not fitted for: {reason}; ±50% is an assumption until a trial runs." in found.because


def test_points_measured_on_the_deployment_itself_win() -> None:
    own = Band(throughput=0.06, latency=0.09, measured=True, because="Calibrated by 2 points.")

    assert band(LMI, calibrated=own) is own


def test_a_share_is_not_negative() -> None:
    with pytest.raises(ValidationError):
        Band(throughput=-0.1, latency=0.1, measured=True, because="")


H100 = BandPlace("NVIDIA H100 SXM5 80GB", 8, "dense", "vllm", 2, "80x8192x70553706496")
OTHER = replace(H100, shape="32x4096x8030261248")
L4 = replace(OTHER, accelerator="NVIDIA L4")


def cell(
    share: float | None,
    *,
    left_out: Facet = "model",
    accelerator: str | None = None,
    bits: int | None = None,
    family: ModelFamily | None = None,
    throughput: float | None = 0.1,
) -> BandCell:
    return BandCell(left_out, accelerator, bits, family, "vllm", None, None, 40, 3, throughput, share)


def test_the_finest_cell_with_rows_gives_the_band() -> None:
    fine = cell(0.12, accelerator=H100.accelerator, bits=8, family="dense")
    found = earned_band(OTHER, [fine, cell(0.3)], [H100])

    assert found is not None
    assert (found.throughput, found.latency, found.measured) == (0.1, 0.12, True)
    assert found.because == (
        "80 % of measured rows were predicted within this band while their model was left out of the fit, weighed "
        "towards 40 rows of 3 models (NVIDIA H100 SXM5 80GB, 8-bit weights, dense, vllm)."
    )


def test_a_cell_without_latencies_leaves_them_to_a_coarser_one() -> None:
    fine = cell(None, accelerator=H100.accelerator, bits=8, family="dense", throughput=0.05)
    found = earned_band(OTHER, [fine, cell(0.3)], [H100])

    assert found is not None
    assert (found.throughput, found.latency) == (0.05, 0.3)
    assert "the band of throughput while their model was left out of the fit, weighed towards" in found.because
    assert found.because.endswith("weighed towards 40 rows of 3 models (vllm).")


def in_squares(*shares: float) -> float:
    return math.expm1(math.sqrt(sum(math.log1p(share) ** 2 for share in shares)))


def test_an_accelerator_that_nobody_measured_adds_the_error_of_leaving_one_out_with_its_tables() -> None:
    cells = [cell(0.2), cell(0.4, left_out="tables", throughput=0.35)]
    found = earned_band(L4, cells, [H100])

    assert found is not None
    assert found.throughput == pytest.approx(in_squares(0.1, 0.35), abs=1e-3)
    assert found.latency == pytest.approx(in_squares(0.2, 0.4), abs=1e-3)
    assert "while their accelerator, with its tables, was left out of the fit" in found.because
    assert found.because.startswith("The largest of 2 errors that add up in squares: ")
    assert earned_band(OTHER, cells, [H100]) != found


def test_a_release_that_nobody_measured_adds_its_own_error() -> None:
    cells = [cell(0.2), cell(0.1, left_out="lengths"), cell(0.15, left_out="release")]
    found, here = (earned_band(place, cells, [H100], ("release",)) for place in (OTHER, H100))

    assert found is not None
    assert here is not None
    assert found.latency == pytest.approx(in_squares(0.2, 0.15), abs=1e-3)
    assert here.latency == pytest.approx(in_squares(0.1, 0.15), abs=1e-3)
    assert found.extrapolated
    assert " No row has this release of vllm: " in found.because


def test_releases_beyond_those_with_rows_are_new() -> None:
    versions = ("0.4.2", "0.15.1", "0.20.2", "0.33.0", "")

    assert [each for each in versions if release_is_new("vllm", release_of("vllm", each))] == ["0.4.2", "0.33.0"]


def test_without_rows_no_band_is_earned() -> None:
    assert earned_band(OTHER, [], []) is None
    assert earned_band(L4, [cell(0.2)], [H100]) is None


def test_a_model_that_was_measured_there_is_off_by_what_other_lengths_or_degrees_tell() -> None:
    cells = [cell(0.3), cell(0.12, left_out="degree"), cell(0.08, left_out="lengths")]

    here, wider, other = (earned_band(place, cells, [H100]) for place in (H100, replace(H100, degree=4), OTHER))

    assert [found and found.latency for found in (here, wider, other)] == [0.08, 0.12, 0.3]
    assert here is not None
    assert "while their lengths were left out of the fit" in here.because
    assert [found and found.of_same_deployment for found in (here, wider, other)] == [True, False, False]


@pytest.mark.parametrize(
    ("place", "missing"),
    [
        (replace(OTHER, engine="sglang"), "sglang on NVIDIA H100 SXM5 80GB"),
        (replace(OTHER, bits=4), "4-bit weights on NVIDIA H100 SXM5 80GB"),
    ],
)
def test_an_engine_or_a_precision_without_rows_on_the_accelerator_is_called_extrapolated(
    place: BandPlace, missing: str
) -> None:
    elsewhere = replace(place, accelerator="NVIDIA B200 SXM")
    every = (cell(0.2), cell(0.4, left_out="engine"), cell(0.4, left_out="precision"))
    cells = [replace(one, engine=None) for one in every]

    found = earned_band(place, cells, [H100, elsewhere])

    assert found is not None
    assert found.latency == pytest.approx(in_squares(0.2, 0.4), abs=1e-3)
    assert found.kind == "extrapolated"
    assert f" No row has {missing}: " in found.because


def test_the_cell_of_the_degree_and_the_model_is_the_finest() -> None:
    own = replace(cell(0.05, left_out="lengths"), degree=2, shape=H100.shape)
    other = replace(own, shape=OTHER.shape, latency=0.5)

    found = earned_band(H100, [other, own, cell(0.2, left_out="lengths")], [H100])

    assert found is not None
    assert found.latency == 0.05
    assert "of this model (vllm, degree 2)" in found.because


def test_a_degree_without_rows_takes_the_error_of_leaving_one_out_and_is_called_extrapolated() -> None:
    cells = [cell(0.2), cell(0.4, left_out="degree")]

    found, seen = earned_band(replace(OTHER, degree=8), cells, [H100]), earned_band(OTHER, cells, [H100])

    assert found is not None
    assert seen is not None
    assert found.latency == pytest.approx(in_squares(0.2, 0.4), abs=1e-3)
    assert (found.extrapolated, seen.latency, seen.extrapolated) == (True, 0.2, False)
    assert found.because.endswith(" No row has degree 8 on NVIDIA H100 SXM5 80GB: the band is extrapolated.")


def test_longer_prompts_than_measured_and_speculation_are_assumptions() -> None:
    architecture, instance = find_model("Qwen/Qwen3-32B"), find_instance("ml.g5.12xlarge")
    assert architecture is not None
    assert instance is not None

    longer = band_of(LMI, "9.9", architecture, instance, input_tokens=LONGEST_MEASURED_PROMPT + 1)
    drafted = band_of(LMI, "9.9", architecture, instance, speculation=Speculation(3, 0.7, 0.05))

    plain = band_of(LMI, "9.9", architecture, instance)

    assert (longer.measured, drafted.measured) == (False, False)
    assert longer.latency == ASSUMED
    assert drafted.latency > plain.latency


@pytest.mark.parametrize(("quantization", "bits"), [(None, 16), ("fp8", 8), ("awq", 4), ("mxfp4", 4), ("nvfp4", 4)])
def test_the_scales_of_a_group_are_not_counted_as_bits(quantization: str | None, bits: int) -> None:
    assert bits_of(quantization) == bits


@pytest.mark.parametrize(
    ("hub_id", "family"),
    [("Qwen/Qwen3-32B", "dense"), ("openai/gpt-oss-20b", "MoE"), ("deepseek-ai/DeepSeek-V3", "MLA")],
)
def test_each_model_has_one_family(hub_id: str, family: str) -> None:
    architecture = find_model(hub_id)

    assert architecture is not None
    assert family_of(architecture) == family


def test_a_build_of_lmi_that_tells_no_bundle_is_no_surer_than_one_whose_release_nobody_measured() -> None:
    architecture, instance = find_model("Qwen/Qwen3-32B"), find_instance("ml.p5.4xlarge")
    assert architecture is not None
    assert instance is not None
    known, unknown = (band_of(find_engine("lmi", each), each, architecture, instance) for each in ("28", "29"))

    assert (unknown.latency, unknown.extrapolated) == (known.latency, True)


@pytest.mark.parametrize(
    ("instance_type", "block", "quantization", "wide"),
    [
        ("ml.g6e.2xlarge", 128, "fp8", True),
        ("ml.g6.2xlarge", 128, "fp8", True),
        ("ml.g6e.2xlarge", None, "fp8", False),
        ("ml.g6e.2xlarge", 128, "awq", False),
        ("ml.p5.48xlarge", 128, "fp8", False),
    ],
)
def test_fp8_in_blocks_has_no_tuned_kernel_on_ada(
    *, instance_type: str, block: int | None, quantization: str, wide: bool
) -> None:
    """vLLM PR 29217: the L40S took 1.8 times as long; the band was 19 %, called measured."""
    architecture, instance = find_model("Qwen/Qwen3-32B"), find_instance(instance_type)
    assert architecture is not None
    assert instance is not None
    found = band_of(
        LMI, "0.36.0", replace(architecture, weight_block=block), instance, quantization=quantization, input_tokens=500
    )
    assert (found.throughput >= 0.8, "no tuned kernel" in found.because) == (wide, wide)
