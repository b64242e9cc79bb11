"""Traffic over time: read from a document, a recorded log or CloudWatch, and drawn minute by minute."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from itertools import cycle, islice, repeat
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from seatrial.account.reader import aws_failures, error_sentence
from seatrial.documents.simulation import MOST_RATE, Traffic, TrafficCounts
from seatrial.specs.load import validated
from seatrial.specs.yaml_source import file_problems, merge_environment, read_source
from seatrial_base.errors import SpecError
from seatrial_base.units import S_PER_MINUTE
from seatrial_load.prompts.trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import date, tzinfo
    from pathlib import Path

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryTypeDef
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.documents.simulation import TrafficProfile, Weekday
    from seatrial.specs.yaml_source import Document
    from seatrial_base.findings import Finding
    from seatrial_load.measure.lengths import TokenLengths
    from seatrial_load.prompts.trace import Trace


MINUTES_PER_DAY: Final = 1440
S_PER_DAY: Final = 86_400
DRAWS: Final = 512
"""Answers of different lengths that are told apart: each request is one of them."""
DAYS_READ: Final = 7
_DAYS: Final[tuple[Weekday, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

Minute = tuple["Sequence[float]", "Sequence[int]"]
"""When requests come, in seconds from the start, ascending, and which of the `DRAWS` lengths each of them has."""


@dataclass(frozen=True, slots=True)
class TrafficSource:
    """Traffic that can be drawn again and again.

    Attributes:
        name: The file.
        lengths: Tokens of the answer of each draw, ascending; empty where the spec's workload tells them.
        prompts: Tokens of the prompt of each draw; empty where only the workload tells them, and of sessions, whose
            prompts a prefix cache may hold.
        days: Whole days that it has of its own; a profile has a week.
        minutes: Yields the minutes of a number of days for a seed.
    """

    name: str
    start: date
    zone: tzinfo
    days: int
    minutes: Callable[[int, int], Iterator[Minute]] = field(repr=False)
    lengths: tuple[float, ...] = field(default=(), repr=False)
    prompts: tuple[float, ...] = field(default=(), repr=False)


def read_traffic(path: Path, answer_s: Callable[[float], float]) -> TrafficSource:
    """Read traffic: a document where the name ends in `.yaml` or `.yml`, else a recording as `seatrial bench` reads it.

    `answer_s`: seconds that an answer of so many tokens is predicted to take; the next turn of a session follows it.

    Raises:
        SpecError: With every problem of a document: those of any YAML file, SEA560 and SEA561.
        BenchError: SEA510, SEA550 or SEA551, with every bad line of a recording; SEA562, it has no times.
    """
    if path.suffix.lower() not in {".yaml", ".yml"}:
        return _recorded(path, answer_s)
    source = read_source(path)
    problems, document = [*file_problems(source)], merge_environment(source, None)
    traffic, wrong = validated(Traffic, document) if source.data else (None, [])
    problems += wrong
    if traffic is not None:
        problems += _contradictions(traffic, document)
    if problems or traffic is None:
        raise SpecError(problems)
    return traffic_source(path.as_posix(), traffic)


def traffic_source(name: str, traffic: Traffic) -> TrafficSource:
    """Return the traffic that a document describes; what it counts comes at random within its period."""
    zone, counts, profile = ZoneInfo(traffic.timezone), traffic.counts, traffic.profile

    def rates(days: int) -> Iterator[float]:
        if profile is not None:
            return _profile_rates(profile, traffic.start, zone, days)
        return islice(cycle(_counted_rates(counts) if counts else ()), days * MINUTES_PER_DAY)

    own_days = DAYS_READ if counts is None else max(1, int(len(counts.requests) * counts.period_s // S_PER_DAY))
    return TrafficSource(name, traffic.start, zone, own_days, lambda days, seed: _drawn(rates(days), seed))


def _contradictions(traffic: Traffic, document: Document) -> Iterator[Finding]:
    if (traffic.profile is None) == (traffic.counts is None):
        hint = "write one of them"
        yield document.problem((), "SEA560", "the traffic needs either `profile` or `counts`", hint)
    try:
        ZoneInfo(traffic.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "a name of the IANA time zone database, as Europe/Berlin"
        yield document.problem(("timezone",), "SEA561", f"the time zone {traffic.timezone} is unknown", hint)
    if (counts := traffic.counts) is not None:
        counted_s = len(counts.requests) * counts.period_s
        if counted_s % S_PER_DAY and S_PER_DAY % counted_s:
            message = f"{len(counts.requests)} periods of {counts.period_s} s are no whole days, nor repeated in one"
            hint = "give whole days, from midnight to midnight"
            yield document.problem(("counts", "requests"), "SEA561", message, hint)
    taken: set[int] = set()
    for hours in traffic.profile.hours if traffic.profile else ():
        first, last = (int(part) for part in hours.split("-"))
        path, own = ("profile", "hours", hours), set(range(first, last))
        if first >= last:
            yield document.problem(path, "SEA561", f"{hours} ends before it begins", "write 22-24 and 00-06")
        elif own & taken:
            yield document.problem(path, "SEA561", f"{hours} overlaps other hours", "give each hour one share")
        taken |= own


def _profile_rates(profile: TrafficProfile, start: date, zone: tzinfo, days: int) -> Iterator[float]:
    """Yield the rate of each minute, in requests per second; between shares it goes evenly."""
    of_hour = [profile.other_hours] * 24
    for hours, own in profile.hours.items():
        first, last = (int(part) for part in hours.split("-"))
        of_hour[first:last] = [own] * (last - first)
    of_day = [profile.weekdays.get(day, profile.weekend_share if day in {"sat", "sun"} else 1.0) for day in _DAYS]
    begin_s, ramp = midnight_s(start, zone), profile.ramp_minutes

    def share(minute: int) -> float:
        local = datetime.fromtimestamp(begin_s + minute * S_PER_MINUTE, zone)
        return of_hour[local.hour] * of_day[local.weekday()]

    # The mean over the minutes around one: a sum that moves on, so that a year costs no more than its minutes.
    before, after = ramp // 2, ramp - ramp // 2
    total = sum(map(share, range(-before, after))) if ramp else 0.0
    for minute in range(days * MINUTES_PER_DAY):
        grown = (1 + profile.growth_per_month) ** (minute / MINUTES_PER_DAY / 30)
        even = max(0.0, total / ramp) if ramp else share(minute)
        yield profile.peak_requests_per_second * even * grown
        total += share(minute + after) - share(minute - before) if ramp else 0.0


def _counted_rates(counts: TrafficCounts) -> Iterator[float]:
    for count in counts.requests:
        yield from repeat(count / counts.period_s, int(counts.period_s // S_PER_MINUTE))


def _drawn(rates: Iterator[float], seed: int) -> Iterator[Minute]:
    """Draw the arrivals of each minute: a Poisson process, which has no memory and so may begin anew each minute."""
    draw = random.Random(seed)  # noqa: S311 (a simulation is repeatable)
    uniform, log, bits = draw.random, math.log, DRAWS.bit_length() - 1
    for number, rate in enumerate(rates):
        if rate > MOST_RATE:
            day = number // MINUTES_PER_DAY + 1
            message = f"{rate:,.0f} requests per second on day {day} are more than are simulated"
            hint = f"at most {MOST_RATE:,.0f}; simulate fewer days, or less growth"
            raise SpecError.of("SEA561", message, where="traffic", hint=hint)
        at, end = number * S_PER_MINUTE, (number + 1) * S_PER_MINUTE
        times: list[float] = []
        if rate > 0:
            mean = 1 / rate
            while (at := at - mean * log(1.0 - uniform())) < end:
                times.append(at)
        yield times, [draw.getrandbits(bits) for _ in times]


def _recorded(path: Path, answer_s: Callable[[float], float]) -> TrafficSource:
    trace = read_trace(path)
    if not trace.due_s:
        message, hint = "the sessions of the recording have no times of their own", "write a `profile` of their rate"
        raise SpecError.of("SEA562", message, where=path.as_posix(), hint=hint)
    at_s, count = _turn_times(trace, answer_s), len(trace)
    # A draw is the requests whose answers and prompts are of about its length; the middle one stands for all of them.
    ranked = sorted(range(count), key=lambda row: (trace.tokens_out[row], trace.tokens_in[row]))
    middle = [ranked[(2 * place + 1) * count // (2 * DRAWS)] for place in range(DRAWS)]
    kind_of = [0] * count
    for rank, row in enumerate(ranked):
        kind_of[row] = (2 * rank + 1) * DRAWS // (2 * count)
    lengths = tuple(float(trace.tokens_out[row]) for row in middle)
    prompts = () if trace.waits else tuple(float(trace.tokens_in[row]) for row in middle)
    order = sorted(range(count), key=at_s.__getitem__)
    times, kinds = [at_s[row] for row in order], [kind_of[row] for row in order]
    own_days = max(1, math.ceil(times[-1] / S_PER_MINUTE / MINUTES_PER_DAY))

    def minutes(days: int, seed: int) -> Iterator[Minute]:  # noqa: ARG001 (what was recorded is not drawn)
        span_s = own_days * MINUTES_PER_DAY * S_PER_MINUTE
        for number in range(days * MINUTES_PER_DAY):
            begin_s, shift_s = number * S_PER_MINUTE % span_s, number * S_PER_MINUTE // span_s * span_s
            first, last = bisect_left(times, begin_s), bisect_left(times, begin_s + S_PER_MINUTE)
            yield [at + shift_s for at in times[first:last]], kinds[first:last]

    return TrafficSource(path.as_posix(), Traffic().start, UTC, own_days, minutes, lengths, prompts)


def _turn_times(trace: Trace, answer_s: Callable[[float], float]) -> list[float]:
    """Return when each turn leaves: its session's first at the recorded time, others their gap after an answer."""
    at_s: list[float] = []
    for row, tokens in enumerate(trace.tokens_out):
        waits = trace.waits[row] if trace.waits else ()
        begin_s = max((at_s[row - back] for back in waits), default=trace.due_s[trace.session_of(row)])
        at_s.append(begin_s + trace.gaps_s[row] if waits else begin_s)
        # Kept as its end for those that follow it; the last pass takes the answer off again.
        at_s[row] += answer_s(tokens)
    return [end_s - answer_s(tokens) for end_s, tokens in zip(at_s, trace.tokens_out, strict=True)]


def midnight_s(day: date, zone: tzinfo) -> float:
    """Return when a day begins in a time zone, in seconds since the epoch."""
    return datetime.combine(day, time(), zone).timestamp()


def answer_lengths(lengths: TokenLengths) -> tuple[float, ...]:
    """Return the answers that requests of a workload are drawn from, ascending: evenly spaced in its distribution."""
    return tuple(float(lengths.at((place + 0.5) / DRAWS)) for place in range(DRAWS))


def endpoint_traffic(client: CloudWatchClient, endpoints: SageMakerClient, endpoint: str, now: datetime) -> Traffic:
    """Return the invocations of a live endpoint in the last seven whole days (UTC), in periods of five minutes.

    Raises:
        BenchError: As `aws_failures`.
        SpecError: SEA563, there is no such endpoint, or CloudWatch has no invocations of it.
    """
    end = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
    (counted,) = metric_sums(client, endpoints, endpoint, ("Invocations",), end, days=DAYS_READ, period_s=300)
    source = f"CloudWatch, AWS/SageMaker Invocations of {endpoint}"
    counts = TrafficCounts(period_s=300, requests=tuple(map(round, counted)), source=source)
    return Traffic(start=end.date() - timedelta(days=DAYS_READ), counts=counts)


def metric_sums(
    client: CloudWatchClient,
    endpoints: SageMakerClient,
    endpoint: str,
    metrics: Sequence[str],
    end: datetime,
    *,
    days: int,
    period_s: int,
) -> list[list[float]]:
    """Return the sum of each metric in each period of the days before a midnight, over what counts its invocations.

    Raises:
        BenchError: As `aws_failures`.
        SpecError: SEA563, there is no such endpoint, or CloudWatch has none of the metrics.
    """
    begin = end - timedelta(days=days)
    counted: defaultdict[tuple[str, datetime], float] = defaultdict(float)
    with aws_failures(endpoint, lambda error: _unread(endpoint, error_sentence(error))):
        queries: list[MetricDataQueryTypeDef] = [
            {
                "Id": f"m{metrics.index(name)}_{place}",
                "MetricStat": {
                    "Metric": {"Namespace": "AWS/SageMaker", "MetricName": name, "Dimensions": dimensions},
                    "Period": period_s,
                    "Stat": "Sum",
                },
            }
            for place, dimensions in enumerate(_invoked(endpoints, endpoint))
            for name in metrics
        ]
        pages = client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries, StartTime=begin, EndTime=end
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                for at, value in zip(result["Timestamps"], result["Values"], strict=True):
                    counted[result["Id"].partition("_")[0], at] += value
    if not any(counted.values()):
        raise _unread(endpoint, f"CloudWatch has no invocations of it since {begin.date()}")
    periods = [begin + timedelta(seconds=period_s * place) for place in range(days * S_PER_DAY // period_s)]
    return [[counted[f"m{place}", at] for at in periods] for place in range(len(metrics))]


def _invoked(endpoints: SageMakerClient, endpoint: str) -> list[list[DimensionTypeDef]]:
    """Return the dimensions of what counts its own invocations: the components, without any the variants."""
    listed = endpoints.get_paginator("list_inference_components").paginate(EndpointNameEquals=endpoint)
    components = [each["InferenceComponentName"] for page in listed for each in page["InferenceComponents"]]
    if components:
        return [[{"Name": "InferenceComponentName", "Value": name}] for name in components]
    variants = endpoints.describe_endpoint(EndpointName=endpoint).get("ProductionVariants", [])
    of_endpoint: DimensionTypeDef = {"Name": "EndpointName", "Value": endpoint}
    return [[of_endpoint, {"Name": "VariantName", "Value": each["VariantName"]}] for each in variants]


def _unread(endpoint: str, message: str) -> SpecError:
    return SpecError.of("SEA563", message, where=endpoint, hint="check the name and the Region")
