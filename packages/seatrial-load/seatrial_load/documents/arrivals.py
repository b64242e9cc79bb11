"""Kinds of arrivals: the times of a level's requests, one class for each kind.

The client sends at the times of a kind, the planner simulates them, and reports describe them. All times are seconds
from the start of a level, ascending, below its length, and the same for the same arguments.
"""

from __future__ import annotations

import math
import random
import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial_load.documents.request import Arrival, Load


SPREAD: Final = 2.0  # equal parts of the time of a request, one for each stream, that a stream may begin in
REST_SHARE: Final = 0.02  # of the time that a request took, at most, until its stream sends the next one
_CRC_VALUES: Final = 2**32


def spread_starts(streams: int, span_s: float, seed: str) -> tuple[float, ...]:
    """Return the starts of a closed loop's streams, ascending, spread at random over the time of a request.

    Clients of one length that begin together end together, for ever: each prompt waits for those of all others, as no
    user's does. Batches end whole, so that clients which met once would never part: each rests a little (`REST_SHARE`)
    after a response. On a simulated engine TTFT is then that of random arrivals with as many in flight.
    """
    chance = random.Random(seed)  # noqa: S311 (times, no secret)
    drawn = sorted((number + SPREAD * chance.random()) * span_s / streams for number in range(streams))
    return tuple(at_s - drawn[0] for at_s in drawn)


def scatter(name: str) -> float:
    """Return a number from 0 to 1 that looks drawn and follows from a name."""
    return zlib.crc32(name.encode()) / _CRC_VALUES


def rest_s(share: float, number: int, took_s: float) -> float:
    """Return how long a stream rests after its request of a number, which took so long."""
    return share * took_s * scatter(f"rest {number}") if share else 0.0


# Index over rate is off by a few units in the last place; without this, 0.1 s at 10 requests/s would hold two requests.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """An open loop whose levels are the listed rates; each kind overrides what differs.

    Attributes:
        smoothness: Shape of drawn gaps: 1 is a Poisson process, less comes in bursts, more comes evenly.
        times_s: When the requests of a file or a trace came, ascending; empty without one.
        speed: How many times as fast as recorded a trace is replayed.
    """

    name: ClassVar[Arrival]
    timing: ClassVar[str]
    """How requests come to a planned copy, in words."""
    words: ClassVar[str]
    is_open: ClassVar[bool] = True
    has_rates: ClassVar[bool] = True
    """Whether it takes rates: the levels, or what a level is made of."""
    takes_smoothness: ClassVar[bool] = False
    needs_times: ClassVar[bool] = False
    """Whether the workload has the times of its requests; its lengths are taken in their order then."""
    follows_trace: ClassVar[bool] = False

    smoothness: float = 1.0
    times_s: Sequence[float] = field(default=(), repr=False)
    speed: float = 1.0

    @property
    def description(self) -> str:
        """How requests are timed, in words."""
        return self.words

    def wrong_rates(self, rates_per_s: Sequence[float]) -> str:
        """Return the problem with the rates of a load; empty without one."""
        if not rates_per_s or rates_per_s[0] <= 0 or not all(low < high for low, high in pairwise(rates_per_s)):
            return f"{list(rates_per_s)} is not an ascending list of rates above 0"
        return ""

    def levels(self, load: Load) -> int:
        """Return the number of levels of a load."""
        return len(load.rates_per_s)

    def rate_per_s(self, load: Load, number: int) -> float | None:
        """Return the rate that the level of this number is to offer, which identifies it; None without one.

        A draw has a few requests more or less: by its count, two rates might be one, and no trial would recognize its
        level in another.
        """
        return load.rates_per_s[number]

    def next_level(self, load: Load, number: int) -> str:
        """Return the offer of the level of this number, in words."""
        return f"next listed rate, {load.rates_per_s[number]:g} requests/s"

    def due_s(self, rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
        """Return when requests come at a mean rate; another seed gives another draw."""
        raise NotImplementedError

    def schedule(self, load: Load, number: int) -> tuple[float, ...]:
        """Return when the requests of the level of this number are due: the same in every trial."""
        return self.due_s(load.rates_per_s[number], load.level_s, f"level {number}")

    def offered_per_s(self, load: Load, due_s: Sequence[float]) -> float:
        """Return the requests per second that a level's requests, or a share of them, were offered at."""
        return len(due_s) / load.level_s

    def connections(self, load: Load, in_flight: int) -> int:
        """Return the most connections of a level; `in_flight` is what a closed loop keeps, all copies together."""
        del in_flight
        return load.max_connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Arrivals):
    """The closed loop: each request follows a response, so that the concurrency stays."""

    name = "closed"
    timing = "at random"  # a plan at a rate assumes users who know nothing of each other
    words = "closed loop"
    is_open = False
    has_rates = False

    def wrong_rates(self, rates_per_s: Sequence[float]) -> str:
        """Refuse every rate."""
        return _no_rates(self.name, rates_per_s)

    def rate_per_s(self, load: Load, number: int) -> float | None:
        """Return None: its concurrency identifies a level."""
        del load, number
        return None

    def connections(self, load: Load, in_flight: int) -> int:
        """Return one connection for each request in flight."""
        del load
        return in_flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma(Arrivals):
    """Gaps drawn from a gamma distribution."""

    name: ClassVar[Arrival] = "gamma"
    timing = "gamma gaps"
    takes_smoothness = True

    @property
    def description(self) -> str:
        """How requests are timed, with the shape."""
        return f"gamma arrivals, smoothness {self.smoothness:g}"

    def due_s(self, rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
        """Return a draw; it may be empty."""
        return gamma(rate_per_s, seconds, seed, smoothness=self.smoothness)

    def schedule(self, load: Load, number: int) -> tuple[float, ...]:
        """Return the level's draw; where it is empty, one request at once: chance must not end a trial."""
        return Arrivals.schedule(self, load, number) or (0.0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(Gamma):
    """A Poisson process: users who know nothing of each other."""

    name: ClassVar[Arrival] = "poisson"
    timing = "at random"
    words = "Poisson arrivals"
    takes_smoothness = False

    @property
    def description(self) -> str:
        """How requests are timed, in words."""
        return self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Arrivals):
    """Evenly spaced requests."""

    name = "constant"
    timing = "evenly spaced"
    words = "constant rate"

    def due_s(self, rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
        """Return evenly spaced times; nothing is drawn."""
        del seed
        return constant(rate_per_s, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Arrivals):
    """The gaps of the workload's requests, at the rate of each level."""

    name = "recorded"
    timing = "as recorded"
    words = "recorded arrivals"
    needs_times = True

    def due_s(self, rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
        """Return the recorded times at another rate; nothing is drawn."""
        del seed
        return recorded(self.times_s, rate_per_s, seconds)


class _OneLevel(Arrivals):
    """An open loop of one level that no single rate names."""

    __slots__ = ()

    def levels(self, load: Load) -> int:
        """Return one."""
        del load
        return 1

    def rate_per_s(self, load: Load, number: int) -> float | None:
        """Return None: what it offers changes while the level goes on."""
        del load, number
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp(_OneLevel):
    """A rate that goes from a start to an end."""

    name = "ramp"
    timing = "at a rising rate"
    words = "rising rate"

    def wrong_rates(self, rates_per_s: Sequence[float]) -> str:
        """Return the problem with the two ends."""
        if len(rates_per_s) != len(("start", "end")) or min(rates_per_s) <= 0:
            return f"{list(rates_per_s)} is not the start and the end of a ramp, both above 0"
        return ""

    def next_level(self, load: Load, number: int) -> str:
        """Return both rates, in words."""
        del number
        return f"the rate goes from {load.rates_per_s[0]:g} to {load.rates_per_s[1]:g} requests/s"

    def schedule(self, load: Load, number: int) -> tuple[float, ...]:
        """Return the times of the only level."""
        del number
        return ramp(load.rates_per_s[0], load.rates_per_s[1], load.level_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(_OneLevel):
    """The times of a trace."""

    name = "replay"
    timing = "as recorded"
    words = "replayed trace"
    has_rates = False
    follows_trace = True

    def wrong_rates(self, rates_per_s: Sequence[float]) -> str:
        """Refuse every rate."""
        return _no_rates(self.name, rates_per_s)

    def next_level(self, load: Load, number: int) -> str:
        """Return that the trace is replayed."""
        del load, number
        return "the recorded requests are replayed"

    def schedule(self, load: Load, number: int) -> tuple[float, ...]:
        """Return the times of the trace."""
        del load, number
        return replay(self.times_s, self.speed)

    def offered_per_s(self, load: Load, due_s: Sequence[float]) -> float:
        """Return gaps / time from the first request to the last.

        A recording has no length of its own, and the time of the last answers has no part in it. Requests that were all
        due at once count as due within a second.
        """
        del load
        seconds = due_s[-1] - due_s[0]
        return (len(due_s) - 1) / seconds if seconds > 0 else float(len(due_s))


# The kinds by their names in a request and in a spec.
ARRIVALS: Final[Mapping[str, type[Arrivals]]] = MappingProxyType(
    {kind.name: kind for kind in (Closed, Poisson, Gamma, Constant, Recorded, Ramp, Replay)}
)


def arrivals_of(load: Load, times_s: Sequence[float] = ()) -> Arrivals:
    """Return the kind of arrivals of a load."""
    return ARRIVALS[load.arrival](smoothness=load.arrival_smoothness, times_s=times_s)


def _no_rates(name: str, rates_per_s: Sequence[float]) -> str:
    return f"a {name} loop has no rates, but {list(rates_per_s)} are given" if rates_per_s else ""


def poisson(rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
    """Return a Poisson process: gaps drawn from the exponential distribution of mean 1 / rate, so bursts are natural.

    Args:
        rate_per_s: Mean requests per second, above 0.
    """
    return gamma(rate_per_s, seconds, seed, smoothness=1.0)


def gamma(rate_per_s: float, seconds: float, seed: str, *, smoothness: float) -> tuple[float, ...]:
    """Return times whose gaps are drawn from a gamma distribution of mean 1 / rate.

    Args:
        rate_per_s: Mean requests per second, above 0.
        smoothness: The shape: 1 is a Poisson process, less comes in bursts, more comes evenly. The gaps' coefficient of
            variation is 1 / its square root (AIPerf's `--arrival-smoothness`, vLLM's `--burstiness`).
    """
    _check(rate_per_s=rate_per_s, seconds=seconds, smoothness=smoothness)
    draw = random.Random(seed)  # noqa: S311 (a schedule that can be made again, not a secret)
    scale_s = 1 / (smoothness * rate_per_s)
    times: list[float] = []
    at_s = draw.gammavariate(smoothness, scale_s)
    while at_s < seconds:
        times.append(at_s)
        at_s += draw.gammavariate(smoothness, scale_s)
    return tuple(times)


def constant(rate_per_s: float, seconds: float) -> tuple[float, ...]:
    """Return evenly spaced times: request i is due at i / rate."""
    _check(rate_per_s=rate_per_s, seconds=seconds)
    return tuple(index / rate_per_s for index in range(_count(rate_per_s * seconds)))


def ramp(from_rate_per_s: float, to_rate_per_s: float, seconds: float) -> tuple[float, ...]:
    """Return times whose rate changes linearly from the first to the second over the level.

    By time t, from x t + (to - from) x t² / (2 x seconds) requests are due. Request i is due when that is i: the
    positive root of the quadratic, in the form that doesn't subtract equal numbers.

    Args:
        from_rate_per_s: Requests per second at the start; may be 0.
        to_rate_per_s: Requests per second at the end; may be 0, but not both.
    """
    _check(highest_rate_per_s=max(from_rate_per_s, to_rate_per_s), seconds=seconds)
    if min(from_rate_per_s, to_rate_per_s) < 0:
        raise ValueError("a rate is below 0")
    acceleration = (to_rate_per_s - from_rate_per_s) / seconds
    count = _count((from_rate_per_s + to_rate_per_s) / 2 * seconds)
    return tuple(_time_of(index, from_rate_per_s, acceleration) for index in range(count))


def replay(timestamps_s: Iterable[float], speed: float = 1.0) -> tuple[float, ...]:
    """Return recorded times from their first on, in order, `speed` times as fast."""
    _check(speed=speed)
    ordered = sorted(timestamps_s)
    return tuple((at_s - ordered[0]) / speed for at_s in ordered)


def recorded(times_s: Sequence[float], rate_per_s: float, seconds: float) -> tuple[float, ...]:
    """Return recorded times at another mean rate: every gap is longer, or shorter, alike, so that bursts stay.

    After the last comes the first again, a mean gap later.

    Args:
        times_s: When requests came, ascending, at least one.
    """
    _check(rate_per_s=rate_per_s, seconds=seconds)
    stretch, period_s = 1 / (replay_speed(times_s, rate_per_s) or math.inf), len(times_s) / rate_per_s
    turns = math.ceil(seconds / period_s)
    due_s = (turn * period_s + (at_s - times_s[0]) * stretch for turn in range(turns) for at_s in times_s)
    return tuple(at_s for at_s in due_s if at_s < seconds)


def replay_speed(times_s: Sequence[float], rate_per_s: float) -> float:
    """Return how many times as fast as recorded requests come at a mean rate; 0 where all were recorded at once.

    Args:
        times_s: When requests came, ascending, at least one.
    """
    gaps, span_s = len(times_s) - 1, times_s[-1] - times_s[0]
    return rate_per_s * span_s / gaps if gaps else 0.0


def _time_of(index: int, from_rate_per_s: float, acceleration: float) -> float:
    if index == 0:
        return 0.0
    root = math.sqrt(max(0.0, from_rate_per_s**2 + 2 * acceleration * index))
    return 2 * index / (from_rate_per_s + root)


def _count(due: float) -> int:
    return math.ceil(due - _ROUNDING)


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"{name} is {number:g}, but must be above 0")
