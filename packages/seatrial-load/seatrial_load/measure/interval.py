"""Intervals of percentiles, means, shares and rates.

All of them take the measurements for independent draws from one distribution. Requests of one level aren't quite: they
share batches, and a stall of the server hits all that are in flight. So the intervals are the narrowest that are
possible; where requests depend on each other strongly, the true value may be further away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol

from seatrial_load.documents.distribution import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.result import Window


ROUND_SHARE = 0.9  # answers of one round end a little apart, so that a window of one round is often a little shorter

CONFIDENCE = 0.95
BOTH_TAILS = (1 - CONFIDENCE) / 2
SLICES = 10  # of a window
EXACT_UP_TO = 100_000  # trials; beyond, the normal approximation's rank is off by less than one in a thousand
SERIES_UP_TO = 200  # degrees of freedom; beyond, the expansion is right within 1e-7
BISECTIONS = 80  # halve any interval of interest below the resolution of a float
NEGLIGIBLE_DEVIATIONS = 12.0  # anything further from a binomial's mean is too rare for a float to notice
FEWEST_SLICES = 5
ROUNDING = 1e-9  # a bound that floats miss by less is met: an exact tie, or a whole number
NOTHING = Interval(low=None, high=None)
# The standard normal distribution's quantile.
normal = NormalDist().inv_cdf


class Ranked(Protocol):
    """Values in ascending order, by rank from 0."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __getitem__(self, rank: int, /) -> float:
        """Return one of them."""


def percentile(ordered: Ranked, percent: float) -> float:
    """Return the percentile of sorted, non-empty values by linear interpolation between the closest ranks.

    Position (n - 1) x percent / 100, counted from 0: numpy's default, Hyndman and Fan's type 7, what vLLM's benchmark
    reports. Few values make a high percentile nearly the maximum.
    """
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def percentile_interval(ordered: Ranked, percent: float, *, tail: float) -> Interval:
    """Bound a percentile by two measurements, whatever the distribution.

    Of n independent measurements, the number at or below the true percentile is binomial (n, percent / 100). So the
    k-th smallest lies above it with probability P(B < k), and below it with P(B >= k) (David and Nagaraja, Order
    Statistics, 3rd edition, 7.1). The bounds are the innermost measurements at which these are at most `tail`.

    Args:
        percent: Which percentile, 0 to 100.
        tail: How often each bound may be wrong: 0.025 is a two-sided 95 % interval, 0.05 a one-sided one.

    Returns:
        The interval; None for a bound that too few measurements can't give.
    """
    low, high = _ranks(len(ordered), percent / 100, tail)
    return Interval(low=None if low is None else ordered[low], high=None if high is None else ordered[high])


def fewest_bounded_from_above(percent: float, *, tail: float) -> int:
    """Return the fewest measurements with which a percentile has an upper bound: share^n <= tail."""
    return math.ceil(math.log(tail) / math.log(percent / 100) - ROUNDING)


def mean_interval(*, mean: float, deviation: float, count: int, tail: float) -> Interval:
    """Bound a mean: mean ± t x s / sqrt(n), with Student's t of n - 1 degrees of freedom."""
    if count < 2:  # noqa: PLR2004 (one measurement has no deviation)
        return NOTHING
    half = student_t(1 - tail, count - 1) * deviation / math.sqrt(count)
    return Interval(low=mean - half, high=mean + half)


def share_interval(hits: int, count: int, *, tail: float) -> Interval:
    """Bound a share by Wilson's score interval (E. B. Wilson, JASA 22, 1927); none of nothing.

    (p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n)
    """
    if not count:
        return NOTHING
    share, z = hits / count, normal(1 - tail)
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    low = 0.0 if hits == 0 else (middle - half) / scale
    return Interval(low=low, high=1.0 if hits == count else (middle + half) / scale)


def is_share_above(hits: int, count: int, share: float, *, tail: float) -> bool:
    """Return whether hits prove that more than a share are such: the exact binomial's P(B >= hits) is at most `tail`.

    That is Clopper and Pearson's lower bound (Biometrika 26, 1934). Wilson's proves it by one hit in 16 and a share of
    1 %, which chance gives in 15 of 100 trials.
    """
    return hits > 0 and count - hits < _most_below(count, 1 - share, tail)


def rate_interval(slices: Sequence[float], *, tail: float) -> Interval:
    """Bound a rate by batch means: the rates of equal slices of its window are taken for independent measurements.

    Law and Kelton, Simulation Modeling and Analysis, on batch means. It holds for slices longer than what happens in
    them: of slices that share their requests, neighbours agree, and the interval is too narrow.
    """
    if len(slices) < FEWEST_SLICES:
        return NOTHING
    mean = math.fsum(slices) / len(slices)
    deviation = math.sqrt(math.fsum((rate - mean) ** 2 for rate in slices) / (len(slices) - 1))
    return _not_negative(mean_interval(mean=mean, deviation=deviation, count=len(slices), tail=tail))


def ratio_interval(rate: float, *, relative_deviation: float, count: float, tail: float) -> Interval:
    """Bound the rate of a closed loop by how much its requests differ.

    Each stream sends its next request when the last one is answered, so the rate is streams x mean of tokens / mean of
    seconds, a renewal-reward process (Law and Kelton on the regenerative method). The relative variance of that ratio
    is, to first order, the variance of tokens / mean tokens - seconds / mean seconds over the number of requests: a
    long answer that takes long in proportion changes nothing.

    Args:
        relative_deviation: The standard deviation of that difference over requests.
    """
    if count < 2:  # noqa: PLR2004 (one request doesn't differ)
        return NOTHING
    half = student_t(1 - tail, math.floor(count) - 1) * rate * relative_deviation / math.sqrt(count)
    return _not_negative(Interval(low=rate - half, high=rate + half))


def one_sided(middle: float, interval: Interval, *, count: int, tail: float) -> Interval:
    """Return the bounds of a mean at another confidence than the two-sided 95 % of its interval."""
    if count < 2:  # noqa: PLR2004 (as in `mean_interval`)
        return NOTHING
    return _scaled(middle, interval, student_t(1 - tail, count - 1) / student_t(1 - BOTH_TAILS, count - 1))


def one_sided_rate(rate: float, interval: Interval, *, tail: float) -> Interval:
    """Return the bounds of a rate at another confidence than the two-sided 95 % of its interval.

    The number of measurements of the interval is unknown. Up to 97.5 % confidence very many would give the widest
    bounds, above that few (ten slices are taken); the wider ones count.
    """
    scale = max(
        normal(1 - tail) / normal(1 - BOTH_TAILS),
        student_t(1 - tail, SLICES - 1) / student_t(1 - BOTH_TAILS, SLICES - 1),
    )
    return _scaled(rate, interval, scale)


def precision_of(values: Sequence[float]) -> float | None:
    """Return half the 95 % interval of the median over the median; None while so few measurements give none."""
    ordered = sorted(values)
    bounds = percentile_interval(ordered, 50, tail=BOTH_TAILS)
    if bounds.low is None or bounds.high is None:
        return None
    median = percentile(ordered, 50)
    return (bounds.high - bounds.low) / 2 / median if median > 0 else None


def _scaled(middle: float, interval: Interval, scale: float) -> Interval:
    if interval.high is None:
        return NOTHING
    half = (interval.high - middle) * scale
    return Interval(low=middle - half, high=middle + half)


def _not_negative(bounds: Interval) -> Interval:
    return Interval(low=max(bounds.low or 0.0, 0.0), high=bounds.high)


@lru_cache(maxsize=1024)
def student_t(share: float, degrees: int) -> float:
    """Return the quantile of Student's t, above the median.

    Up to 200 degrees of freedom by bisection of the exact series (Abramowitz and Stegun, Handbook of Mathematical
    Functions, 26.7.3 and 26.7.4), beyond by the expansion at the normal quantile (26.7.5, three terms). Against the
    published tables (and the closed forms of 1 and 2 degrees) the error is below their last digit; where the two meet,
    they agree within 1e-7.
    """
    return _t_by_series(share, degrees) if degrees <= SERIES_UP_TO else _t_by_expansion(share, degrees)


def _t_by_series(share: float, degrees: int) -> float:
    low, high = 0.0, math.pi / 2  # the angle whose tangent is t / sqrt(degrees)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (1 + _share_within(middle, degrees)) / 2 < share:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(degrees)


def _share_within(angle: float, degrees: int) -> float:
    """P(|T| <= t) for t = sqrt(degrees) x tan(angle)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for factor in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (factor - 1) / factor
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _t_by_expansion(share: float, degrees: int) -> float:
    z = normal(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


@lru_cache(maxsize=4096)
def _ranks(count: int, share: float, tail: float) -> tuple[int | None, int | None]:
    above = _most_below(count, share, tail)
    below = _most_below(count, 1 - share, tail)
    return None if above == 0 else above - 1, None if below == 0 else count - below


def _most_below(count: int, share: float, tail: float) -> int:
    """Return the largest k with P(B < k) <= tail for B binomial (count, share)."""
    if count > EXACT_UP_TO:
        return math.floor(count * share - normal(1 - tail) * math.sqrt(count * share * (1 - share)) + 0.5)
    deviation = math.sqrt(count * share * (1 - share))
    hits = max(math.floor(count * share - NEGLIGIBLE_DEVIATIONS * deviation), 0)
    ways = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    probability = math.exp(ways + hits * math.log(share) + (count - hits) * math.log1p(-share))
    below = 0.0
    while below + probability <= tail * (1 + ROUNDING) and hits <= count:
        below += probability
        probability *= (count - hits) / (hits + 1) * share / (1 - share)
        hits += 1
    return hits


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTime:
    """The time over which throughput is taken, in seconds of the trial's clock.

    Attributes:
        kind: `steady` while all streams were busy; `whole` from the first sending to the last answer.
    """

    kind: Window
    opened_s: float
    closed_s: float

    @property
    def length_s(self) -> float:
        """How long it is."""
        return self.closed_s - self.opened_s

    def edges_s(self) -> tuple[float, ...]:
        """Return where its equal slices begin and end."""
        return tuple(self.opened_s + self.length_s * number / SLICES for number in range(SLICES + 1))


def steady_window(sent_s: Sequence[float], seconds: Sequence[float]) -> MeasuredTime | None:
    """Return the time while all streams of a closed loop are busy; None where it is shorter than a request.

    It opens at the first sending of a measured request and closes when the last request is sent: until then every
    stream has a request in flight, afterwards fewer and fewer have. It is taken only when it is as long as a request,
    lest it show a part of the round in which requests that were sent together go on together: with C streams that takes
    2 x C requests, ramp included.

    Args:
        seconds: How long those of them took that succeeded, ascending.
    """
    if not seconds:
        return None
    window = MeasuredTime(kind="steady", opened_s=min(sent_s), closed_s=max(sent_s))
    return window if window.length_s >= ROUND_SHARE * percentile(seconds, 50) > 0 else None


def share_by(sent_s: float, ended_s: float, at_s: float) -> float:
    """Return how much of a request was done by a time, 0 to 1: the share of its time from sending to end that was over.

    Requests, their prompts and their answers count in a window by the share of their time inside. Requests that were
    sent together end together: counted by their ends, a window that opens or closes among such ends would hold up to a
    whole round too many; with tokens counted as they arrive, it would hold more of the beginnings, when none arrives,
    than of the ends. While all streams are busy, this way yields streams x tokens / time of a request wherever the
    window is.
    """
    if at_s >= ended_s:
        return 1.0
    return (at_s - sent_s) / (ended_s - sent_s) if at_s > sent_s else 0.0


def share_inside(sent_s: float, ended_s: float, time: MeasuredTime) -> float:
    """Return the share of a request's time within a window, 0 to 1."""
    return share_by(sent_s, ended_s, time.closed_s) - share_by(sent_s, ended_s, time.opened_s)
