from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.bench.progress import TrialProgress
from seatrial.bench.share import CutShareError
from seatrial.bench.unmeasured import Unmeasured
from seatrial.errors import Problem
from seatrial_cdk.smoke_benchmark.runtime.fleet_tallies import LateStartError, ShareLostError, error_document
from tests.constructs.trial_fleet.fleet_records import records, tally
from tests.constructs.trial_fleet.written_course import ROUND, WrittenCourse, step

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.fleet import Fleet
    from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import Position
    from tests.constructs.conftest import DictStore


def test_what_workers_measured_is_taken_in_once(fleet: Fleet, store: DictStore, course: WrittenCourse) -> None:
    position = step(fleet, "choose", step(fleet, "begin"))
    for worker in range(4):
        store.write(f"{ROUND}/0/tally-{worker}.json", tally(records(48)[worker::4]).to_json())
    after = step(fleet, "absorb", position)
    assert after == {"Next": "choose", "Round": 1, "Because": "48 requests of 4 workers are merged"}
    assert step(fleet, "absorb", position) == after
    assert [each.counts.requests for each in course.absorbed] == [48, 48]
    taken = TrialProgress.from_json(store.texts[f"{ROUND}/1/progress.json"])
    assert [each.concurrency for each in taken.levels] == [16]
    assert (taken.elapsed_s, taken.measured_from_s, taken.measured_to_s) == (10.0, 1025.0, 1010.0)
    assert store.texts["runs/dev-chat/request-1/progress.json"] == store.texts[f"{ROUND}/1/progress.json"]


def lose(fleet: Fleet, *, late: bool) -> Position:
    """Load the first level, of which the first worker gets nothing."""
    position = step(fleet, "choose", step(fleet, "begin"))
    for worker in range(1, 4):
        fleet.store.write(f"{ROUND}/0/tally-{worker}.json", tally(records(48)[worker::4]).to_json())
    fleet.store.write(f"{ROUND}/0/tally-0.json", error_document(ValueError("no share"), late=late))
    return position


def test_a_level_that_a_worker_was_late_for_is_loaded_again_with_twice_the_time(fleet: Fleet) -> None:
    position = step(fleet, "absorb", lose(fleet, late=True))
    assert position == {
        "Next": "choose",
        "Round": 1,
        "Because": "1 of 4 workers could not load their share: worker 0: no share",
        "BarrierSeconds": 30.0,
    }
    again = fleet.round(1).progress()
    assert (len(again.levels), again.sent) == (0, 2 + 48)  # no prompt comes twice
    assert step(fleet, "choose", position)["BarrierSeconds"] == 30.0
    assert fleet.round(1).share(0).start_at_epoch_s == 1010.0 + 30.0


def test_workers_that_are_always_late_end_the_trial(fleet: Fleet) -> None:
    position = lose(fleet, late=True)
    position["BarrierSeconds"] = 60.0
    with pytest.raises(LateStartError):
        step(fleet, "absorb", position)


def test_a_worker_that_was_lost_for_another_reason_ends_the_trial(fleet: Fleet) -> None:
    with pytest.raises(ShareLostError):
        step(fleet, "absorb", lose(fleet, late=False))


def test_a_level_that_the_budget_cut_ends_the_measurement_and_not_the_trial(fleet: Fleet) -> None:
    position = lose(fleet, late=False)
    after = step(replace(fleet, now_s=lambda: 1620.0), "absorb", position)
    assert after["Next"] == "choose"
    assert fleet.round(1).progress().stopped_because == (
        "the time for concurrency 16 per copy was over: 1 of 4 workers could not load their share: worker 0: no share"
    )


def test_what_workers_saw_of_a_level_that_was_cut_is_told_together(fleet: Fleet) -> None:
    """One share was over; three workers' requests hang until the time is over."""
    position = step(fleet, "choose", step(fleet, "begin"))
    fleet.store.write(f"{ROUND}/0/tally-0.json", tally(records(48)[::4]).to_json())
    hung = Unmeasured(
        occasion="level",
        concurrency=8,
        sent=4,
        succeeded=0,
        errors={"unanswered": 4},
        first_errors=("unanswered: no complete answer when the time was over",),
        longest_wait_s=600.0,
    )
    for worker in range(1, 4):
        cut = CutShareError([Problem("", "", "SEA507", "the budget ended")], hung)
        fleet.store.write(f"{ROUND}/0/tally-{worker}.json", error_document(cut, late=False))
    step(replace(fleet, now_s=lambda: 1620.0), "absorb", position)
    (seen,) = fleet.round(1).progress().unmeasured
    assert (seen.sent, seen.succeeded, seen.errors) == (12 + 12, 11, {"unanswered": 12, "throttled": 1})
    assert (seen.concurrency, seen.longest_wait_s, seen.because) == (8, 600.0, "the time of 4 workers was over")
