"""One worker of a fleet: loads its share of a level, beginning when the others begin, and writes what it measured."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Protocol

from seatrial.bench.share import LateStartError, load_share
from seatrial_cdk.smoke_benchmark.runtime.beside import beside
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.fleet_round import FleetRound
from seatrial_cdk.smoke_benchmark.runtime.fleet_tallies import error_document
from seatrial_cdk.smoke_benchmark.runtime.runner import trial_request
from seatrial_cdk.smoke_benchmark.runtime.trial_run import LOOK_S, TrialRun
from seatrial_cdk.smoke_benchmark.runtime.trial_store import results_bucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.share import ShareOrder
    from seatrial.bench.tally import LevelTally
    from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import Share, WorkerCall
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


class LoadShare(Protocol):
    """Loads a share (`seatrial.bench.share.load_share`)."""

    def __call__(
        self,
        request: TrialRequest,
        progress: TrialProgress,
        order: ShareOrder,
        *,
        should_stop: Callable[[], str],
    ) -> LevelTally:
        """Wait for the common start, load, and sum up."""


def handler(call: WorkerCall, _context: object) -> Share:
    """Load one share in this function's region."""
    return work(call, results_bucket(), load_share, region=os.environ["AWS_REGION"], now_s=time.time)


def work(call: WorkerCall, store: TrialStore, load: LoadShare, *, region: str, now_s: Callable[[], float]) -> Share:
    """Load one share and write its tally, or why there is none; a share that was loaded already is not loaded again.

    Each worker gives the run's sign of life while it loads, for no step runs meanwhile. Where the endpoint's documents
    were removed, it writes nothing more.
    """
    share, order = call["Share"], call["Order"]
    this = FleetRound(store=store, order=order, number=share["Round"])
    key = this.tally_key(share["Worker"])
    if store.read(key) is None:
        run = TrialRun(
            store=store, properties=TrialProperties.of(order["ResourceProperties"]), order=order, now_s=now_s
        )
        run.why_stop()
        text = _loaded(this, share, load, run, region=region)
        run.check()
        if not run.forgotten:
            store.write(key, text)
    return share


def _loaded(this: FleetRound, share: Share, load: LoadShare, run: TrialRun, *, region: str) -> str:
    late = False
    try:
        order, progress = this.share(share["Worker"]), this.progress()
        late = run.now_s() > order.start_at_epoch_s
        request = trial_request(run.properties, region)
        with beside(LOOK_S, run.why_stop):
            return load(request, progress, order, should_stop=lambda: run.stopped_because).to_json()
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: the step that merges must learn of any failure)
        return error_document(error, late=late or isinstance(error, LateStartError))
