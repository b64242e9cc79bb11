"""How many processes a load is worth, and how many connections each may open."""

from __future__ import annotations

import math
import os
import resource
from typing import TYPE_CHECKING

from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

STREAMS_PER_WORKER = 384
SPARE_DESCRIPTORS = 64
LAMBDA_MIB_PER_CORE = 1_769
"""AWS Lambda gives a function one virtual CPU for each 1,769 MB ("Configure Lambda function memory")."""


def usable_cores(environ: Mapping[str, str] = os.environ) -> int:
    """Return the cores that this process may use; a Lambda function sees more than its memory pays for."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_mib = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return min(seen, math.ceil(int(memory_mib) / LAMBDA_MIB_PER_CORE)) if memory_mib.isdigit() else seen


def workers_for(streams: int, cores: int) -> int:
    """Return how many processes shall load: one for each 384 streams, and never more than there are cores.

    One process takes in what 512 streams of 50 tokens/s send, at some two thirds of a core.
    """
    return min(max(1, cores), math.ceil(streams / STREAMS_PER_WORKER) or 1)


def require_descriptors(streams: int, workers: int, limits: tuple[int, int] | None = None) -> int:
    """Make sure that each process may open its streams, and return the soft limit that this takes.

    The soft limit is raised as far as the hard one allows, as everything that opens many sockets does.

    Args:
        streams: All processes together.
        workers: Processes.
        limits: Soft and hard limit of open files; the kernel's when not given, and then the soft one is set.

    Raises:
        BenchError: SEA508, the hard limit is too low.
    """
    soft, hard = limits or resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = math.ceil(streams / workers) + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise BenchError.of(
            "SEA508",
            f"{streams} streams in {workers} {'process' if workers == 1 else 'processes'} need {needed} open files"
            f" each, and this machine allows {hard}",
            hint=f"load with at most {(hard - SPARE_DESCRIPTORS) * workers} streams, with more workers,"
            " from more machines, or raise the hard limit (ulimit -Hn)",
            field="load.concurrency_levels",
        )
    if needed > soft != resource.RLIM_INFINITY:
        soft = needed
        if limits is None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return soft
