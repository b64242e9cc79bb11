from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Plan, values_digest
from seatrial.locks.lock_file import write_lock
from seatrial.locks.locked_plan import read_edited_plan, read_locked_plan
from seatrial.planner.planner import make_plan
from seatrial.report.terminal.plan import decision_rows
from seatrial.specs.spec_files import lock_path

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def test_a_candidate_needs_an_instance_for_a_while(ask: Ask) -> None:
    plan = make_plan(ask(scaling={"min_copies": 2, "max_copies": 4}))
    start_s = plan.download_timeout_s.value + plan.startup_timeout_s.value
    minutes = start_s / 60 + 10
    assert (plan.trial_update.value, plan.surge_instances.value) == ("candidate", 1)
    assert plan.trial_update.because.startswith(
        f"candidate: one copy more, on 1 instance more within the surge, at most {minutes:.0f} min at $1.515 per hour, "
    )
    assert "in_place: no instance more" in plan.trial_update.because
    assert "verify_only: no instance more" in plan.trial_update.because


def test_a_candidate_takes_accelerators_that_are_free(ask: Ask) -> None:
    plan = make_plan(
        ask(
            serving={"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 1}},
            scaling={"min_copies": 5, "max_copies": 9},
        )
    )
    assert (plan.copies_per_instance.value, plan.instance_count.value) == (4, 2)
    told = "candidate: one copy more, on free accelerators of the planned 2 instances."
    assert plan.trial_update.because.startswith(told)


@pytest.mark.parametrize("update", ["in_place", "verify_only"])
def test_what_is_asked_for_is_told_first(ask: Ask, update: str) -> None:
    plan = make_plan(ask(trial={"update": update}))
    assert plan.trial_update.value == update
    assert plan.trial_update.because.startswith(f"{update}: no instance more")
    assert ("trial of an update", update, plan.trial_update.because) in tuple(decision_rows(plan))


def test_without_a_trial_nothing_is_needed(ask: Ask) -> None:
    plan = make_plan(ask(trial={"mode": "off"}))
    assert plan.trial_update.because == "trial.mode is off: no trial runs."


@pytest.mark.parametrize(
    "scaling",
    [
        {"min_copies": 1, "max_copies": 1},
        {"min_copies": 1, "max_copies": 2},
        {"min_copies": 2, "max_copies": 3},
        {"min_copies": 2, "max_copies": 8},
        {"min_copies": 5, "max_copies": 9},
    ],
)
@pytest.mark.parametrize("instance_type", ["ml.g5.2xlarge", "ml.g5.12xlarge"])
def test_a_candidate_at_the_most_copies_fits_within_the_surge(
    ask: Ask, scaling: dict[str, int], instance_type: str
) -> None:
    serving = {"instance_types": [instance_type], "overrides": {"tensor_parallel_degree": 1}}
    plan = make_plan(ask(serving=serving, scaling=scaling))
    instances = -(-(plan.max_copies + 1) // plan.copies_per_instance.value)
    assert instances <= plan.max_instances + plan.surge_instances.value


def test_a_budget_that_leaves_no_time_to_start_is_warned_of(ask: Ask) -> None:
    told = (
        "trial.budget_minutes 50 leaves a candidate copy 5 min to start, of the 60 min that CloudFormation waits; at "
        "least 10 min are needed."
    )
    assert told in make_plan(ask(trial={"budget_minutes": 50})).warnings
    assert told not in make_plan(ask(trial={"budget_minutes": 50, "update": "in_place"})).warnings
    assert told not in make_plan(ask(trial={"budget_minutes": 50, "mode": "off"})).warnings


@pytest.mark.parametrize(("budget", "warned"), [(45.0, True), (45.1, False), (10.0, False)])
def test_timeouts_beyond_the_hour_are_warned_of(ask: Ask, budget: float, *, warned: bool) -> None:
    """Up to 45 minutes leave a start of 10; the timeouts of this plan allow 20 at least."""
    plan = make_plan(ask(trial={"budget_minutes": budget}))
    told = [warning for warning in plan.warnings if warning.startswith("A candidate copy has ")]
    assert bool(told) is warned


def test_another_wording_is_the_same_plan(ask: Ask) -> None:
    plan = make_plan(ask())
    reworded = plan.model_copy(
        update={
            "warnings": (*plan.warnings, "Another sentence."),
            "copy_count": plan.copy_count.model_copy(update={"because": "In other words."}),
            "band": plan.band.model_copy(update={"because": "In other words."}),
            "regime": plan.regime.model_copy(update={"sentence": "In other words."}),
        }
    )
    assert reworded != plan
    assert reworded.digest == plan.digest == values_digest(plan.model_dump(mode="json"))


@pytest.mark.parametrize("field", ["copy_count", "surge_instances", "trial_update", "max_num_seqs"])
def test_another_value_is_another_plan(ask: Ask, field: str) -> None:
    plan = make_plan(ask())
    document = json.loads(plan.model_dump_json())
    document[field]["value"] = "in_place" if field == "trial_update" else document[field]["value"] + 1
    assert Plan.model_validate_json(json.dumps(document)).digest != plan.digest


def test_a_reason_that_is_changed_by_hand_is_still_seen(ask: Ask) -> None:
    loaded = ask()
    write_lock(make_plan(loaded), loaded.path)
    path = lock_path(loaded.path)
    lock = json.loads(path.read_text(encoding="utf-8"))
    digest = read_locked_plan(loaded).digest
    lock["environments"]["dev"]["copy_count"]["because"] = "In other words."
    path.write_text(json.dumps(lock), encoding="utf-8")
    plan, changed = read_edited_plan(loaded)
    assert (changed.fields, plan.digest) == (("copy_count",), digest)
