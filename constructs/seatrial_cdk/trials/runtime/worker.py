"""A call of the function as a worker: one share of a level is loaded, and what becomes of it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from seatrial_cdk.trials.runtime.load_phase import FunctionShare, LoadPhase, WorkerShare, error_document
from seatrial_cdk.trials.runtime.order import OrderRef, read_order
from seatrial_cdk.trials.runtime.ownership import Ownership
from seatrial_load.client import load_share as share
from seatrial_load.documents.strict_json import write_document
from seatrial_load.trial.budget import live_request

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.order import Order


PAUSE_MARGIN_S = 15.0  # of the function's time, for the tally and for the last requests of a level to end


class ShareCall(TypedDict):
    """One call of the function as a worker."""

    Order: OrderRef
    Share: WorkerShare


def load_worker_share(call: ShareCall, context: TrialContext) -> WorkerShare:
    """Load one share and write its tally, or why there is none; a share that was loaded already is not loaded again.

    Where the endpoint's documents were removed, it writes nothing more.
    """
    part, ref = call["Share"], call["Order"]
    order = read_order(context.store, ref["EndpointName"], ref["RequestId"])
    this = LoadPhase(
        store=context.store, endpoint_name=ref["EndpointName"], request_id=ref["RequestId"], number=part["Round"]
    )
    key = this.tally_key(part["Worker"])
    if order is None or context.store.read(key) is not None:
        return part
    ownership = Ownership(
        store=context.store, endpoint_name=ref["EndpointName"], request_id=ref["RequestId"], now_s=context.now_s
    )
    text = _loaded(order, this, part, ownership, context)
    ownership.check()
    if not ownership.forgotten:
        context.store.write(key, text)
    return part


def _loaded(order: Order, this: LoadPhase, part: WorkerShare, ownership: Ownership, context: TrialContext) -> str:
    late = False
    try:
        if (stop := ownership.check()) is not None:
            return error_document(RuntimeError(stop.because), late=False)
        asked, progress = this.share(part["Worker"]), this.progress()
        late = asked.workers > 1 and context.now_s() > asked.start_at_epoch_s
        request = live_request(order.trial_request(context.region), progress)
        with (
            context.repeat_meanwhile(ownership.should_stop),
            context.guarded(request, lambda: ownership.stopped) as should_stop,
        ):
            load = FunctionShare(
                request=request,
                progress=progress,
                level=this.level(),
                share=asked,
                now_s=context.now_s(),
                left_s=context.ends_s - context.now_s() - PAUSE_MARGIN_S,
                should_stop=should_stop,
            )
            return write_document(context.load(load))
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: the step that merges must learn of any failure)
        return error_document(error, late=late or isinstance(error, share.LateStartError))
