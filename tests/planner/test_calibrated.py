from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.calibration import Calibrated, Calibration
from seatrial.documents.prediction import Band
from seatrial.planner.calibration import calibration_warnings
from seatrial.planner.planner import make_plan
from seatrial.planner.resolve import resolve
from seatrial.planner.search.best_first import Search
from seatrial.planner.search.candidate import band_for
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

BAND = Band(throughput=0.06, latency=0.09, measured=True, because="Calibrated by 2 points.")
ON_G5 = Calibrated("ml.g5.2xlarge", 1, Calibration(fixed=0.8, marginal=1.2), BAND)


def test_only_the_deployment_that_was_measured_is_predicted_with_it(ask: Ask) -> None:
    resolved = resolve(ask(serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"]}))
    plain, calibrated = (
        {str(each.candidate): each.candidate.copy.calibration for each in Search(demand).best(resolved.allowed).ranked}
        for demand in (resolved.demand, replace(resolved.demand, calibrated=ON_G5))
    )

    assert set(plain.values()) == {Calibration()}
    assert calibrated.pop("ml.g5.2xlarge with degree 1") == ON_G5.calibration
    assert set(calibrated.values()) == {Calibration()}


def test_its_band_is_that_of_the_calibration(ask: Ask) -> None:
    resolved = resolve(ask(serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"]}))
    demand = replace(resolved.demand, calibrated=ON_G5)
    bands = {
        str(feasible.candidate): band_for(demand, feasible.candidate) == ON_G5.band
        for feasible in Search(demand).best(resolved.allowed).ranked
    }

    assert bands == {
        "ml.g5.2xlarge with degree 1": True,
        "ml.g5.12xlarge with degree 1": False,
        "ml.g5.12xlarge with degree 2": False,
        "ml.g5.12xlarge with degree 4": False,
    }


def test_a_chosen_deployment_that_was_not_measured_says_so() -> None:
    assert calibration_warnings(ON_G5, "ml.g5.2xlarge", 1) == ()
    assert calibration_warnings(None, "ml.g5.2xlarge", 1) == ()
    assert calibration_warnings(ON_G5, "ml.g5.12xlarge", 4) == (
        "The calibration applies to ml.g5.2xlarge with degree 1 only; ml.g5.12xlarge with degree 4 is not calibrated.",
    )


def test_without_a_calibration_file_there_is_none(ask: Ask) -> None:
    assert resolve(ask()).demand.calibrated is None


ENTRY: dict[str, object] = {
    "model": "meta-llama/Llama-2-7b-chat-hf",
    "instance_type": "ml.g5.2xlarge",
    "tensor_parallel_degree": 1,
    "engine": "lmi",
    "engine_version": "0.36.0-lmi27.0.0",
    "quantization": None,
    "input_tokens": 256,
    "output_tokens": 256,
    "fixed": 2.0,
    "marginal": 1.0,
    "points": [{"concurrency": 1, "output_tok_s": 17.0}, {"concurrency": 16, "output_tok_s": 200.0}],
    "throughput_error": 0.06,
    "latency_error": 0.09,
    "source": {"file": "result.json", "digest": "0123456789abcdef", "engine_note": ""},
}


def write(**fields: object) -> None:
    document = {"schema_version": "1", "environments": {"dev": {**ENTRY, **fields}}}
    Path("chat.calibration.json").write_text(json.dumps(document), encoding="utf-8")


def test_the_plan_uses_the_file_beside_the_spec(ask: Ask) -> None:
    before = make_plan(ask())
    write()
    after = make_plan(ask())

    assert after.curve[0].ms_per_token > 1.7 * before.curve[0].ms_per_token  # weights take twice as long to read
    assert after.band == Band(
        throughput=0.06,
        latency=0.09,
        measured=True,
        because="Calibrated with 2 points measured on ml.g5.2xlarge with degree 1, lmi 0.36.0-lmi27.0.0 and 256 + 256 "
        "tokens.",
        points=2,
    )
    assert [text for text in after.warnings if "SEA256" not in text] == []  # its repository is gated
    assert after.spec_digest != before.spec_digest


def test_numbers_of_a_local_engine_are_left_out_and_said(ask: Ask) -> None:
    """An older release wrote them: they scaled a GPU's prediction by a CPU's speed."""
    before = make_plan(ask())
    note = "local-cpu-random-llama (not the model named)"
    write(source={"file": "result.json", "digest": "0123456789abcdef", "engine_note": note})
    plan = make_plan(ask())

    assert (plan.curve, plan.band) == (before.curve, before.band)
    assert plan.warnings[0] == f"Calibration ignored: it was measured with a local engine ({note})."


def test_what_was_measured_otherwise_is_left_out_and_said(ask: Ask) -> None:
    write(engine="tgi", quantization="awq", model="other/model")
    plan = make_plan(ask())

    assert plan.band.points == 0
    assert plan.warnings[0] == ("Calibration ignored: it was measured with tgi, awq weights, other/model.")


def test_a_malformed_entry_is_refused(ask: Ask) -> None:
    write(fixed=-1)

    with pytest.raises(SpecError, match=r"chat\.calibration\.json: fixed: SEA406"):
        make_plan(ask())
