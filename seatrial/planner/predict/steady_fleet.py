"""Copies and instances in the steady state: who gets which requests, and what that makes of the latencies.

Copies of one instance get the same number of requests. Instances behind one endpoint get theirs at random, which is the
network of `predict.multi_instance`: it gives the throughput, and Little's law the mean latency. A request
shares its instance with 1 + (C - 1) / n requests on average: p50, and the part of TTFT in the mean, are those of an
instance with as many. p90 is that of an instance with 1.1 standard deviations more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.planner.predict.multi_instance import InstanceLevel, met_by_a_request, product_form, rising
from seatrial.planner.predict.steady import SteadyLevel
from seatrial_base.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable


def steady_fleet(one: Callable[[int], SteadyLevel], *, concurrency: int, instances: int) -> SteadyLevel:
    """Predict what some equal instances do whose requests are routed at random.

    Args:
        one: What one instance does with this many requests in flight; at least one.
        concurrency: Requests in flight on all.
        instances: How many.
    """
    if instances == 1:
        return one(concurrency)
    rates = rising(lambda load: _as_instance(one(load)), concurrency, concurrency / instances)
    throughput = product_form(rates, concurrency, instances).throughput
    usual, busy = met_by_a_request(concurrency, instances)
    typical, late = _between(one, usual), _between(one, busy)
    e2e_ms = concurrency * typical.output_tokens / throughput * MS_PER_S
    return replace(
        typical,
        concurrency=concurrency,
        ttft_ms=typical.ttft_ms / typical.e2e_ms * e2e_ms,
        e2e_ms=e2e_ms,
        e2e_p90_ms=None if typical.e2e_p50_ms is None else max(typical.e2e_p50_ms, late.late_ms),
    )


def steady_split(one: Callable[[int], SteadyLevel], concurrency: int, parts: int) -> SteadyLevel:
    """Predict equal copies among which requests are dealt out evenly."""
    each, fuller = divmod(concurrency, parts)
    full, less = one(each + 1) if fuller else None, one(each) if each else None
    if full is None or less is None:
        alone, count = (less, parts - fuller) if full is None else (full, fuller)
        if alone is None:
            raise ValueError("at least one request is in flight")
        return replace(alone, concurrency=alone.concurrency * count)
    weight = fuller * full.output_tok_s / (fuller * full.output_tok_s + (parts - fuller) * less.output_tok_s)
    mixed = _mixed(less, full, weight)
    p90 = None if mixed.e2e_p90_ms is None else max(full.late_ms, less.late_ms)
    return replace(mixed, concurrency=concurrency, e2e_p90_ms=p90)


def _as_instance(level: SteadyLevel) -> InstanceLevel:
    late_ms = level.late_ms
    return InstanceLevel(level.output_tok_s, late_ms / level.output_tokens, late_ms / MS_PER_S)


def _between(one: Callable[[int], SteadyLevel], load: float) -> SteadyLevel:
    """Return the latencies at a load, linear between whole loads."""
    below = math.floor(load)
    low = one(below)
    return low if below == load else _mixed(low, one(below + 1), load - below)


def _mixed(low: SteadyLevel, high: SteadyLevel, share: float) -> SteadyLevel:
    """Return latencies between two levels; `share` is that of the higher one."""
    p50 = None if low.e2e_p50_ms is None or high.e2e_p50_ms is None else _at(low.e2e_p50_ms, high.e2e_p50_ms, share)
    p90 = None if low.e2e_p90_ms is None or high.e2e_p90_ms is None else _at(low.e2e_p90_ms, high.e2e_p90_ms, share)
    return SteadyLevel(
        low.concurrency,
        low.output_tokens,
        _at(low.ttft_ms, high.ttft_ms, share),
        _at(low.e2e_ms, high.e2e_ms, share),
        p50,
        p90,
    )


def _at(low: float, high: float, share: float) -> float:
    return low + share * (high - low)
