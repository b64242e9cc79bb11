"""The number of functions that load a level at a time: known before a trial, and used by it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial_load.documents.arrivals import arrivals_of

if TYPE_CHECKING:
    from seatrial_load.documents.request import TrialRequest


# A function may hold 1,024 file descriptors (Lambda quotas); the rest is for libraries, logs and the selector.
SOCKETS_PER_FUNCTION = 900

# Token events that one virtual CPU takes in each second and stays under three quarters busy.
#
# The client's target is 0.035 CPU seconds per 1,000 events: 1,000 / 0.035 x 0.7 = 20,000. It was measured on a server's
# core; a function's virtual CPU may be slower, which the levels' own evidence then shows.
PARTS_PER_S_PER_VCPU = 20_000.0

# Functions at a time: a share of an account's 1,000 concurrent executions (Lambda quotas, the default).
MOST_WORKERS = 40


def workers_at(
    request: TrialRequest,
    concurrency: int,
    *,
    sockets_per_function: int = SOCKETS_PER_FUNCTION,
    parts_per_s_per_vcpu: float = PARTS_PER_S_PER_VCPU,
) -> int:
    """Return how many functions one level needs: enough sockets, enough CPU, and no function without a stream.

    An open loop opens at most `max_connections`, whatever its rate. Where the prior predicts nothing, only the sockets
    count. The count never exceeds `MOST_WORKERS`: beyond it the level may be void, with that reason.
    """
    streams = arrivals_of(request.load).connections(request.load, concurrency * request.copy_count)
    for_sockets = math.ceil(streams / sockets_per_function)
    for_parts = math.ceil(predicted_parts_per_s(request, concurrency) / parts_per_s_per_vcpu)
    return min(max(for_sockets, for_parts), streams, MOST_WORKERS)


def predicted_parts_per_s(request: TrialRequest, concurrency: int) -> float:
    """Return the token events per second that the prior predicts of a level, all copies together; 0 without a prior.

    Between two predicted levels the throughput is interpolated; past the last, where throughput has levelled off, it
    is the last's: one event a token is assumed.
    """
    levels = request.prior.levels
    if not levels or not request.workload.stream:
        return 0.0
    below = [level for level in levels if level.concurrency <= concurrency]
    above = [level for level in levels if level.concurrency > concurrency]
    if not below:
        tok_s = levels[0].output_tok_s * concurrency / levels[0].concurrency
    elif not above:
        tok_s = below[-1].output_tok_s
    else:
        low, high = below[-1], above[0]
        share = (concurrency - low.concurrency) / (high.concurrency - low.concurrency)
        tok_s = low.output_tok_s + share * (high.output_tok_s - low.output_tok_s)
    return tok_s * request.copy_count
