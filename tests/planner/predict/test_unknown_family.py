from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.prediction import Band
from seatrial.planner.predict.band import stand_in_words, widened
from seatrial_base.catalog.models import MODELS

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture

BAND = Band(throughput=0.1, latency=0.2, measured=True, because="80 % of the rows were within.")
KNOWN = next(model for model in MODELS.rows if model.id == "Qwen/Qwen3-32B")


def test_a_known_family_keeps_its_band() -> None:
    assert (widened(BAND, KNOWN), stand_in_words(KNOWN)) == (BAND, "")


QWEN_9 = replace(KNOWN, unknown_family="qwen9")


@pytest.mark.parametrize(
    ("architecture", "doubt"),
    [
        (QWEN_9, "The model_type qwen9 is unknown, planned as qwen3"),
        (
            replace(KNOWN, unknown_family="deepseek_v4"),
            "The model_type deepseek_v4 is unknown, planned as qwen3, without compressed attention",
        ),
        (replace(KNOWN, state_bytes=4096), "No row has Mamba layers"),
    ],
)
def test_a_family_without_rows_has_twice_the_band_and_is_extrapolated(architecture: Architecture, doubt: str) -> None:
    wider = widened(BAND, architecture)

    assert (wider.throughput, wider.latency, wider.kind) == (0.2, 0.4, "extrapolated")
    assert wider.because == f"{BAND.because} {doubt}, so the band is 2 times as wide: the band is extrapolated."


def test_what_was_measured_on_this_deployment_wins() -> None:
    calibrated = BAND.model_copy(update={"points": 3})

    assert widened(calibrated, QWEN_9) == calibrated
