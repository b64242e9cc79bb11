from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.bench.progress import TrialProgress
from seatrial.bench.share import plan_shares
from seatrial.errors import BenchError
from seatrial_cdk.trial_service.runtime.fleet_round import FleetRound
from seatrial_cdk.trial_service.runtime.fleet_worker import work
from seatrial_cdk.trial_service.runtime.ownership import take_turn
from tests.constructs.conftest import passing_result, request_of_dev
from tests.constructs.trial_service.level_records import records, tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.share import ShareOrder
    from seatrial.bench.tally import LevelTally
    from seatrial_cdk.trial_service.runtime.custom_resource import TrialOrder
    from seatrial_cdk.trial_service.runtime.fleet_calls import WorkerCall
    from tests.constructs.conftest import DictStore

TALLY = "runs/dev-chat/request-1/run-1/0/tally-3.json"
PROGRESS = TrialProgress(started_at="2026-11-21T01:00:00+00:00", elapsed_s=3.0, sent=2, live=passing_result().live)


class Loaded:
    """A load of a share that asks now and then whether it must stop, and measures what is written."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.loads: list[ShareOrder] = []
        self.stopped = ""

    def __call__(
        self, request: TrialRequest, progress: TrialProgress, order: ShareOrder, *, should_stop: Callable[[], str]
    ) -> LevelTally:
        assert (request.plan_digest, progress.sent) == ("b", 2)
        if self.error:
            raise self.error
        self.loads.append(order)
        self.stopped = should_stop()
        return tally(records(8))


@pytest.fixture
def call(store: DictStore, order: TrialOrder) -> WorkerCall:
    this = FleetRound(store=store, order=order, number=0)
    this.write_progress(PROGRESS)
    for share in plan_shares(request_of_dev(), PROGRESS, 16, 4, now_epoch_s=1000.0):
        this.write_share(share)
    take_turn(store, "dev-chat", "request-1", document="trials/dev-chat/b/request-1.json", now_s=1000.0)
    return {"Order": order, "Share": {"Round": 0, "Worker": 3}}


def load(call: WorkerCall, store: DictStore, loaded: Loaded) -> None:
    assert work(call, store, loaded, region="us-east-1", now_s=lambda: 1010.0) == {"Round": 0, "Worker": 3}


def test_a_worker_loads_its_own_share(call: WorkerCall, store: DictStore) -> None:
    loaded = Loaded()
    load(call, store, loaded)
    assert [(share.worker, share.workers) for share in loaded.loads] == [(3, 4)]
    assert store.texts[TALLY] == tally(records(8)).to_json()


def test_a_worker_gives_the_runs_sign_of_life(call: WorkerCall, store: DictStore) -> None:
    load(call, store, Loaded())
    assert json.loads(store.texts["runs/dev-chat/request-1/run-1.json"])["alive_at_s"] == 1010.0


def test_a_worker_of_a_cancelled_request_stops(call: WorkerCall, store: DictStore) -> None:
    take_turn(store, "dev-chat", "request-2", document="", now_s=2000.0)
    loaded = Loaded()
    load(call, store, loaded)
    assert loaded.stopped == "CloudFormation went on without this trial: its request was cancelled or deleted"


def test_where_the_endpoints_documents_were_removed_nothing_is_written(call: WorkerCall, store: DictStore) -> None:
    store.clear("dev-chat")
    load(call, store, Loaded())
    assert store.texts == {}


def test_a_share_that_was_loaded_is_not_loaded_again(call: WorkerCall, store: DictStore) -> None:
    loaded = Loaded()
    load(call, store, loaded)
    load(call, store, loaded)
    assert len(loaded.loads) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BenchError.of("SEA503", "no credentials"), "SEA503: no credentials"),
        (TimeoutError(), "TimeoutError()"),
    ],
)
def test_a_worker_that_could_not_load_says_why(
    call: WorkerCall, store: DictStore, error: Exception, words: str
) -> None:
    load(call, store, Loaded(error))
    assert json.loads(store.texts[TALLY]) == {"error": words, "late": False}


def test_a_worker_that_missed_the_common_start_is_told_from_others(call: WorkerCall, store: DictStore) -> None:
    late = Loaded(BenchError.of("SEA507", "worker 3 of 4 was ready 5.0 s after the common start"))
    work(call, store, late, region="us-east-1", now_s=lambda: 1000.0 + 15.0 + 5.0)
    assert json.loads(store.texts[TALLY])["late"]


def test_a_share_that_is_not_there_is_an_answer_too(call: WorkerCall, store: DictStore) -> None:
    call["Share"] = {"Round": 5, "Worker": 3}
    work(call, store, Loaded(), region="us-east-1", now_s=lambda: 1010.0)
    told = json.loads(store.texts["runs/dev-chat/request-1/run-1/5/tally-3.json"])
    assert told == {"error": "s3://results/runs/dev-chat/request-1/run-1/5/share-3.json is missing", "late": False}
