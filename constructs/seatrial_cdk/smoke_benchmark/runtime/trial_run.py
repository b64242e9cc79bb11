"""One run of a trial: what a single function does of it, until the trial ends or the function's time does.

Lambda delivers an order at least once, and `is_complete` orders a run anew when its function seems to be dead. A run
belongs to the one function that creates its lease; the lease is rewritten now and then as a sign of life. A function
that was thought dead and isn't finds another run in its turn, and stops: two loads would spoil each other.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from seatrial.bench.progress import TrialProgress
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.trial_store import progress_key, run_key, trial_key
from seatrial_cdk.smoke_benchmark.runtime.turn import read_turn
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder, TrialProperties
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

LOOK_S = 10.0  # between two looks at the turn: each is one read of S3
BEAT_S = 30.0
SILENT_S = 180.0
"""A run without a sign of life for so long is dead: six times its interval, and more than S3 is ever slow."""

UNSTARTED_S = 90.0
"""A run without a lease for so long won't begin: Lambda drops its order after 60 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A run's sign of life.

    Attributes:
        alive_at_s: When the run gave it, in seconds since the epoch.
        paused: The run has ended, and the trial goes on with the next one.
    """

    alive_at_s: float
    paused: bool = False


def read_lease(store: TrialStore, endpoint_name: str, request_id: str, run: int) -> Lease | None:
    """Return a run's last sign of life; `None` when it has not begun."""
    return lease_at(store, run_key(endpoint_name, request_id, run))


def lease_at(store: TrialStore, key: str) -> Lease | None:
    """Return the last sign of life of the run with this key; `None` when it has not begun."""
    text = store.read(key)
    return None if text is None else Lease(**json.loads(text))


@dataclass(slots=True, kw_only=True)
class TrialRun:
    """One function's run.

    Attributes:
        stopped_because: Why the run must end at once; empty while it may go on.
        taken_over: Another function goes on with the trial: this one must leave everything to it.
        forgotten: The endpoint's documents were removed: nothing may be written any more.
    """

    store: TrialStore
    properties: TrialProperties
    order: TrialOrder
    now_s: Callable[[], float]
    stopped_because: str = ""
    taken_over: bool = False
    forgotten: bool = False
    _looked_s: float = -math.inf
    _beaten_s: float = -math.inf

    @property
    def late_s(self) -> float:
        """Seconds since the trial was ordered."""
        return max(0.0, self.now_s() - self.order["StartedAt"])

    def claim(self) -> str:
        """Begin the run, and return why not; empty when it has begun."""
        if self.store.read(self._key) is not None:
            return "this trial has been made already"
        self._look()
        if self.stopped_because:
            return self.stopped_because
        if not self.store.create(self._run_key, _text(Lease(alive_at_s=self.now_s()))):
            return f"run {self.order['Run']} of this trial has begun already"
        self._beaten_s = self.now_s()
        return ""

    def why_stop(self) -> str:
        """Return why the trial must stop; asked often, it looks and gives a sign of life now and then."""
        if not self.stopped_because and self.now_s() - self._looked_s >= LOOK_S:
            self._look()
            if not self.stopped_because:
                self._beat()
        return self.stopped_because

    def check(self) -> None:
        """Look once more whether the trial may still count, however short ago the last look was."""
        if not self.stopped_because:
            self._look()

    def checkpoint(self) -> TrialProgress | None:
        """Return where the trial stands, by its own clock or by the time since its order, whichever is later.

        `None` when it is to begin, or when another release left a checkpoint that can't be read.
        """
        text = self.store.read(self._progress_key)
        try:
            return None if text is None else TrialProgress.from_json(text)
        except BenchError:
            return None

    def save(self, progress: TrialProgress) -> None:
        """Write down where the trial stands; one that can't be written is missed only when the function dies."""
        self.check()
        if self.stopped_because:
            return
        try:
            self.store.write(self._progress_key, progress.to_json())
        except UnavailableError:
            return

    def pause(self, progress: TrialProgress | None) -> None:
        """End the run, not the trial; without progress the next run begins it anew.

        Raises:
            UnavailableError: The checkpoint or the lease can't be written; the lease then runs out.
        """
        if progress is not None:
            self.store.write(self._progress_key, progress.to_json())
        self.store.write(self._run_key, _text(Lease(alive_at_s=self.now_s(), paused=True)))

    def _look(self) -> None:
        self._looked_s = self.now_s()
        try:
            turn = read_turn(self.store, self.properties.endpoint_name)
        except UnavailableError:
            return
        self.forgotten = turn is None
        if turn is None or turn.request_id != self.order["RequestId"]:
            self.stopped_because = "CloudFormation went on without this trial: its request was cancelled or deleted"
        elif turn.run > self.order["Run"]:
            self.taken_over = True
            self.stopped_because = f"run {turn.run} of this trial took over"

    def _beat(self) -> None:
        if self.now_s() - self._beaten_s < BEAT_S:
            return
        self._beaten_s = self.now_s()
        try:
            self.store.write(self._run_key, _text(Lease(alive_at_s=self._beaten_s)))
        except UnavailableError:
            return

    @property
    def _key(self) -> str:
        return trial_key(self.properties, self.order["RequestId"])

    @property
    def _run_key(self) -> str:
        return run_key(self.properties.endpoint_name, self.order["RequestId"], self.order["Run"])

    @property
    def _progress_key(self) -> str:
        return progress_key(self.properties.endpoint_name, self.order["RequestId"])


def _text(lease: Lease) -> str:
    return json.dumps(asdict(lease))
