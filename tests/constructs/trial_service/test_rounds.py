from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.bench.level import level_of
from seatrial_cdk.trial_service.runtime.fleet_round import FleetRound, MissingDocumentError
from seatrial_cdk.trial_service.runtime.fleet_tallies import (
    LateStartError,
    ShareLostError,
    error_document,
    merged_tally,
)
from tests.constructs.conftest import OBJECTIVE
from tests.constructs.trial_service.level_records import records, tally

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.custom_resource import TrialOrder
    from tests.constructs.conftest import DictStore

FOLDER = "runs/dev-chat/request-1/run-1/0"


@pytest.fixture
def this(store: DictStore, order: TrialOrder) -> FleetRound:
    return FleetRound(store=store, order=order, number=0)


def test_four_workers_shares_are_one_level(this: FleetRound, store: DictStore) -> None:
    """48 requests measured by one worker, and the same by four: all that is counted or timed is the same."""
    every = records(48)
    for worker in range(4):
        store.write(this.tally_key(worker), tally(every[worker::4]).to_json())
    together, alone = (level_of(each, (OBJECTIVE,)) for each in (merged_tally(this, 4), tally(every)))
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


def test_a_worker_that_could_not_load_spoils_the_level(this: FleetRound, store: DictStore) -> None:
    store.write(this.tally_key(0), tally(records(8)).to_json())
    store.write(this.tally_key(1), error_document(ValueError("it began 3.0 s after the others"), late=True))
    store.write(this.tally_key(2), error_document(KeyError("AWS_REGION"), late=False))
    with pytest.raises(ShareLostError) as lost:
        merged_tally(this, 3)
    assert not isinstance(lost.value, LateStartError)
    assert str(lost.value) == (
        "2 of 3 workers could not load their share: worker 1: it began 3.0 s after the others; worker 2: 'AWS_REGION'"
    )


def test_a_worker_that_left_nothing_is_missed(this: FleetRound, store: DictStore) -> None:
    store.write(this.tally_key(0), tally(records(8)).to_json())
    with pytest.raises(MissingDocumentError) as missing:
        merged_tally(this, 2)
    assert str(missing.value) == f"s3://results/{FOLDER}/tally-1.json is missing"
