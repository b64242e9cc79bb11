"""The values of a trial request that no type excludes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial_base.bounds import MOST_TOKENS, wrong_objective, wrong_prefix, wrong_stddev
from seatrial_base.errors import BenchError
from seatrial_base.field_facts import defaults_of, facts_of
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.arrivals import ARRIVALS, arrivals_of
from seatrial_load.documents.request import PER_REQUEST_METRICS, TrialRequest, Workload
from seatrial_load.documents.strict_json import RULE, not_finite, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from _typeshed import DataclassInstance

    from seatrial_load.documents.request import Load, Objective

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
    for part, document in (("", request), ("workload.", request.workload), ("gate.", request.gate)):
        yield from ((f"{part}{field}", message) for field, message in _beyond_bounds(document))
    yield from ((f"load.{field}", message) for field, message in wrong_load(request.load))
    yield from _wrong_objectives(request.objectives)
    yield from ((f"workload.{field}", message) for field, message in _wrong_lengths(request.workload))
    yield from _wrong_times(request.workload, request.load)
    yield from _wrong_conversations(request.workload, request.load)
    if request.load.budget_usd is not None and request.usd_per_hour_per_copy is None:
        yield "load.budget_usd", f"a budget of {request.load.budget_usd:g} USD needs a price per hour"


def _beyond_bounds(document: DataclassInstance) -> Iterator[tuple[str, str]]:
    """Yield the numbers of a document, of a list the greatest, that break the bounds of their fields."""
    for name, facts in facts_of(type(document)).items():
        value = getattr(document, name)
        values = value if isinstance(value, tuple) else (value,)
        numbers = [number for number in values if isinstance(number, int | float)]
        if numbers and (wrong := facts.wrong(max(numbers))):
            yield name, wrong


def _wrong_lengths(workload: Workload) -> Iterator[tuple[str, str]]:
    shared, prompt, facts = workload.shared_prefix_tokens, workload.input_tokens, facts_of(Workload)
    if prompt > 0 and not facts["shared_prefix_tokens"].wrong(shared) and (wrong := wrong_prefix(shared, prompt)):
        yield "shared_prefix_tokens", wrong
    wrong_stddevs = dict(wrong_deviations({name: getattr(workload, name) for name in facts}))
    yield from wrong_stddevs.items()
    stddevs = {name for name in ("input_tokens_stddev", "output_tokens_stddev") if getattr(workload, name)}
    for name in sorted(stddevs - wrong_stddevs.keys()) if workload.lengths else ():
        yield name, "the counted lengths have a standard deviation of their own"
    for place, pair in enumerate(workload.lengths):
        if len(pair) != len(("prompt", "answer")) or not all(0 < tokens <= MOST_TOKENS for tokens in pair):
            yield f"lengths[{place}]", f"{list(pair)} is not prompt and answer, from 1 to {MOST_TOKENS:,} tokens"
    if workload.source != "synthetic" and (workload.lengths or stddevs):
        yield "source", f"only synthetic prompts have lengths of a distribution, not those of a {workload.source} file"


def wrong_deviations(workload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the standard deviations that their means can't have, where both are within their bounds.

    Args:
        workload: Fields of a `Workload`; one that is left out has its default.
    """
    known, values = facts_of(Workload), {**defaults_of(Workload), **workload}
    for name, facts in known.items():
        stddev, mean = values.get(name), values.get(facts.stddev_of)
        if not isinstance(stddev, int | float) or not isinstance(mean, int | float):
            continue
        of = known[facts.stddev_of]
        # Lengths are whole numbers above 0: at least 1. How long a user thinks may be 0.
        wrong = wrong_stddev(mean, stddev, 1 if of.at_least is None else of.at_least)
        if wrong and not (of.wrong(mean) or facts.wrong(stddev)):
            yield name, wrong


def _wrong_times(workload: Workload, load: Load) -> Iterator[tuple[str, str]]:
    times_s = workload.times_s
    if ARRIVALS[load.arrival].needs_times and not times_s:
        yield "workload.times_s", f"{load.arrival} arrivals need the times of the requests"
    elif times_s and len(times_s) != len(workload.lengths):
        yield "workload.times_s", f"{len(times_s)} times of {len(workload.lengths)} requests"
    if times_s and (times_s[0] < 0 or any(low > high for low, high in pairwise(times_s))):
        yield "workload.times_s", "the times do not ascend from 0"


def _wrong_conversations(workload: Workload, load: Load) -> Iterator[tuple[str, str]]:
    counts = workload.conversations
    if counts and (min(counts) < 1 or (workload.source == "synthetic" and sum(counts) != len(workload.lengths))):
        yield "workload.conversations", f"{sum(counts)} turns of {len(workload.lengths)} requests"
    if len(workload.delays_s) not in (0, sum(counts)) or min(workload.delays_s, default=0.0) < 0:
        yield "workload.delays_s", "not one delay from 0 for each of the turns"
    if (workload.turns > 1 or counts) and ARRIVALS[load.arrival].is_open and load.arrival != "replay":
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
    """Yield the field of every impossible value, and its problem."""
    yield from _beyond_bounds(load)
    levels = load.concurrency_levels
    if not levels or levels[0] < 1 or not all(low < high for low, high in pairwise(levels)):
        yield "concurrency_levels", f"{list(levels)} is not an ascending list of whole numbers from 1"
    least, most = load.requests_per_concurrency, load.max_requests_per_concurrency
    if most is not None and most < least:
        yield "max_requests_per_concurrency", f"{most} is below requests_per_concurrency {least}"
    arrivals = arrivals_of(load)
    if wrong := arrivals.wrong_rates(load.rates_per_s):
        yield "rates_per_s", wrong
    if load.gate_rate_per_s is not None and load.gate_rate_per_s not in load.rates_per_s:
        yield "gate_rate_per_s", f"{load.gate_rate_per_s:g} is not one of the rates"
    if not arrivals.takes_smoothness and load.arrival_smoothness != 1:
        yield "arrival_smoothness", f"{load.arrival} arrivals have none; use gamma"
