"""The answer of a probe is kept as a calibration, and the next plan is no longer in doubt."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.calibration import write_calibration
from seatrial.planner.planner import make_plan
from seatrial.probe.answer import calibration_of, probe_answer, refuse_local_engine, replaced
from seatrial.specs.load import load_spec
from seatrial.specs.spec_files import calibration_path
from seatrial_base.errors import SpecError
from tests.probe.conftest import CHEAP, DEAR, LEVEL, NOTE, result_of

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.probe.answer import ProbeAnswer
    from seatrial.specs.load import LoadedSpec
    from tests.probe.conftest import Locked


def measured(locked: Locked, share: float) -> ProbeAnswer:
    """Return the answer of a candidate that is as fast as predicted, times a share."""
    (candidate,) = locked.pinned("candidate")
    plain, point = result_of(candidate), candidate.plan.curve[0]
    level = plain.levels[0]
    times = replace(level.e2e_latency_ms, p90=point.ms_per_token_p90 / share) if level.e2e_latency_ms else None
    level = replace(level, output_tok_s=point.output_tok_s * share, ms_per_token=times)
    return probe_answer(candidate, replace(plain, levels=(level,)))


def plan_after(locked: Locked, answer: ProbeAnswer) -> Plan:
    write_calibration(calibration_of(locked.loaded, answer), locked.loaded.path, "dev")
    return make_plan(again(locked))


def again(locked: Locked) -> LoadedSpec:
    return load_spec(locked.loaded.path, "dev", environments=locked.environments)


def test_a_faster_candidate_becomes_the_plan(locked: Locked) -> None:
    plan = plan_after(locked, measured(locked, 1.2))
    assert (plan.instance_type.value, plan.probe) == (CHEAP, None)


def test_a_slower_candidate_is_not_probed_again(locked: Locked) -> None:
    plan = plan_after(locked, measured(locked, 0.95))
    assert (plan.instance_type.value, plan.probe) == (DEAR, None)


def test_the_format_is_that_of_calibrate(locked: Locked) -> None:
    plan_after(locked, measured(locked, 1.2))
    entry = json.loads(calibration_path(locked.loaded.path).read_text())["environments"]["dev"]
    assert (entry["instance_type"], entry["tensor_parallel_degree"]) == (CHEAP, 1)
    assert entry["model"] == locked.plan.model_name
    assert [point["concurrency"] for point in entry["points"]] == [LEVEL]
    assert (entry["throughput_error"], entry["latency_error"]) == (0.5, 0.5)  # one level tells nothing of the others
    assert entry["source"]["file"] == "chat-probe-candidate.result.json"


def test_points_of_the_same_deployment_stay_and_those_of_another_are_named(locked: Locked) -> None:
    answer = measured(locked, 1.0)
    entry = calibration_of(locked.loaded, answer)
    point = entry.points[0]
    lower = point.model_copy(update={"concurrency": 1, "output_tok_s": point.output_tok_s / 8})
    old = point.model_copy(update={"output_tok_s": point.output_tok_s * 1.5})
    write_calibration(entry.model_copy(update={"points": (lower, old)}), locked.loaded.path, "dev")
    merged = calibration_of(again(locked), answer)
    assert [each.concurrency for each in merged.points] == [1, LEVEL]
    assert merged.points[1] == point
    assert replaced(again(locked), merged) == ""

    write_calibration(entry.model_copy(update={"instance_type": DEAR}), locked.loaded.path, "dev")
    assert calibration_of(again(locked), answer) == entry
    assert replaced(again(locked), entry).startswith(f"{DEAR}, TP 1, ")


def test_without_a_calibration_nothing_is_replaced(locked: Locked) -> None:
    assert replaced(locked.loaded, calibration_of(locked.loaded, measured(locked, 1.0))) == ""


def test_a_local_engine_is_not_kept(locked: Locked) -> None:
    answer = measured(locked, 1.0)
    with pytest.raises(SpecError) as refused:
        calibration_of(locked.loaded, replace(answer, result=replace(answer.result, engine_note=NOTE)))
    assert [problem.rule for problem in refused.value.problems] == ["SEA615"]
    refuse_local_engine("", "dev")


def test_a_level_with_failures_is_not_kept(locked: Locked) -> None:
    answer = measured(locked, 1.0)
    level = replace(answer.result.levels[0], succeeded=40)
    with pytest.raises(SpecError) as refused:
        calibration_of(locked.loaded, replace(answer, result=replace(answer.result, levels=(level,))))
    assert [problem.rule for problem in refused.value.problems] == ["SEA408"]
    assert not calibration_path(locked.loaded.path).exists()
