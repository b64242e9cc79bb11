"""The steps of a fleet's trial; the tests give them a course of their own, which measures nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.bench.course import Stop
from seatrial.bench.progress import TrialProgress
from seatrial_cdk.trial_service.runtime.fleet_steps import sleep_until, take_step, words_of
from seatrial_cdk.trial_service.runtime.scaling import ALL_SUSPENDED, NONE_SUSPENDED
from seatrial_cdk.trial_service.runtime.trial_run import Lease, read_lease
from seatrial_cdk.trial_service.runtime.ownership import read_turn, take_turn, write_turn
from tests.constructs.conftest import DictScaling, DictStore, level, passing_result
from tests.constructs.trial_service.conftest import refuse
from tests.constructs.trial_service.written_course import BEGUN, COMPONENT, ROUND, TRIAL, Bus, WrittenCourse, step

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trial_service.runtime.fleet import Fleet
    from seatrial_cdk.trial_service.runtime.fleet_calls import Failure, StepCall
    from tests.constructs.trial_service.conftest import Clock


def test_a_run_begins_with_proof_and_a_lease(fleet: Fleet, store: DictStore, scaling: DictScaling) -> None:
    scaling.states[COMPONENT] = NONE_SUSPENDED
    assert step(fleet, "begin") == {"Next": "choose", "Round": 0, "Because": "asked"}
    assert store.texts[f"{ROUND}/0/progress.json"] == BEGUN.to_json()
    assert store.texts["runs/dev-chat/request-1/progress.json"] == BEGUN.to_json()
    assert f"{ROUND}.json" in store.texts
    assert scaling.states[COMPONENT] == ALL_SUSPENDED


def test_a_run_that_another_function_has_is_left_to_it(fleet: Fleet) -> None:
    step(fleet, "begin")
    assert step(fleet, "begin") == {
        "Next": "leave",
        "Round": 0,
        "Because": "run 1 of this trial has begun already",
    }


def test_a_run_goes_on_from_the_checkpoint_of_the_one_before(fleet: Fleet, store: DictStore) -> None:
    before = replace(BEGUN, levels=(level(8, 250.0),), sent=26)
    store.write("runs/dev-chat/request-1/progress.json", before.to_json())
    step(fleet, "begin")
    assert fleet.round(0).progress() == replace(before, runs=2)


def test_a_run_gives_signs_of_life_while_a_component_wakes(
    fleet: Fleet, store: DictStore, course: WrittenCourse, clock: Clock
) -> None:
    """`is_complete` takes a run that is silent for three minutes for dead."""
    course.beginning = lambda _: clock.wait(300.0)
    step(fleet, "begin")
    lease = read_lease(store, "dev-chat", "request-1", 1)
    assert lease is not None
    assert lease.alive_at_s > 1010.0 + 300.0 - 40.0
    assert clock.acts == []


def test_a_component_that_wakes_longer_than_a_function_runs_is_woken_by_the_next_run(
    fleet: Fleet, store: DictStore, course: WrittenCourse
) -> None:
    def wait(_: object) -> None:
        sleep_until(15.0, ends_s=0.0)

    course.beginning = wait
    assert step(fleet, "begin") == {
        "Next": "leave",
        "Round": 0,
        "Because": "this function's time ended before the first level; the next run goes on",
    }
    assert read_lease(store, "dev-chat", "request-1", 1) == Lease(alive_at_s=1010.0, paused=True)
    assert TRIAL not in store.texts


def test_a_cancelled_request_stops_the_beginning(
    fleet: Fleet, store: DictStore, course: WrittenCourse, clock: Clock
) -> None:
    told: list[str] = []

    def cancelled(should_stop: Callable[[], str]) -> None:
        take_turn(store, "dev-chat", "request-2", document="", now_s=2000.0)
        clock.wait(11.0)
        told.append(should_stop())

    course.beginning = cancelled
    assert step(fleet, "choose", step(fleet, "begin"))["Next"] == "conclude"
    assert told == ["CloudFormation went on without this trial: its request was cancelled or deleted"]


def test_a_run_that_begins_anew_has_what_is_left_of_the_budget(
    fleet: Fleet, course: WrittenCourse, clock: Clock
) -> None:
    clock.now_s = 1300.0
    step(fleet, "begin")
    assert [request.load.budget_s for request in course.begun] == [600.0 - 300.0]


def test_scaling_that_cannot_be_restored_spoils_no_result(
    fleet: Fleet, store: DictStore, scaling: DictScaling, course: WrittenCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaling.states[COMPONENT] = NONE_SUSPENDED
    course.steps = [Stop(because="every level was measured")]
    position = step(fleet, "choose", step(fleet, "begin"))
    monkeypatch.setattr(scaling, "suspend", refuse)
    assert step(fleet, "conclude", position)["Next"] == "leave"
    assert store.texts[TRIAL] == passing_result().to_json()
    assert json.loads(store.texts["runs/dev-chat/scaling.json"])["before"] == NONE_SUSPENDED


def test_a_level_is_shared_among_workers(fleet: Fleet) -> None:
    position = step(fleet, "choose", step(fleet, "begin"))
    assert position == {
        "Next": "load",
        "Round": 0,
        "Because": "the gate",
        "Shares": [{"Round": 0, "Worker": worker} for worker in range(4)],  # 16 streams, 4 sockets a function
        "BarrierSeconds": 15.0,
    }
    shares = [fleet.round(0).share(worker) for worker in range(4)]
    assert [share.streams for share in shares] == [4, 4, 4, 4]
    assert {share.start_at_epoch_s for share in shares} == {1010.0 + 15.0}
    # the budget's 600 s end 10 s after their order sooner; a function could go on for 840 s
    assert {share.deadline_epoch_s for share in shares} == {1025.0 + 600.0 - 10.0}


def test_the_time_since_the_order_counts(fleet: Fleet, store: DictStore, course: WrittenCourse) -> None:
    """The budget is the deployment's: what passes between functions is waited for too."""
    course.steps = [Stop(because="the budget ended")]
    step(fleet, "choose", step(fleet, "begin"))
    assert TrialProgress.from_json(store.texts[f"{ROUND}/1/progress.json"]).elapsed_s == 10.0


def test_a_trial_without_a_further_level_is_concluded(
    fleet: Fleet, store: DictStore, scaling: DictScaling, bus: Bus, course: WrittenCourse
) -> None:
    scaling.states[COMPONENT] = NONE_SUSPENDED
    course.steps = [Stop(because="every level was measured")]
    position = step(fleet, "choose", step(fleet, "begin"))
    assert position == {"Next": "conclude", "Round": 1, "Because": "every level was measured"}
    assert step(fleet, "conclude", position)["Next"] == "leave"
    assert course.concluded[0].stopped_because == "every level was measured"
    assert store.texts[TRIAL] == passing_result().to_json()
    assert store.texts["released/dev-chat/result.json"] == passing_result().to_json()
    assert scaling.states[COMPONENT] == NONE_SUSPENDED
    assert [detail["verdict"] for detail in bus.details] == ["pass"]


def test_a_request_that_was_cancelled_stops_the_trial(
    fleet: Fleet, store: DictStore, scaling: DictScaling, bus: Bus
) -> None:
    scaling.states[COMPONENT] = NONE_SUSPENDED
    begun = step(fleet, "begin")
    take_turn(store, "dev-chat", "request-2", document="", now_s=2000.0)
    position = step(fleet, "choose", begun)
    assert position["Next"] == "conclude"
    assert step(fleet, "conclude", position)["Next"] == "leave"
    cancelled = "CloudFormation went on without this trial: its request was cancelled or deleted"
    assert json.loads(store.texts[TRIAL]) == {"error": cancelled}
    assert scaling.states[COMPONENT] == NONE_SUSPENDED
    assert bus.details == []


def test_where_the_endpoints_documents_were_removed_nothing_is_written(
    fleet: Fleet, store: DictStore, scaling: DictScaling
) -> None:
    scaling.states[COMPONENT] = NONE_SUSPENDED
    begun = step(fleet, "begin")
    paused = store.texts["runs/dev-chat/scaling.json"]
    store.clear("dev-chat")
    store.write("runs/dev-chat/scaling.json", paused)
    assert step(fleet, "conclude", begun)["Next"] == "leave"
    assert set(store.texts) == {"runs/dev-chat/scaling.json"}
    assert scaling.states[COMPONENT] == NONE_SUSPENDED


def test_a_run_that_was_taken_over_leaves_everything_as_it_is(fleet: Fleet, store: DictStore) -> None:
    begun = step(fleet, "begin")
    turn = read_turn(store, "dev-chat")
    assert turn
    write_turn(store, "dev-chat", turn.next_run(now_s=1005.0, restart=True))
    for name in ("choose", "conclude"):
        assert step(fleet, name, begun) == {"Next": "leave", "Round": 0, "Because": "run 2 of this trial took over"}
    assert TRIAL not in store.texts


def test_a_trial_that_failed_says_why(fleet: Fleet, store: DictStore, scaling: DictScaling, bus: Bus) -> None:
    scaling.states[COMPONENT] = NONE_SUSPENDED
    step(fleet, "begin")
    cause = json.dumps({"errorMessage": "dev-chat: SEA502: another model is live", "errorType": "BenchError"})
    failure: StepCall = {"Step": "abandon", "Order": fleet.order, "Failure": {"Error": "BenchError", "Cause": cause}}
    assert take_step(failure, fleet)["Next"] == "leave"
    assert json.loads(store.texts[TRIAL]) == {"error": "dev-chat: SEA502: another model is live"}
    assert scaling.states[COMPONENT] == NONE_SUSPENDED
    assert [detail["because"] for detail in bus.details] == ["dev-chat: SEA502: another model is live"]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ({"Error": "States.Timeout"}, "States.Timeout"),
        ({"Error": "States.Runtime", "Cause": "no such path"}, "States.Runtime: no such path"),
        ({"Error": "ValueError", "Cause": '{"errorMessage":"no"}'}, "no"),
        ({"Error": "Sandbox.Timedout", "Cause": "{}"}, "Sandbox.Timedout: {}"),
        ({"Error": "Odd", "Cause": "[1]"}, "Odd: [1]"),
    ],
)
def test_a_failure_is_told_in_the_words_of_what_failed(failure: Failure, words: str) -> None:
    assert words_of(failure) == words
