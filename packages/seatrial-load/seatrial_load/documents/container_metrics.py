"""Metrics of containers and accelerators during a trial, and the causes that limit its throughput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CauseKind: TypeAlias = Literal["preempted", "kv_cache_full", "gpu_idle", "batch_full", "queue_grows", "gpu_busy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLoad:
    """Metrics of the containers of an endpoint over a period; None is a value that was not published.

    Attributes:
        running_max: Requests that the engine works on at once, all copies together: the most.
        waiting_max: Requests in the engines' queues, all copies together: the most.
        waiting_early: The same, mean over the first half of the time.
        waiting_late: The same, mean over the second half.
        kv_cache_share_max: KV cache in use, 0 to 1, of the fullest copy: the most.
        preemptions: Requests whose KV cache was given to others, so that they were computed again.
        gpu_share_mean: Time that the accelerators computed, 0 to 1: mean over all of them.
        gpu_memory_share_max: Memory of the accelerators in use, 0 to 1, all together: the most.
    """

    running_max: float | None = None
    waiting_max: float | None = None
    waiting_early: float | None = None
    waiting_late: float | None = None
    kv_cache_share_max: float | None = None
    preemptions: float | None = None
    gpu_share_mean: float | None = None
    gpu_memory_share_max: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was published."""
        return self == ContainerLoad()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMetrics:
    """Metrics of the containers during one level.

    Attributes:
        concurrency: Requests in flight per copy.
        offered_requests_per_s: What an open loop offered; None in a closed loop.
        load: The metrics.
    """

    concurrency: int
    offered_requests_per_s: float | None
    load: ContainerLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause that limits the throughput.

    Attributes:
        kind: `preempted` (requests lost their KV cache), `kv_cache_full` (no room for more), `gpu_idle` (requests wait
            though accelerators are idle), `batch_full` (requests wait though the KV cache has room), `queue_grows`
            (more requests arrive than are answered), `gpu_busy` (the accelerators compute all the time).
        because: The evidence, in a sentence without a full stop.
        mend: What to change, as an imperative.
    """

    kind: CauseKind
    because: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMetrics:
    """Metrics of the containers during a trial.

    Attributes:
        levels: By level, ascending; empty where nothing was published.
        causes: What limits the throughput past the knee.
        because: Their source, or why they are missing.
    """

    levels: tuple[LevelMetrics, ...] = ()
    causes: tuple[Cause, ...] = ()
    because: str
