from __future__ import annotations

import os
import resource

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.client.worker_pool import require_descriptors, usable_cores, workers_for


@pytest.mark.parametrize(
    ("streams", "cores", "workers"),
    [
        (1, 8, 1),
        (384, 8, 1),
        (385, 8, 2),
        (512, 1, 1),
        (1024, 2, 2),
        (1024, 8, 3),
        (5000, 6, 6),
        (0, 4, 1),
        (512, 0, 1),
    ],
)
def test_one_process_for_384_streams_but_no_more_than_cores(streams: int, cores: int, workers: int) -> None:
    assert workers_for(streams, cores) == workers


@pytest.mark.parametrize(("memory", "cores"), [("128", 1), ("1769", 1)])
def test_a_function_has_the_cores_that_its_memory_pays_for(memory: str, cores: int) -> None:
    assert usable_cores({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory}) == cores


def test_elsewhere_every_core_that_the_process_may_use() -> None:
    assert usable_cores({}) == len(os.sched_getaffinity(0))
    assert usable_cores({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "10240"}) <= 6


@pytest.mark.parametrize(
    ("streams", "workers", "limits", "soft"),
    [
        (900, 1, (1024, 1024), 1024),
        (960, 1, (1024, 1024), 1024),
        (960, 1, (256, 4096), 1024),
        (1920, 2, (1024, 1024), 1024),
        (5000, 1, (resource.RLIM_INFINITY, resource.RLIM_INFINITY), resource.RLIM_INFINITY),
    ],
)
def test_within_the_hard_limit_the_soft_one_follows(
    streams: int, workers: int, limits: tuple[int, int], soft: int
) -> None:
    assert require_descriptors(streams, workers, limits) == soft


def test_beyond_it_the_message_says_what_would_do() -> None:
    with pytest.raises(BenchError) as caught:
        require_descriptors(1922, 2, (1024, 1024))
    assert str(caught.value) == (
        "load.concurrency_levels: SEA508: 1922 streams in 2 processes need 1025 open files"
        " each; this machine allows 1024\n"
        "  hint: use at most 1920 streams, more workers or more machines,"
        " or raise the hard limit (ulimit -Hn)"
    )


def test_the_processs_own_limit_is_raised_where_it_must_be() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        require_descriptors(400, 1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 464
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
