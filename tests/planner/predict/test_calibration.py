"""The entry of a calibration file: what is read, and what is refused."""

from __future__ import annotations

import json

import pytest

from seatrial.documents.calibration import Calibration, read_calibration
from seatrial_base.errors import SpecError

ENTRY: dict[str, object] = {
    "model": "meta-llama/Llama-2-7b-hf",
    "instance_type": "ml.g5.2xlarge",
    "tensor_parallel_degree": 1,
    "engine": "tgi",
    "engine_version": "1.1.0",
    "quantization": None,
    "input_tokens": 256,
    "output_tokens": 256,
    "fixed": 1.25,
    "marginal": 0.8,
    "points": [
        {"concurrency": 1, "output_tok_s": 30, "ms_per_token_p90": 33.5},
        {"concurrency": 8, "output_tok_s": 210},
    ],
    "throughput_error": 0.06,
    "latency_error": None,
    "source": {"file": "report.json", "digest": "0123456789abcdef"},
}
HINT = "\n  hint: run `seatrial calibrate` again, or remove the environment's entry"


def test_an_entry_gives_the_factors_and_what_they_hold_for() -> None:
    found = read_calibration(ENTRY)

    assert found is not None
    assert found.calibration == Calibration(fixed=1.25, marginal=0.8)
    assert (found.instance_type, found.tensor_parallel_degree, found.engine) == ("ml.g5.2xlarge", 1, "tgi")
    assert [(point.concurrency, point.output_tok_s, point.ms_per_token_p90) for point in found.points] == [
        (1, 30.0, 33.5),
        (8, 210.0, None),
    ]
    assert found.source.engine_note == ""


def test_without_an_entry_there_is_no_calibration() -> None:
    assert read_calibration(None) is None


def test_what_is_written_is_read_again() -> None:
    found = read_calibration(ENTRY)
    assert found is not None
    assert read_calibration(json.loads(found.model_dump_json())) == found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fixed": 0}, "fixed: SEA406: Input should be greater than 0"),
        ({"marginal": -1.0}, "marginal: SEA406: Input should be greater than 0"),
        ({"fixed": "1.25"}, "fixed: SEA406: Input should be a valid number"),
        ({"tensor_parallel_degree": 0}, "tensor_parallel_degree: SEA406: Input should be greater than or equal to 1"),
        ({"points": []}, "points: SEA406: Tuple should have at least 1 item after validation, not 0"),
        (
            {"points": [{"concurrency": 1, "output_tok_s": 1}, {"concurrency": 0, "output_tok_s": 1}]},
            "points.1.concurrency: SEA406: Input should be greater than or equal to 1",
        ),
        ({"colour": "red"}, "colour: SEA406: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_field_is_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_calibration(ENTRY | wrong, "chat.calibration.json")
    assert str(refused.value) == f"chat.calibration.json: {message}{HINT}"


def test_every_wrong_field_is_told_at_once() -> None:
    without_engine = {name: value for name, value in ENTRY.items() if name != "engine"}
    with pytest.raises(SpecError) as refused:
        read_calibration(without_engine | {"fixed": -1, "throughput_error": -0.1})
    assert [problem.field for problem in refused.value.problems] == ["engine", "fixed", "throughput_error"]


def test_infinity_and_nan_are_no_factors() -> None:
    for value in (float("inf"), float("nan")):
        with pytest.raises(SpecError, match=r"^calibration: fixed: SEA406"):
            read_calibration(ENTRY | {"fixed": value})
