"""Whose turn it is: of all requests that CloudFormation made for an endpoint, trials serve the last one only.

A trial may outlive its request: a sibling resource fails and the creation is rolled back, an update is cancelled, the
stack is deleted. The request that follows takes the turn, and by that stops the load. Requests are told from repeated
deliveries of themselves by when they were seen first, so that a late one never takes the turn back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from seatrial_cdk.smoke_benchmark.runtime.trial_store import seen_key, turn_key

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The request that an endpoint's trials may serve.

    Attributes:
        request_id: The request.
        seen_at_s: When it was seen first, in seconds since the epoch.
        document: The key that its trial's document will have; empty when it needs no trial.
        run: The number of its trial's present run.
        run_at_s: When this run was ordered.
        restarts: How many runs had to be replaced because their function died.
    """

    request_id: str
    seen_at_s: float
    document: str
    run: int = 1
    run_at_s: float
    restarts: int = 0

    def next_run(self, *, now_s: float, restart: bool) -> Turn:
        """Return the same turn with its next run ordered."""
        return replace(self, run=self.run + 1, run_at_s=now_s, restarts=self.restarts + restart)


def read_turn(store: TrialStore, endpoint_name: str) -> Turn | None:
    """Return whose turn it is; `None` when nobody's, or when another release wrote it otherwise."""
    text = store.read(turn_key(endpoint_name))
    if text is None:
        return None
    try:
        return Turn(**json.loads(text))
    except (TypeError, ValueError):
        return None


def write_turn(store: TrialStore, endpoint_name: str, turn: Turn) -> None:
    """Let it be this turn."""
    store.write(turn_key(endpoint_name), json.dumps(asdict(turn)))


def take_turn(store: TrialStore, endpoint_name: str, request_id: str, *, document: str, now_s: float) -> Turn:
    """Give a request the turn, unless a later one has it; return whose turn it is then.

    A repeated delivery of the request that has the turn leaves it as it is.
    """
    seen_at_s = _first_seen(store, endpoint_name, request_id, now_s)
    turn = read_turn(store, endpoint_name)
    if turn is None or (turn.request_id != request_id and turn.seen_at_s <= seen_at_s):
        turn = Turn(request_id=request_id, seen_at_s=seen_at_s, document=document, run_at_s=now_s)
        write_turn(store, endpoint_name, turn)
    return turn


def _first_seen(store: TrialStore, endpoint_name: str, request_id: str, now_s: float) -> float:
    key = seen_key(endpoint_name, request_id)
    if store.create(key, json.dumps({"at_s": now_s})):
        return now_s
    return float(json.loads(store.read(key) or "{}").get("at_s", now_s))
