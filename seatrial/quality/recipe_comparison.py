"""Two recipes side by side: speed, memory and cost at the gate and at the knee, quality, and one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

from seatrial.quality.comparison import QualityComparison, compare_quality
from seatrial.quality.pairs import pairs_of
from seatrial.quality.recipe_result import check_comparable
from seatrial_load.knee import at_load, blended_cost_at, cost_at, without_price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial.quality.recipe_result import RecipeResult
    from seatrial_load.documents.distribution import Interval
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.knee import LoadPoint
    from seatrial_load.measure.curves import Reading

FigureVerdict = Literal["better", "worse", "no real difference", "not judged"]
OUTPUT_AT_GATE: Final = "output at the gate"
COST_AT_GATE: Final = "cost at the gate"
_LATENCIES: Final[tuple[tuple[str, Callable[[LoadPoint], Reading | None]], ...]] = (
    ("TTFT p50", attrgetter("ttft_p50_ms")),
    ("TTFT p95", attrgetter("ttft_p95_ms")),
    ("TPOT p95", attrgetter("tpot_p95_ms")),
    ("E2E latency p95", attrgetter("e2e_p95_ms")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFigure:
    """One number of both recipes.

    Attributes:
        a: The first recipe's; None where it was not measured or is not known.
        b: The second one's.
        verdict: Of b, by the 95 % intervals of both; `not judged` of a number without intervals.
        a_interval: The first one's interval; None without one.
        b_interval: The second one's.
    """

    name: str
    unit: str
    a: float | None
    b: float | None
    verdict: FigureVerdict = "not judged"
    a_interval: Interval | None = None
    b_interval: Interval | None = None

    @property
    def ratio(self) -> float | None:
        """The second one's over the first one's; None where one is missing or the first is 0."""
        return None if self.a is None or self.b is None or self.a == 0 else self.b / self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeComparison:
    """Two recipes.

    Attributes:
        quality: None without an evaluation set.
    """

    a: RecipeResult
    b: RecipeResult
    figures: tuple[RecipeFigure, ...]
    quality: QualityComparison | None

    @property
    def engine_note(self) -> str:
        """How the local engine announced itself; empty on AWS."""
        return self.b.trial.engine_note or self.a.trial.engine_note

    @property
    def is_accepted(self) -> bool:
        """Whether the second recipe's trial did not fail and no metric of its quality is proven worse."""
        return self.b.trial.verdict.status != "fail" and not (self.quality and self.quality.worse)

    def figure(self, name: str) -> RecipeFigure:
        """Return the figure of a name."""
        return next(figure for figure in self.figures if figure.name == name)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        words = {"pass": "meets the SLO", "fail": "misses the SLO", "inconclusive": "is not proven to meet the SLO"}
        at_gate = f"{self.b.recipe} {words[self.b.trial.verdict.status]}"
        local = f" (a local engine answered, not the model: {self.engine_note})" if self.engine_note else ""
        return f"{self._speed()}; {at_gate}; {self._quality()}{local}."

    def _speed(self) -> str:
        output, cost = self.figure(OUTPUT_AT_GATE), self.figure(COST_AT_GATE)
        if output.ratio is None:
            return f"{self.b.recipe} against {self.a.recipe}: the throughput at the gate was not measured"
        real = ", no real difference" if output.verdict == "no real difference" else ""
        words = f"{self.b.recipe} serves {output.ratio:.2f} times the output tokens per second of {self.a.recipe}{real}"
        return words if cost.ratio is None else f"{words}, at {cost.ratio:.2f} times the cost per million tokens"

    def _quality(self) -> str:
        quality = self.quality
        if quality is None:
            return "quality was not measured"
        judged = [each for each in quality.differences if each.verdict != "too few prompts"]
        if not judged:
            return f"quality is not decided by {quality.paired} prompts"
        real = [f"{each.metric} is {each.verdict}" for each in judged if each.verdict != "no real difference"]
        others = len(judged) - len(real)
        rest = f"no real difference in {others} of {len(judged)} metrics" if others else ""
        return f"quality: {', '.join(filter(None, [*real, rest]))}"


def compare_recipes(a: RecipeResult, b: RecipeResult) -> RecipeComparison:
    """Compare two recipes.

    Raises:
        SpecError: SEA531, they were measured in different ways.
    """
    check_comparable((a, b))
    quality = None
    if a.answers and b.answers:
        quality = compare_quality(pairs_of(a.prompts, a.answers, b.answers), len(a.prompts))
    return RecipeComparison(a=a, b=b, figures=tuple(_figures(a, b)), quality=quality)


def _figures(a: RecipeResult, b: RecipeResult) -> Iterator[RecipeFigure]:
    gates = tuple(_point(result, result.trial.request.gate_concurrency) for result in (a, b))
    knees = tuple(None if result.trial.knee is None else result.trial.knee.concurrency for result in (a, b))
    at_knee = tuple(_point(result, load) for result, load in zip((a, b), knees, strict=True))
    yield _reading(OUTPUT_AT_GATE, "tok/s", *map(_throughput, gates), higher=True)
    yield RecipeFigure(name="knee", unit="requests in flight per copy", a=knees[0], b=knees[1])
    yield _reading("output at the knee", "tok/s", *map(_throughput, at_knee), higher=True)
    for name, latency in _LATENCIES:
        yield _reading(f"{name} at the gate", "ms", *(None if point is None else latency(point) for point in gates))
    sizes = a.deployment.weight_bytes, b.deployment.weight_bytes
    yield RecipeFigure(name="weights, planned", unit="bytes", a=sizes[0], b=sizes[1])
    if a.local_weight_bytes or b.local_weight_bytes:
        yield RecipeFigure(name="weights, local engine", unit="bytes", a=a.local_weight_bytes, b=b.local_weight_bytes)
    yield _cost(COST_AT_GATE, "USD per million output tokens", cost_at, (a, b), gates)
    yield _cost("blended cost at the gate", "USD per million tokens, 3:1", blended_cost_at, (a, b), gates)


def _throughput(point: LoadPoint | None) -> Reading | None:
    return None if point is None else point.throughput


def _point(result: RecipeResult, load: float | None) -> LoadPoint | None:
    return None if load is None else at_load(result.trial.levels, load)


def _reading(name: str, unit: str, a: Reading | None, b: Reading | None, *, higher: bool = False) -> RecipeFigure:
    a_interval, b_interval = (None if reading is None else reading.interval for reading in (a, b))
    return RecipeFigure(
        name=name,
        unit=unit,
        a=None if a is None else a.value,
        b=None if b is None else b.value,
        verdict=_apart(a_interval, b_interval, higher=higher),
        a_interval=a_interval,
        b_interval=b_interval,
    )


def _apart(a: Interval | None, b: Interval | None, *, higher: bool) -> FigureVerdict:
    """Judge by whether the intervals overlap, which is stricter than 95 % of their difference."""
    if a is None or b is None or None in (a.low, a.high, b.low, b.high):
        return "not judged"
    if (b.low or 0.0) > (a.high or 0.0):
        return "better" if higher else "worse"
    if (b.high or 0.0) < (a.low or 0.0):
        return "worse" if higher else "better"
    return "no real difference"


def _cost(
    name: str,
    unit: str,
    cost: Callable[[TrialRequest, LoadPoint | None], float | None],
    results: tuple[RecipeResult, RecipeResult],
    points: Sequence[LoadPoint | None],
) -> RecipeFigure:
    """Return what tokens cost; a local engine's speed on a CPU is no measure of a GPU's cost."""
    requests = (without_price(each.trial.request) if each.trial.engine_note else each.trial.request for each in results)
    a, b = (cost(request, point) for request, point in zip(requests, points, strict=True))
    return RecipeFigure(name=name, unit=unit, a=a, b=b)
