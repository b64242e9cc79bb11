"""What a step says when it is called by itself; `test_workflow` has their course."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trials.runtime.load_phase import CutLevel
from seatrial_cdk.trials.runtime.steps import failure_message, take_step
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.documents.strict_json import write_document
from seatrial_load.trial import steps
from tests.constructs.trials.conftest import ORDERED_S
from tests.constructs.trials.level_records import records, tally

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import OrderRef
    from seatrial_cdk.trials.runtime.steps import Position, StateFailure
    from tests.constructs.trials.conftest import World

ORDER: OrderRef = {"EndpointName": "dev-chat", "RequestId": "request-1"}
START: Position = {"Next": "choose", "Round": 0, "Because": ""}


def test_a_step_of_documents_that_were_removed_does_nothing(world: World) -> None:
    reached = take_step({"Step": "begin", "Order": ORDER, "Position": START}, world.context)
    assert reached == {"Next": "answer", "Round": 0, "Because": "the endpoint's documents were removed"}
    assert world.store.texts == {}


def test_the_beginning_is_measured_once(ordered: World) -> None:
    for _ in range(2):
        reached = take_step({"Step": "begin", "Order": ORDER, "Position": START}, ordered.context)
        assert reached == {"Next": "choose", "Round": 0, "Because": "asked"}
    assert len(ordered.course.begun) == 1


def test_a_level_is_chosen_with_the_time_that_is_left(ordered: World) -> None:
    take_step({"Step": "begin", "Order": ORDER, "Position": START}, ordered.context)
    ordered.clock.wait(100.0)
    reached = take_step({"Step": "choose", "Order": ORDER, "Position": START}, ordered.context)
    assert (reached["Next"], reached["Because"], reached["Shares"]) == ("load", "the gate", [{"Round": 0, "Worker": 0}])
    take_step({"Step": "choose", "Order": ORDER, "Position": START}, ordered.context)
    share = '"deadline_epoch_s":' + f"{ORDERED_S + 600.0}"
    assert share in ordered.store.texts["runs/dev-chat/request-1/0/share-0.json"].replace(" ", "")


def test_a_level_that_was_taken_in_is_not_taken_in_twice(ordered: World) -> None:
    take_step({"Step": "begin", "Order": ORDER, "Position": START}, ordered.context)
    chosen = take_step({"Step": "choose", "Order": ORDER, "Position": START}, ordered.context)
    from seatrial_cdk.trials.runtime.handler import load_worker_share  # noqa: PLC0415 (only here)

    load_worker_share({"Order": ORDER, "Share": {"Round": 0, "Worker": 0}}, ordered.context)
    for _ in range(2):
        reached = take_step({"Step": "absorb", "Order": ORDER, "Position": chosen}, ordered.context)
        assert (reached["Next"], reached["Round"]) == ("choose", 1)
    assert len(ordered.course.absorbed) == 1


def test_a_cut_level_ends_the_trial_with_what_it_had_measured(ordered: World) -> None:
    over = Stop(reason=StopReason.RUN_TOO_SHORT, because="the remaining 300 s of the function are too short")
    cut = CutLevel(sent=51, stopped=over, seen=None, tally=replace(tally(records(48)), cut=over))
    take_step({"Step": "begin", "Order": ORDER, "Position": START}, ordered.context)
    chosen = take_step({"Step": "choose", "Order": ORDER, "Position": START}, ordered.context)
    ordered.store.write("runs/dev-chat/request-1/0/tally-0.json", write_document(cut))
    context = replace(ordered.context, course=steps)
    reached = take_step({"Step": "absorb", "Order": ORDER, "Position": chosen}, context)
    assert (reached["Next"], reached["Because"]) == ("choose", over.because)
    progress = TrialProgress.from_json(ordered.store.texts["runs/dev-chat/request-1/1/progress.json"])
    assert (progress.levels, progress.stopped) == ((), over)
    (level,) = progress.cut
    assert (level.cut, level.succeeded, level.from_s) == (over.because, 42, ORDERED_S)  # of 48, 6 are the ramp's


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
def test_a_failure_is_told_in_the_words_of_what_failed(failure: StateFailure, words: str) -> None:
    assert failure_message(failure) == words
