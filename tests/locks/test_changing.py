"""A file that is read, changed and replaced is nobody else's meanwhile: of two writers at once none is lost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from seatrial.cli.prices import write_prices
from seatrial.documents.calibration import CalibrationSource, EndpointCalibration, MeasuredPoint
from seatrial.locks.lock_file import changing_file, write_lock
from seatrial.locks.migrate import write_migrated
from seatrial.planner.calibration import write_calibration
from seatrial.planner.planner import make_plan
from seatrial.specs.presets import presets_text, read_team_presets, write_team_preset
from seatrial.specs.prices import RegionPrices, TeamPrices, prices_text
from seatrial.specs.spec_files import calibration_path
from seatrial_base.catalog.presets import PRESETS
from seatrial_base.errors import SpecError
from seatrial_base.files import changing

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.documents.plan import Plan
    from tests.planner.conftest import Ask

SPEC = Path("chat.yaml")
OLD = Path(__file__).parents[1] / "compatibility" / "schema-2" / "endpoints" / "llama-2-7b-chat.lock.json"
ENTRY = EndpointCalibration(
    instance_type="ml.g5.xlarge",
    tensor_parallel_degree=1,
    engine="vllm",
    engine_version="1",
    quantization=None,
    model="m",
    input_tokens=1,
    output_tokens=1,
    fixed=1.0,
    marginal=1.0,
    points=(MeasuredPoint(concurrency=1, output_tok_s=1.0, ms_per_token_p90=1.0),),
    throughput_error=0.1,
    latency_error=None,
    source=CalibrationSource(file="f", digest="d"),
)
PRICES = RegionPrices(date="2026-11-24", source="here", usd_per_hour={"ml.g5.xlarge": 1.0})


@pytest.fixture
def plan(ask: Ask) -> Plan:
    return make_plan(ask())


def interrupted(path: Path, write: Callable[[], object], meanwhile: Callable[[], object]) -> None:
    """Let a writer come while another one is between reading and replacing."""
    writer = Thread(target=write)
    with changing(path):
        writer.start()
        writer.join(0.05)  # were it not kept waiting, it would be done by now
        meanwhile()
    writer.join()


def environments(path: Path) -> set[str]:
    return set(json.loads(path.read_text(encoding="utf-8"))["environments"])


def test_two_plans_of_one_spec_are_both_kept(plan: Plan) -> None:
    path = write_lock(plan.model_copy(update={"environment": "e0"}), SPEC)
    other = path.read_text(encoding="utf-8")
    path.unlink()
    interrupted(path, lambda: write_lock(plan, SPEC), lambda: path.write_text(other, encoding="utf-8"))
    assert environments(path) == {"e0", "dev"}


def test_two_calibrations_of_one_spec_are_both_kept(ask: Ask) -> None:
    spec = ask().path
    path = calibration_path(spec)
    write_calibration(ENTRY, spec, "e0")
    other = path.read_text(encoding="utf-8")
    path.unlink()
    interrupted(path, lambda: write_calibration(ENTRY, spec, "dev"), lambda: path.write_text(other, encoding="utf-8"))
    assert environments(path) == {"e0", "dev"}


def test_two_presets_of_a_team_are_both_kept(tmp_path: Path) -> None:
    path, (first, second, *_) = tmp_path / "presets.yaml", PRESETS.rows
    text = presets_text([second])
    interrupted(path, lambda: write_team_preset(path, first), lambda: path.write_text(text, encoding="utf-8"))
    assert {preset.name for preset in read_team_presets(path)} == {first.name, second.name}


def test_the_prices_of_two_regions_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    text = prices_text(TeamPrices(schema_version="1", regions={"eu-west-1": PRICES}))
    read = {"us-east-1": PRICES}
    interrupted(path, lambda: write_prices(path, read), lambda: path.write_text(text, encoding="utf-8"))
    assert "eu-west-1" in path.read_text(encoding="utf-8")
    assert "us-east-1" in path.read_text(encoding="utf-8")


def test_a_plan_that_is_written_while_a_lock_is_migrated_stays(tmp_path: Path) -> None:
    lock = Path(shutil.copy(OLD, tmp_path))
    whole = json.loads(OLD.read_text(encoding="utf-8"))
    name = next(iter(whole["environments"]))
    for part in ("environments", "digests"):
        whole[part]["e0"] = whole[part][name]
    interrupted(lock, lambda: write_migrated(lock), lambda: lock.write_text(json.dumps(whole), encoding="utf-8"))
    assert "e0" in environments(lock)


def test_nothing_is_left_beside_a_file_that_was_changed(tmp_path: Path) -> None:
    with changing(tmp_path / "chat.lock.json"):
        assert list(tmp_path.iterdir()) == []
    with changing(tmp_path / "chat.lock.json"):
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "chat.lock.json"
    with pytest.raises(SpecError) as refused, changing_file(missing, "SEA403"):
        pass
    assert [problem.rule for problem in refused.value.problems] == ["SEA403"]


def test_whoever_dies_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "chat.lock.json"
    child = os.fork()
    if not child:
        changing(path).__enter__()
        os._exit(0)
    os.waitpid(child, 0)
    with changing(path):
        pass
