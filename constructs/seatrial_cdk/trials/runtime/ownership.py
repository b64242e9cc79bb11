"""Which request owns an endpoint: of all that CloudFormation made for it, trials serve the last one only.

A trial may outlive its request: a sibling resource fails and the creation is rolled back, an update is cancelled, the
stack is deleted. The request that follows becomes the owner, and by that stops the load. Requests are told from
repeated deliveries of themselves by when they were seen first, and the owner is written on the condition that nobody
else wrote meanwhile, so that a late one never takes the endpoint back.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from seatrial_base.bounds import LONGEST_ORDER_S
from seatrial_cdk.trials.runtime.store import (
    UnavailableError,
    former_key,
    is_scheduled,
    owner_key,
    read_state,
    run_key,
)
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.store import TrialStore

LOOK_S = 10.0  # between two looks at the owner: each is one read of S3
MOST_WRITES = 5
STOPPED = "CloudFormation cancelled or deleted this trial's request"
CANCELLED = Stop(reason=StopReason.CANCELLED, because=STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The request that an endpoint's trials may serve.

    Attributes:
        seen_at_s: When it was seen first, in seconds since the epoch.
        document: The key that its trial's document will have; empty when it needs no trial.
        budget_s: The trial measures no longer than this.
        former: The key of the document of the trial that it stopped; empty when there was none, or when its time was
            over: the document may have expired since.
    """

    request_id: str
    seen_at_s: float
    document: str
    budget_s: float = 0.0
    former: str = ""
    former_request: str = ""

    def is_over(self, now_s: float) -> bool:
        """Tell whether nothing of its request can be at work any more."""
        return now_s - self.seen_at_s >= LONGEST_ORDER_S


def read_owner(store: TrialStore, endpoint_name: str) -> Owner | None:
    """Return who owns an endpoint; `None` when none does, or when another release wrote it otherwise."""
    return _owner(read_state(store, owner_key(endpoint_name)))


def _owner(text: str | None) -> Owner | None:
    try:
        return None if text is None else Owner(**json.loads(text))
    except (TypeError, ValueError):
        return None


def take_ownership(
    store: TrialStore, endpoint_name: str, request_id: str, *, document: str, now_s: float, budget_s: float = 0.0
) -> Owner:
    """Make a request the owner, unless a later one is; return who is then. A scheduled trial gives way to any.

    A repeated delivery of the request that is the owner leaves it as it is.
    """
    seen_at_s, key = first_seen_s(store, endpoint_name, request_id, now_s), owner_key(endpoint_name)
    for _ in range(MOST_WRITES):
        versioned = store.read_versioned(key)
        before = _owner(store.read(former_key(key)) if versioned is None else versioned.text)
        later = before is not None and before.seen_at_s > seen_at_s and not is_scheduled(before.request_id)
        if before is not None and (before.request_id == request_id or later):
            return before
        former, former_request = ("", "") if before is None else _at_work(before, now_s)
        owner = Owner(
            request_id=request_id,
            seen_at_s=seen_at_s,
            document=document,
            budget_s=budget_s,
            former=former,
            former_request=former_request,
        )
        text = json.dumps(asdict(owner))
        # On the condition that no other call wrote: a plain write of a late delivery would take the endpoint back.
        if store.create(key, text) if versioned is None else store.replace(key, text, versioned.version):
            return owner
    raise UnavailableError(f"writing {store.uri(key)}: {MOST_WRITES} concurrent writes")


def _at_work(before: Owner, now_s: float) -> tuple[str, str]:
    """Return document and request of the trial that a request stops; empty when there is none any more."""
    if before.is_over(now_s):
        return "", ""
    return (before.document, before.request_id) if before.document else (before.former, before.former_request)


def take_if_idle(
    store: TrialStore, endpoint_name: str, wanted: Owner, is_busy: Callable[[Owner], bool]
) -> Owner | None:
    """Make a request the owner, unless the one before is still at work; return that one, `None` when it was made.

    A request that is the owner stays it as it is, unless one of both needs no trial: it gives the endpoint up, or takes
    it again.

    The owner is written on the condition that it is still the one that was looked at: a deployment that comes between
    keeps the endpoint.
    """
    key, text = owner_key(endpoint_name), json.dumps(asdict(wanted))
    for _ in range(MOST_WRITES):
        versioned = store.read_versioned(key)
        before = _owner(store.read(former_key(key)) if versioned is None else versioned.text)
        is_own = before is not None and before.request_id == wanted.request_id
        if before is not None and (before.document == wanted.document if is_own else is_busy(before)):
            return before
        if store.create(key, text) if versioned is None else store.replace(key, text, versioned.version):
            return None
    raise UnavailableError(f"writing {store.uri(key)}: {MOST_WRITES} concurrent writes")


def first_seen_s(store: TrialStore, endpoint_name: str, request_id: str, now_s: float) -> float:
    """Return when a request was seen first, in seconds since the epoch; this is noted, unless it was."""
    key = run_key(endpoint_name, request_id, "seen")
    if store.create(key, json.dumps({"at_s": now_s})):
        return now_s
    return float(json.loads(store.read(key) or "{}").get("at_s", now_s))


@dataclass(slots=True, kw_only=True)
class Ownership:
    """Whether a request still owns its endpoint, as one function sees it.

    Attributes:
        stopped: Why its trial must end at once; None while it may go on.
        forgotten: The endpoint's documents were removed: nothing may be written any more.
    """

    store: TrialStore
    endpoint_name: str
    request_id: str
    now_s: Callable[[], float]
    stopped: Stop | None = None
    forgotten: bool = False
    owner: Owner | None = None
    _looked_s: float = -math.inf

    def should_stop(self) -> Stop | None:
        """Return why the trial must stop; called often, it looks now and then."""
        if self.stopped is None and self.now_s() - self._looked_s >= LOOK_S:
            self._look()
        return self.stopped

    def check(self) -> Stop | None:
        """Return why the trial must stop, by a look of this moment."""
        if self.stopped is None:
            self._look()
        return self.stopped

    def _look(self) -> None:
        self._looked_s = self.now_s()
        try:
            self.owner = read_owner(self.store, self.endpoint_name)
        except UnavailableError:
            return
        self.forgotten = self.owner is None
        if self.owner is None or self.owner.request_id != self.request_id:
            self.stopped = CANCELLED
