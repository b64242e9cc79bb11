from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trials.runtime.load_phase import (
    CutLevel,
    LoadPhase,
    LostWorker,
    ShareLostError,
    error_document,
    merge_tallies,
)
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.documents.strict_json import write_document
from seatrial_load.metrics.level import level_of
from tests.constructs.conftest import OBJECTIVE
from tests.constructs.trials.level_records import records, tally

if TYPE_CHECKING:
    from tests.constructs.conftest import DictStore


@pytest.fixture
def this(store: DictStore) -> LoadPhase:
    return LoadPhase(store=store, endpoint_name="dev-chat", request_id="request-1", number=0)


def test_four_workers_shares_are_one_level(this: LoadPhase, store: DictStore) -> None:
    """48 requests measured by one worker, and the same by four: all that is counted or timed is the same."""
    every = records(48)
    for worker in range(4):
        store.write(this.tally_key(worker), tally(every[worker::4]).to_json())
    merged = merge_tallies(this, 4)
    assert not isinstance(merged, CutLevel)
    together, alone = (level_of(each, (OBJECTIVE,)) for each in (merged, tally(every)))
    assert (together.requests, together.succeeded) == (alone.requests, alone.succeeded) == (48, 42)
    assert together.errors == alone.errors == {"throttled": 6}
    for metric in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_latency_ms", "ms_per_token"):
        one, other = getattr(together, metric), getattr(alone, metric)
        assert (one.count, one.p50, one.p95, one.max, one.histogram) == (
            other.count,
            other.p50,
            other.p95,
            other.max,
            other.histogram,
        )
        assert one.mean == pytest.approx(other.mean, rel=1e-12)
    assert together.output_tokens_mean == alone.output_tokens_mean == 10.0


def test_a_worker_that_could_not_load_spoils_the_level(this: LoadPhase, store: DictStore) -> None:
    store.write(this.tally_key(0), tally(records(8)).to_json())
    store.write(this.tally_key(1), error_document(ValueError("it began 3.0 s after the others"), late=True))
    store.write(this.tally_key(2), error_document(KeyError("AWS_REGION"), late=False))
    with pytest.raises(ShareLostError) as lost:
        merge_tallies(this, 3)
    assert lost.value.loss == LostWorker.FAILED
    assert str(lost.value) == (
        "2 of 3 workers failed: worker 1: it began 3.0 s after the others; worker 2: 'AWS_REGION'"
    )


def test_a_worker_that_left_nothing_is_missed(this: LoadPhase, store: DictStore) -> None:
    store.write(this.tally_key(0), tally(records(8)).to_json())
    with pytest.raises(ShareLostError) as missing:
        merge_tallies(this, 2)
    assert missing.value.loss == LostWorker.DIED
    assert str(missing.value) == "worker 1 of 2 ended without a result"


def test_workers_that_were_all_too_late_only_had_too_little_time(this: LoadPhase, store: DictStore) -> None:
    store.write(this.tally_key(0), tally(records(8)).to_json())
    store.write(this.tally_key(1), error_document(ValueError("it began 3.0 s after the others"), late=True))
    with pytest.raises(ShareLostError) as lost:
        merge_tallies(this, 2)
    assert lost.value.loss == LostWorker.LATE


def test_a_level_that_was_cut_is_what_was_seen_of_it(this: LoadPhase, store: DictStore) -> None:
    cut = CutLevel(sent=7, stopped=Stop(reason=StopReason.BUDGET, because="the budget ended"), seen=None)
    store.write(this.tally_key(0), write_document(cut))
    assert merge_tallies(this, 1) == cut
