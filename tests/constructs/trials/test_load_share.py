from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pytest

from seatrial_base.errors import BenchError
from seatrial_cdk.trials.runtime.handler import load_worker_share
from seatrial_cdk.trials.runtime.load_phase import FunctionShare, LoadPhase, cut_level
from seatrial_cdk.trials.runtime.ownership import CANCELLED, take_ownership
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.search import NextLevel
from seatrial_load.trial.dependencies import go_on
from seatrial_load.trial.steps import plan_shares
from tests.constructs.conftest import passing_result, request_of_dev
from tests.constructs.trials.conftest import STOPPED
from tests.constructs.trials.level_records import records, tally

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.handler import ShareCall
    from seatrial_load.trial.steps import LoadedLevel
    from tests.constructs.trials.conftest import World

TALLY = "runs/dev-chat/request-1/0/tally-3.json"
PROGRESS = TrialProgress(started_at="2026-11-21T01:00:00+00:00", elapsed_s=3.0, sent=2, live=passing_result().live)
LEVEL = NextLevel(concurrency=16, because="the gate")


@pytest.fixture
def call(ordered: World) -> ShareCall:
    this = LoadPhase(store=ordered.store, endpoint_name="dev-chat", request_id="request-1", number=0)
    this.write_progress(PROGRESS)
    this.write_level(LEVEL)
    for share in plan_shares(request_of_dev(), PROGRESS, 16, 4, now_epoch_s=1000.0):
        this.write_share(share)
    return {"Order": {"EndpointName": "dev-chat", "RequestId": "request-1"}, "Share": {"Round": 0, "Worker": 3}}


def load(call: ShareCall, world: World) -> None:
    assert load_worker_share(call, world.context) == call["Share"]


def test_a_worker_loads_its_own_share_for_as_long_as_its_function_may(call: ShareCall, ordered: World) -> None:
    load(call, ordered)
    (loaded,) = ordered.load.loads
    assert (loaded.share.worker, loaded.share.workers, loaded.level, loaded.left_s) == (3, 4, LEVEL, 885.0)
    assert ordered.store.texts[TALLY] == tally(records(48)[3::4]).to_json()


def test_a_worker_of_a_request_that_was_followed_loads_nothing(call: ShareCall, ordered: World) -> None:
    take_ownership(ordered.store, "dev-chat", "request-2", document="", now_s=2000.0)
    load(call, ordered)
    assert ordered.load.loads == []
    assert ordered.document(TALLY) == {"error": STOPPED, "late": False}


def test_where_the_endpoints_documents_were_removed_nothing_is_written(call: ShareCall, ordered: World) -> None:
    ordered.store.clear("dev-chat")
    load(call, ordered)
    assert ordered.store.texts == {}


def test_a_share_that_was_loaded_is_not_loaded_again(call: ShareCall, ordered: World) -> None:
    load(call, ordered)
    load(call, ordered)
    assert len(ordered.load.loads) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [(BenchError.of("SEA503", "no credentials"), "SEA503: no credentials"), (TimeoutError(), "TimeoutError()")],
)
def test_a_worker_that_could_not_load_says_why(call: ShareCall, ordered: World, error: Exception, words: str) -> None:
    def failing(_: FunctionShare) -> None:
        raise error

    ordered.load.acting = failing
    load(call, ordered)
    assert ordered.document(TALLY) == {"error": words, "late": False}


def test_a_worker_that_missed_the_common_start_is_told_from_others(call: ShareCall, ordered: World) -> None:
    def failing(_: FunctionShare) -> None:
        raise BenchError.of("SEA507", "worker 3 of 4 was ready 5.0 s after the common start")

    ordered.load.acting = failing
    ordered.clock.wait(15.0 + 5.0)
    load(call, ordered)
    assert ordered.document(TALLY)["late"]


def test_a_share_that_is_not_there_is_an_answer_too(call: ShareCall, ordered: World) -> None:
    call["Share"] = {"Round": 5, "Worker": 3}
    load(call, ordered)
    told = json.loads(ordered.store.texts["runs/dev-chat/request-1/5/tally-3.json"])
    assert told == {"error": "s3://results/runs/dev-chat/request-1/5/share-3.json is missing", "late": False}


@dataclass
class Pool:
    """What of a pool's work decides how a cut level is told."""

    over: tuple[object, ...] = (1, 2, 3)
    records: tuple[object, ...] = ()
    stopped: Stop | None = None
    lost_because: str | None = None


@dataclass
class CutShort:
    """A level that a deadline cut."""

    pool: Pool
    sent: int = 51
    measured: int = 0
    offered_per_s: float | None = None


OVER = Stop(
    reason=StopReason.BUDGET,
    because="the budget of 600 s ended at concurrency 16 per copy (3 of 51 requests had ended)",
)


@pytest.fixture
def whole() -> FunctionShare:
    (share,) = plan_shares(request_of_dev(), PROGRESS, 16, 1, now_epoch_s=1000.0, barrier_s=0.0)
    return FunctionShare(
        request=request_of_dev(),
        progress=PROGRESS,
        level=LEVEL,
        share=share,
        now_s=1000.0,
        left_s=885.0,
        should_stop=go_on,
    )


@pytest.mark.parametrize(
    ("left_s", "reason", "because"),
    [
        (885.0, OVER.reason, OVER.because),
        (
            300.0,
            StopReason.RUN_TOO_SHORT,
            "the remaining 300 s of the function are too short for concurrency 16 per copy "
            "(3 of 51 requests had ended)",
        ),
    ],
)
def test_a_level_that_was_cut_says_whose_time_was_over(
    whole: FunctionShare, left_s: float, reason: StopReason, because: str
) -> None:
    cut = cut_level(replace(whole, left_s=left_s), cast("LoadedLevel", CutShort(Pool(stopped=CANCELLED))), CANCELLED)
    assert (cut.sent, cut.stopped) == (51, CANCELLED)
    assert cut.seen is None
    cut = cut_level(replace(whole, left_s=left_s), cast("LoadedLevel", CutShort(Pool())), OVER)
    assert cut.stopped == Stop(reason=reason, because=because)
    assert cut.seen is not None
