from __future__ import annotations

import pytest
from pydantic import ValidationError

from seatrial.catalog import engines, instances, models
from seatrial.predict.band import ASSUMED, Band, band_of
from seatrial.predict.copy_model import Speculation

TGI, LMI = engines.find("tgi", "1.1.0"), engines.find("lmi", "0.36.0")


def band(
    engine: engines.Engine = TGI,
    instance_type: str = "ml.g5.2xlarge",
    hub_id: str = "meta-llama/Llama-2-7b-hf",
    quantization: str | None = None,
    speculation: Speculation | None = None,
    calibrated: Band | None = None,
) -> Band:
    architecture, instance = models.find(hub_id), instances.find(instance_type)
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
        (band(LMI), "lmi 9.9; NVIDIA A10G"),
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
