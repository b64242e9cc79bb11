"""Requests of CloudFormation that nobody answered, because every function that took them died before it could."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_base.bounds import LONGEST_ORDER_S, LOST_AFTER_S
from seatrial_cdk.trials.runtime.answer import SENT
from seatrial_cdk.trials.runtime.order import endpoint_of
from seatrial_cdk.trials.runtime.store import RUNS, run_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_cdk.trials.runtime.store import TrialStore

NOTED: Final = "noted"


def note_request(store: TrialStore, event: CustomResourceEvent, now_s: float) -> float:
    """Write a request down as it came, unless an earlier delivery did; return when that was, in s since the epoch.

    Raises:
        UnavailableError: It may not have been written.
    """
    key = run_key(endpoint_of(event), event["RequestId"], NOTED)
    if store.create(key, json.dumps({"at_s": now_s, "event": event})):
        return now_s
    return float(json.loads(store.read(key) or "{}").get("at_s", now_s))


def lost_requests(store: TrialStore, now_s: float) -> Iterator[CustomResourceEvent]:
    """Yield the requests that were noted a while ago and have no answer yet, while CloudFormation waits for one.

    One whose workflow runs is among them: to take it again starts nothing new.

    Raises:
        UnavailableError: They can't be told.
    """
    keys = frozenset(store.keys(f"{RUNS}/"))
    for key in sorted(key for key in keys if key.endswith(f"/{NOTED}.json")):
        if f"{key.removesuffix(f'{NOTED}.json')}{SENT}.json" in keys:
            continue
        noted = json.loads(store.read(key) or "{}")
        if noted and LOST_AFTER_S <= now_s - noted["at_s"] < LONGEST_ORDER_S:
            yield noted["event"]
