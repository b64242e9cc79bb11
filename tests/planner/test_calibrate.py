"""The calibration of the deployment that a lock describes, and the file that keeps it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.calibration import CalibrationSource, MeasuredPoint
from seatrial.planner.calibration import (
    BETWEEN_PROBES_LATENCY,
    BETWEEN_PROBES_THROUGHPUT,
    calibrate_endpoint,
    measured_copy,
    write_calibration,
)
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.band import ASSUMED
from seatrial.planner.predict.simulation import outcome
from seatrial.planner.search.capacity import trial_protocol
from seatrial.specs.load import load_spec
from seatrial.specs.spec_files import calibration_path
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.calibration import EndpointCalibration
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

SOURCE = CalibrationSource(file="report.json", digest="0123456789abcdef")


def points(loaded: LoadedSpec, speeds: dict[int, float]) -> list[MeasuredPoint]:
    """Return points that are faster than predicted by these factors."""
    copy, protocol = measured_copy(loaded, make_plan(loaded)), trial_protocol(loaded.endpoint.trial)
    found = {level: outcome(copy, level, protocol) for level in speeds}
    return [
        MeasuredPoint(
            concurrency=level,
            output_tok_s=found[level].output_tok_s * faster,
            ms_per_token_p90=found[level].ms_per_token.p90 / faster,
        )
        for level, faster in speeds.items()
    ]


def calibrated(loaded: LoadedSpec, speeds: dict[int, float]) -> EndpointCalibration:
    return calibrate_endpoint(loaded, make_plan(loaded), points(loaded, speeds), SOURCE)


def test_the_entry_names_the_deployment_that_was_measured(ask: Ask) -> None:
    loaded = ask()
    plan, entry = make_plan(loaded), calibrated(loaded, {16: 0.8, 1: 0.8})

    assert (entry.model, entry.instance_type) == ("meta-llama/Llama-2-7b-chat-hf", "ml.g5.2xlarge")
    assert (entry.tensor_parallel_degree, entry.quantization) == (1, None)
    assert (entry.engine, entry.engine_version) == (plan.engine.value, plan.engine_version.value)
    assert (entry.input_tokens, entry.output_tokens) == (256, 256)
    assert entry.source == SOURCE
    assert [point.concurrency for point in entry.points] == [1, 16]
    assert entry.fixed > 1.1


def test_the_copy_has_the_limits_of_the_lock(ask: Ask) -> None:
    overrides = {"max_num_seqs": 5, "lora": {"max_adapters": 2}, "extra": {"block_size": 32}, "prefix_caching": True}
    workload = {"input_tokens": 256, "output_tokens": 256, "concurrency": 4, "shared_prefix_tokens": 128}
    loaded = ask(serving={"instance_types": ["ml.g6e.xlarge"], "overrides": overrides}, workload=workload)
    plan = make_plan(loaded)
    copy = measured_copy(loaded, plan)
    assert (copy.max_num_seqs, copy.adapters, copy.engine.kv_block_tokens, copy.shared.tokens) == (5, 2, 32, 128)
    assert copy.batched_tokens == plan.max_num_batched_tokens.value


def test_the_plan_that_uses_it_predicts_the_probes(ask: Ask) -> None:
    loaded = ask(trial={"concurrency_levels": [1, 4, 16]})
    measured = points(loaded, {1: 0.7, 16: 0.8})
    write_calibration(calibrate_endpoint(loaded, make_plan(loaded), measured, SOURCE), loaded.path, "dev")
    curve = {point.concurrency: point for point in make_plan(ask(trial={"concurrency_levels": [1, 4, 16]})).curve}

    for one in measured:
        assert curve[one.concurrency].output_tok_s == pytest.approx(one.output_tok_s, rel=0.05)


def test_two_probes_that_fit_have_the_band_of_probes(ask: Ask) -> None:
    entry = calibrated(ask(), {1: 0.9, 16: 0.9})
    assert (entry.throughput_error, entry.latency_error) == (BETWEEN_PROBES_THROUGHPUT, BETWEEN_PROBES_LATENCY)


def test_points_that_no_factors_can_fit_widen_the_band(ask: Ask) -> None:
    entry = calibrated(ask(), {1: 1.0, 4: 0.5, 16: 1.0})
    assert entry.throughput_error > 2 * BETWEEN_PROBES_THROUGHPUT
    assert entry.latency_error is not None
    assert entry.latency_error > BETWEEN_PROBES_LATENCY


def test_one_concurrency_leaves_the_others_to_an_assumption(ask: Ask) -> None:
    entry = calibrated(ask(), {4: 0.5})
    assert entry.fixed == entry.marginal
    assert (entry.throughput_error, entry.latency_error) == (ASSUMED, ASSUMED)


def test_a_local_engine_is_no_published_configuration(ask: Ask) -> None:
    loaded = ask()
    source = CalibrationSource(
        file="report.json", digest="0123456789abcdef", engine_note="local-cpu (not the model named)"
    )
    entry = calibrate_endpoint(loaded, make_plan(loaded), points(loaded, {1: 0.9, 16: 0.9}), source)
    assert (entry.throughput_error, entry.latency_error) == (ASSUMED, ASSUMED)


def test_the_file_is_written_alike_twice_and_keeps_other_environments(ask: Ask) -> None:
    loaded = ask()
    entry = calibrated(loaded, {1: 0.9, 16: 0.9})
    path = write_calibration(entry, loaded.path, "dev")
    assert path == calibration_path(loaded.path)
    first = path.read_bytes()
    assert write_calibration(entry, loaded.path, "dev").read_bytes() == first

    write_calibration(entry, loaded.path, "prod")
    document = json.loads(path.read_text())
    assert document["schema_version"] == "1"
    assert list(document["environments"]) == ["dev", "prod"]
    assert document["environments"]["dev"] == json.loads(entry.model_dump_json())


def test_a_file_of_something_else_is_left_alone(ask: Ask) -> None:
    loaded = ask()
    entry = calibrated(loaded, {1: 0.9, 16: 0.9})
    path = calibration_path(loaded.path)
    path.write_text("[]")
    with pytest.raises(SpecError, match="SEA405"):
        write_calibration(entry, loaded.path, "dev")
    assert path.read_text() == "[]"


def test_nothing_is_left_behind(ask: Ask, tmp_path: Path) -> None:
    loaded = ask()
    write_calibration(calibrated(loaded, {1: 0.9, 16: 0.9}), loaded.path, "dev")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["chat.calibration.json", "chat.yaml", "environments"]
    assert load_spec(loaded.path, "dev", environments=tmp_path / "environments").calibration is not None
