"""One run of a trial: measures, and writes the trial's document; whatever happens, there is one in the end.

A trial may be longer than a function: the run then ends with a checkpoint, and `is_complete` orders the next one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from seatrial.bench.progress import TrialProgress
from seatrial.bench.request import TrialRequest
from seatrial.errors import BenchError
from seatrial.secrets import redacted
from seatrial_cdk.smoke_benchmark.runtime.announcement import aws_bus
from seatrial_cdk.smoke_benchmark.runtime.baseline import baseline_of
from seatrial_cdk.smoke_benchmark.runtime.bench_trial import bench_trial
from seatrial_cdk.smoke_benchmark.runtime.beside import beside
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.outcome import keep_error, keep_result
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import aws_copy_scaling, rest, resume
from seatrial_cdk.smoke_benchmark.runtime.trial_run import LOOK_S, TrialRun
from seatrial_cdk.smoke_benchmark.runtime.trial_store import results_bucket
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Bus
    from seatrial_cdk.smoke_benchmark.runtime.bench_trial import Trial
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import CopyScaling
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

PAUSE_MARGIN_S = 15.0  # of the function's time, for the checkpoint and for the last requests of a level to end
LAST_S = 5.0  # of the function's time, in which nothing is waited for
START_S = 60.0  # an order that is carried out within this has the whole budget
MS_PER_S = 1000.0


class OutOfTimeError(Exception):
    """The function's time ends while the trial waits: it begins anew in the next run."""


class LambdaContext(Protocol):
    """What Lambda tells a function about its own run."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how long this run may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run needs.

    Attributes:
        store: Where documents lie.
        scaling: The scaling of copies.
        trial: What measures.
        bus: Where the end of a trial is announced.
        region: Of the endpoint.
        left_s: How long the function may go on.
        now_s: The time, in seconds since the epoch.
        sleep: Waits.
        beside: Does something again and again while a block runs.
    """

    store: TrialStore
    scaling: CopyScaling
    trial: Trial
    bus: Bus
    region: str
    left_s: float
    now_s: Callable[[], float]
    sleep: Callable[[float], None]
    beside: Callable[[Callable[[], object]], AbstractContextManager[None]]


def handler(order: TrialOrder, context: LambdaContext) -> None:
    """Make the ordered run in this function's region."""
    surroundings = Surroundings(
        store=results_bucket(),
        scaling=aws_copy_scaling(),
        trial=bench_trial,
        bus=aws_bus(),
        region=os.environ["AWS_REGION"],
        left_s=context.get_remaining_time_in_millis() / MS_PER_S,
        now_s=time.time,
        sleep=time.sleep,
        beside=partial(beside, LOOK_S),
    )
    perform(order, surroundings)


def perform(order: TrialOrder, surroundings: Surroundings) -> None:
    """Make one run; the trial's document, which `is_complete` waits for, comes last."""
    store, scaling = surroundings.store, surroundings.scaling
    properties = TrialProperties.of(order["ResourceProperties"])
    run = TrialRun(store=store, properties=properties, order=order, now_s=surroundings.now_s)
    if why_not := run.claim():
        _log(why_not)
        return
    with surroundings.beside(run.why_stop):
        ended = _measured(run, surroundings)
    run.check()
    if run.taken_over:
        _log(run.stopped_because)
        return
    if isinstance(ended, TrialProgress | OutOfTimeError) and not run.stopped_because:
        run.pause(ended if isinstance(ended, TrialProgress) else None)
        _log(f"run {order['Run']} ends {_how_far(ended)}; the next one goes on")
        return
    try:
        resume(scaling, store, properties, order["RequestId"])
    except UnavailableError as unavailable:
        _log(f"scaling is left to is_complete: {unavailable}")
    _conclude(run, surroundings, ended)


def _measured(run: TrialRun, surroundings: Surroundings) -> TrialResult | TrialProgress | Exception:
    """Return how the trial or its part ended; an error too is an end, of which the waiting stack must learn."""
    store, properties = run.store, run.properties
    try:
        request = trial_request(properties, surroundings.region)
        rest(surroundings.scaling, store, properties, run.order["RequestId"])
        before, progress = baseline_of(store, properties.endpoint_name), run.checkpoint()
        ends_s = surroundings.now_s() + surroundings.left_s - LAST_S
        return surroundings.trial(
            request if progress else shortened(request, run.late_s),
            resume=progress and replace(progress, elapsed_s=max(progress.elapsed_s, run.late_s)),
            pause_after_s=surroundings.left_s - PAUSE_MARGIN_S,
            on_progress=run.save,
            should_stop=lambda: run.stopped_because,
            baseline=before.result,
            baseline_uri=before.uri,
            sleep=lambda seconds: _sleep(seconds, run, surroundings, ends_s),
        )
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: the waiting stack must learn of any failure)
        return error


def _sleep(seconds: float, run: TrialRun, surroundings: Surroundings, ends_s: float) -> None:
    """Wait for a part of the trial that may take longer than the function, such as a component to wake.

    Raises:
        OutOfTimeError: The function's time would end, or the trial is to stop.
    """
    if run.stopped_because or surroundings.now_s() + seconds > ends_s:
        raise OutOfTimeError
    surroundings.sleep(seconds)


def _how_far(ended: TrialProgress | OutOfTimeError) -> str:
    return f"with {len(ended.levels)} levels" if isinstance(ended, TrialProgress) else "before the first level"


def _conclude(run: TrialRun, surroundings: Surroundings, ended: TrialResult | TrialProgress | Exception) -> None:
    request_id = run.order["RequestId"]
    if run.forgotten:
        _log("stopped: the endpoint's documents are gone")
    elif run.stopped_because:
        _log(f"stopped: {run.stopped_because}")
        keep_error(run.store, run.properties, request_id, run.stopped_because, bus=None)
    elif isinstance(ended, Exception):
        _log(f"error: {ended!r}")
        message = str(ended) or repr(ended)
        _log(*filter(None, [keep_error(run.store, run.properties, request_id, message, bus=surroundings.bus)]))
    elif not isinstance(ended, TrialProgress):
        _log(*keep_result(run.store, run.properties, request_id, ended, bus=surroundings.bus, now_s=run.now_s()))


def shortened(request: TrialRequest, late_s: float) -> TrialRequest:
    """Return the request with what is left of its budget: a run that begins anew after a dead one has less.

    Raises:
        BenchError: SEA507 when nothing is left.
    """
    if late_s <= START_S:
        return request
    left_s = request.load.budget_s - late_s
    if left_s <= 0:
        raise BenchError.of("SEA507", f"the budget of {request.load.budget_s:g} s ended before the trial began")
    return replace(request, load=replace(request.load, budget_s=left_s))


def _log(*lines: str) -> None:
    """Write into the function's log group, credentials masked."""
    sys.stdout.write(redacted("".join(f"{line}\n" for line in lines)))


def trial_request(properties: TrialProperties, region: str) -> TrialRequest:
    """Complete the trial's request with what only the deployed stack knows.

    Raises:
        BenchError: SEA501 when the `Request` property is malformed.
    """
    whole = {
        **json.loads(properties.request),
        "target": {
            "endpoint_name": properties.endpoint_name,
            "inference_component": properties.inference_component_name,
            "region": region,
        },
        "expected": {
            "endpoint_config_name": properties.endpoint_config_name,
            "model_name": properties.model_name,
            "image": properties.image,
        },
    }
    return TrialRequest.from_json(json.dumps(whole))
