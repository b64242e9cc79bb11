from __future__ import annotations

import pytest

from seatrial_load.aws.container_metrics import causes_of
from seatrial_load.documents.container_metrics import ContainerLoad

CASES = [
    (
        ContainerLoad(preemptions=12.0, kv_cache_share_max=1.0, waiting_max=3.0),
        [("preempted", "12 preemptions: the KV cache was full, and requests were computed again")],
    ),
    (
        ContainerLoad(preemptions=0.0, kv_cache_share_max=0.95, waiting_max=1.0),
        [("kv_cache_full", "the KV cache is 95% full, up to 1 request in the queue")],
    ),
    (
        ContainerLoad(kv_cache_share_max=0.94, waiting_max=8.0, gpu_share_mean=0.49),
        [
            (
                "gpu_idle",
                "up to 8 requests in the queue, the KV cache is 94% full, and the accelerators compute only 49% of the "
                "time",
            )
        ],
    ),
    (
        ContainerLoad(kv_cache_share_max=0.4, waiting_max=8.0, gpu_share_mean=0.5),
        [("batch_full", "up to 8 requests in the queue, the KV cache is 40% full: the batch is full")],
    ),
    (
        ContainerLoad(waiting_max=9.0, waiting_early=1.0, waiting_late=6.0),
        [
            ("batch_full", "up to 9 requests in the queue: the batch is full"),
            ("queue_grows", "the queue grows: 1.0 requests in the first half of the time, 6.0 in the second"),
        ],
    ),
    (
        ContainerLoad(waiting_max=0.0, gpu_share_mean=0.9, kv_cache_share_max=0.3),
        [("gpu_busy", "the accelerators compute 90% of the time, and no request waits")],
    ),
    (ContainerLoad(waiting_max=0.0, gpu_share_mean=0.89, kv_cache_share_max=0.3, preemptions=0.0), []),
    (ContainerLoad(waiting_max=0.0, waiting_early=0.0, waiting_late=0.9), []),
    (ContainerLoad(), []),
]


@pytest.mark.parametrize(("load", "causes"), CASES)
def test_the_cause_is_what_the_containers_tell(load: ContainerLoad, causes: list[tuple[str, str]]) -> None:
    assert [(cause.kind, cause.because) for cause in causes_of(load)] == causes
    assert all(cause.mend.endswith(".") for cause in causes_of(load))
