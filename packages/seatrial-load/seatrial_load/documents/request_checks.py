"""The values of a trial request that no type excludes."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from seatrial_base.bounds import (
    MOST_IN_FLIGHT,
    MOST_REQUESTS,
    MOST_SECONDS,
    MOST_SMOOTHNESS,
    MOST_TOKENS,
    MOST_TURNS,
    MOST_WORKERS,
    wrong_delay,
    wrong_objective,
    wrong_prefix,
    wrong_stddev,
)
from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.request import PER_REQUEST_METRICS, TrialRequest
from seatrial_load.documents.strict_json import RULE, not_finite, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.request import Load, Objective, Workload

WHERE = "trial request"


def read_trial_request(text: str) -> TrialRequest:
    """Read a request strictly.

    Raises:
        BenchError: SEA501, with every unknown key, wrong type and impossible value.
    """
    request = read_document(TrialRequest, text, where=WHERE)
    check_trial_request(request)
    return request


def check_trial_request(request: TrialRequest) -> None:
    """Check the values that no type excludes.

    Raises:
        BenchError: SEA501, with every impossible value.
    """
    problems = [Finding(RULE, Place.at(WHERE, field), message) for field, message in _impossible(request)]
    if problems:
        raise BenchError(problems)


def _impossible(request: TrialRequest) -> Iterator[tuple[str, str]]:
    yield from ((field, f"{number:g} is not a finite number") for field, number in not_finite(request))
    yield from _not_positive(request)
    yield from _too_large(request)
    yield from ((f"load.{field}", message) for field, message in wrong_load(request.load))
    yield from _wrong_objectives(request.objectives)
    yield from _wrong_prefix(request.workload)
    yield from _wrong_lengths(request.workload)
    yield from _wrong_times(request.workload, request.load)
    yield from _wrong_conversations(request.workload, request.load)
    if not 0 < request.target_utilization <= 1:
        yield "target_utilization", f"{request.target_utilization:g} is not above 0 and at most 1"
    if not 0 <= request.gate.confidence < 1:
        yield "gate.confidence", f"{request.gate.confidence:g} is not from 0 and below 1"
    if request.gate.max_error_rate is not None and not 0 <= request.gate.max_error_rate <= 1:
        yield "gate.max_error_rate", f"{request.gate.max_error_rate:g} is not a share from 0 to 1"
    if request.load.budget_usd is not None and request.usd_per_hour_per_copy is None:
        yield "load.budget_usd", f"a budget of {request.load.budget_usd:g} USD needs a price per hour"


def _not_positive(request: TrialRequest) -> Iterator[tuple[str, str]]:
    workload = request.workload
    numbers: dict[str, float] = {
        "workload.input_tokens": workload.input_tokens,
        "workload.output_tokens": workload.output_tokens,
        "workload.prefix_groups": workload.prefix_groups,
        "gate_concurrency": request.gate_concurrency,
        "copy_count": request.copy_count,
        "fallback_target_concurrency": request.fallback_target_concurrency,
        **({} if request.usd_per_hour_per_copy is None else {"usd_per_hour_per_copy": request.usd_per_hour_per_copy}),
    }
    return ((field, f"{number:g} is not above 0") for field, number in numbers.items() if number <= 0)


def _too_large(request: TrialRequest) -> Iterator[tuple[str, str]]:
    workload = request.workload
    numbers: dict[str, tuple[int, int]] = {
        "workload.input_tokens": (workload.input_tokens, MOST_TOKENS),
        "workload.output_tokens": (workload.output_tokens, MOST_TOKENS),
        "gate_concurrency": (request.gate_concurrency, MOST_IN_FLIGHT),
    }
    return ((field, f"{number:,} is more than {most:,}") for field, (number, most) in numbers.items() if number > most)


def _wrong_prefix(workload: Workload) -> Iterator[tuple[str, str]]:
    if workload.input_tokens > 0 and (wrong := wrong_prefix(workload.shared_prefix_tokens, workload.input_tokens)):
        yield "workload.shared_prefix_tokens", wrong


def _wrong_lengths(workload: Workload) -> Iterator[tuple[str, str]]:
    """Yield lengths that no distribution has, and those that contradict one another."""
    for name, mean, stddev in (
        ("input_tokens_stddev", workload.input_tokens, workload.input_tokens_stddev),
        ("output_tokens_stddev", workload.output_tokens, workload.output_tokens_stddev),
    ):
        if mean > 0 and (wrong := wrong_stddev(mean, stddev)):
            yield f"workload.{name}", wrong
        elif stddev and workload.lengths:
            yield f"workload.{name}", "the counted lengths have a standard deviation of their own"
    for place, pair in enumerate(workload.lengths):
        if len(pair) != len(("prompt", "answer")) or not all(0 < tokens <= MOST_TOKENS for tokens in pair):
            yield (
                f"workload.lengths[{place}]",
                f"{list(pair)} is not prompt and answer, from 1 to {MOST_TOKENS:,} tokens",
            )
    if workload.source != "synthetic" and (
        workload.lengths or workload.input_tokens_stddev or workload.output_tokens_stddev
    ):
        yield (
            "workload.source",
            f"only synthetic prompts have lengths of a distribution, not those of a {workload.source} file",
        )


def _wrong_times(workload: Workload, load: Load) -> Iterator[tuple[str, str]]:
    times_s = workload.times_s
    if load.arrival == "recorded" and not times_s:
        yield "workload.times_s", "recorded arrivals need the times of the requests"
    elif times_s and len(times_s) != len(workload.lengths):
        yield "workload.times_s", f"{len(times_s)} times of {len(workload.lengths)} requests"
    if times_s and (times_s[0] < 0 or any(low > high for low, high in pairwise(times_s))):
        yield "workload.times_s", "the times do not ascend from 0"


def _wrong_conversations(workload: Workload, load: Load) -> Iterator[tuple[str, str]]:
    counts, stddev = workload.conversations, workload.turns_stddev
    if not 1 <= workload.turns <= MOST_TURNS:
        yield "workload.turns", f"{workload.turns:,} is not from 1 to {MOST_TURNS:,}"
    elif wrong := wrong_stddev(workload.turns, stddev):
        yield "workload.turns_stddev", wrong
    if wrong := wrong_delay(workload.turn_delay_s, workload.turn_delay_stddev_s):
        yield "workload.turn_delay_s", wrong
    if counts and (min(counts) < 1 or (workload.source == "synthetic" and sum(counts) != len(workload.lengths))):
        yield "workload.conversations", f"{sum(counts)} turns of {len(workload.lengths)} requests"
    if len(workload.delays_s) not in (0, sum(counts)) or min(workload.delays_s, default=0.0) < 0:
        yield "workload.delays_s", "not one delay from 0 for each of the turns"
    if (workload.turns > 1 or counts) and load.arrival != "closed":
        yield "load.arrival", f"conversations need a closed loop, not {load.arrival} arrivals"
    if workload.turns > 1 and workload.source != "synthetic":
        yield "workload.turns", f"only synthetic prompts take a number of turns, not those of a {workload.source} file"


def _wrong_objectives(objectives: tuple[Objective, ...]) -> Iterator[tuple[str, str]]:
    for index, objective in enumerate(objectives):
        if (objective.metric in PER_REQUEST_METRICS) == (objective.statistic == "value"):
            wanted = "a percentile or mean" if objective.metric in PER_REQUEST_METRICS else "value"
            yield f"objectives[{index}].statistic", f"{objective.metric} has {wanted}, not {objective.statistic}"
        elif wrong := wrong_objective(objective.metric, objective.bound):
            yield f"objectives[{index}].bound", f"{objective.metric}: {wrong}"


def wrong_load(load: Load) -> Iterator[tuple[str, str]]:
    """Yield every impossible value as its field and what is wrong with it."""
    yield from ((field, f"{number:g} is not above 0") for field, number in _positive(load) if number <= 0)
    yield from ((field, f"{number} is below 0") for field, number in _from_zero(load) if number < 0)
    beyond = (each for each in _bounded(load) if each[2] < each[1] < inf)
    yield from ((field, f"{number:,.12g} is more than {most:,.12g}") for field, number, most in beyond)
    levels = load.concurrency_levels
    if not levels or levels[0] < 1 or not _ascends(levels):
        yield "concurrency_levels", f"{list(levels)} is not an ascending list of whole numbers from 1"
    least, most = load.requests_per_concurrency, load.max_requests_per_concurrency
    if most is not None and most < least:
        yield "max_requests_per_concurrency", f"{most} is below requests_per_concurrency {least}"
    yield from _wrong_rates(load)
    if load.arrival != "gamma" and load.arrival_smoothness != 1:
        yield "arrival_smoothness", f"{load.arrival} arrivals have none; use gamma"


def _positive(load: Load) -> Iterator[tuple[str, float]]:
    yield "requests_per_concurrency", load.requests_per_concurrency
    yield "budget_s", load.budget_s
    yield "request_timeout_s", load.request_timeout_s
    yield "precision", load.precision
    yield "level_s", load.level_s
    yield "arrival_smoothness", load.arrival_smoothness
    yield "max_connections", load.max_connections
    optional = {"requests": load.requests, "stall_timeout_s": load.stall_timeout_s, "budget_usd": load.budget_usd}
    optional |= {"workers": load.workers, "rates_for_copies": load.rates_for_copies}
    yield from ((name, value) for name, value in optional.items() if value is not None)


def _from_zero(load: Load) -> Iterator[tuple[str, int]]:
    yield "warmup_requests", load.warmup_requests
    yield "ramp_per_concurrency", load.ramp_per_concurrency
    yield "max_retries", load.max_retries


def _bounded(load: Load) -> Iterator[tuple[str, float, float]]:
    yield "concurrency_levels", max(load.concurrency_levels, default=0), MOST_IN_FLIGHT
    yield "requests", load.requests or 0, MOST_REQUESTS
    yield "warmup_requests", load.warmup_requests, MOST_REQUESTS
    yield "rates_per_s", max(load.rates_per_s, default=0.0), MOST_REQUESTS
    yield "level_s", load.level_s, MOST_SECONDS
    yield "arrival_smoothness", load.arrival_smoothness, MOST_SMOOTHNESS
    yield "max_connections", load.max_connections, MOST_IN_FLIGHT
    yield "workers", load.workers or 0, MOST_WORKERS
    yield "budget_s", load.budget_s, MOST_SECONDS
    yield "request_timeout_s", load.request_timeout_s, MOST_SECONDS
    yield "stall_timeout_s", load.stall_timeout_s or 0, MOST_SECONDS


def _wrong_rates(load: Load) -> Iterator[tuple[str, str]]:
    rates = load.rates_per_s
    if load.arrival in ("closed", "replay"):
        if rates:
            yield "rates_per_s", f"a {load.arrival} loop has no rates, but {list(rates)} are given"
    elif load.arrival == "ramp":
        if len(rates) != len(("start", "end")) or min(rates) <= 0:
            yield "rates_per_s", f"{list(rates)} is not the start and the end of a ramp, both above 0"
    elif not rates or rates[0] <= 0 or not _ascends(rates):
        yield "rates_per_s", f"{list(rates)} is not an ascending list of rates above 0"
    if load.gate_rate_per_s is not None and load.gate_rate_per_s not in rates:
        yield "gate_rate_per_s", f"{load.gate_rate_per_s:g} is not one of the rates"


def _ascends(values: Sequence[float]) -> bool:
    return all(low < high for low, high in pairwise(values))
