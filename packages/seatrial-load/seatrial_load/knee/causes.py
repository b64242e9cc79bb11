"""The causes that limit an endpoint's throughput, by the metrics of its containers.

Sources of the limits: vLLM documentation, "Optimization and tuning", preemption (a request loses its KV cache where
there is no free block); the shares are ours: a cache within a twentieth of full has no room for another prompt, and
accelerators that rest for half of the time while requests wait are not what limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_base.units import counted
from seatrial_load.documents.container_metrics import Cause

if TYPE_CHECKING:
    from seatrial_load.documents.container_metrics import ContainerLoad


KV_FULL_SHARE: Final = 0.95
GPU_BUSY_SHARE: Final = 0.9
GPU_IDLE_SHARE: Final = 0.5
# A queue grows where its second half is this many times as long as its first, and at least one request longer.
GROWTH: Final = 2.0


def causes_of(load: ContainerLoad) -> tuple[Cause, ...]:
    """Return the causes that limit the throughput, the gravest first; none where none shows."""
    causes: list[Cause] = []
    waiting = f", up to {counted(round(load.waiting_max), 'request')} in the queue" if load.waiting_max else ""
    mend = "Give the KV cache more room: a lower max_model_len, an fp8 KV cache, more accelerator memory, more copies."
    if load.preemptions:
        lost = counted(round(load.preemptions), "preemption")
        causes.append(
            Cause(
                kind="preempted",
                because=f"{lost}: the KV cache was full, and requests were computed again",
                mend=f"{mend} Or set a lower max_num_seqs.",
            )
        )
    elif load.kv_cache_share_max is not None and load.kv_cache_share_max >= KV_FULL_SHARE:
        causes.append(
            Cause(
                kind="kv_cache_full", because=f"the KV cache is {load.kv_cache_share_max:.0%} full{waiting}", mend=mend
            )
        )
    has_room = not causes
    if has_room and load.waiting_max:
        causes.append(_waiting_cause(load))
    early, late = load.waiting_early, load.waiting_late
    if early is not None and late is not None and late >= early + 1 and late >= GROWTH * early:
        because = f"the queue grows: {early:.1f} requests in the first half of the time, {late:.1f} in the second"
        mend = "Add copies, or let scaling add them sooner: more requests arrive than are answered."
        causes.append(Cause(kind="queue_grows", because=because, mend=mend))
    computes = load.gpu_share_mean
    if has_room and not load.waiting_max and computes is not None and computes >= GPU_BUSY_SHARE:
        causes.append(
            Cause(
                kind="gpu_busy",
                because=f"the accelerators compute {computes:.0%} of the time, and no request waits",
                mend="Choose a faster instance type, a smaller quantization, or more copies.",
            )
        )
    return tuple(causes)


def _waiting_cause(load: ContainerLoad) -> Cause:
    """Return why requests wait though the KV cache has room."""
    cache = "" if load.kv_cache_share_max is None else f", the KV cache is {load.kv_cache_share_max:.0%} full"
    waiting = counted(round(load.waiting_max or 0), "request")
    if load.gpu_share_mean is not None and load.gpu_share_mean < GPU_IDLE_SHARE:
        return Cause(
            kind="gpu_idle",
            because=f"up to {waiting} in the queue{cache}, and the accelerators compute only "
            f"{load.gpu_share_mean:.0%} of the time",
            mend="Look at the host: CPU, tokenizer, data transfer; then raise max_num_seqs.",
        )
    return Cause(
        kind="batch_full",
        because=f"up to {waiting} in the queue{cache}: the batch is full",
        mend="Raise max_num_seqs, if the latency has room below its SLO; otherwise add copies.",
    )
