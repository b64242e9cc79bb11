"""What a result concludes: objectives held against levels, the verdict, and the comparison with the last release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from seatrial.bench.request import Objective  # noqa: TC001 (the strict reader resolves the fields' types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One objective held against one level.

    Attributes:
        objective: The objective.
        measured: The value; None when there was nothing to measure.
        met: Whether it is proven met or missed; None when there was nothing to measure, or the interval reaches over
            the bound.
        sentence: The same in words.
        bound_low: Lower end of the one-sided interval at the gate's confidence; None without one.
        bound_high: Its upper end.
    """

    objective: Objective
    measured: float | None
    met: bool | None
    sentence: str
    bound_low: float | None = None
    bound_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the SLO holds at the gate's concurrency, and why."""

    status: Literal["pass", "fail", "inconclusive"]
    because: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One number of this trial beside the last release's, at one concurrency per copy.

    Attributes:
        metric: What is compared (`output_tok_s`, `ttft_ms p95`, …).
        concurrency: Where.
        before: The last release's value.
        after: This trial's.
        share: (after - before) / before; of the error rate, which is a share itself, after - before.
        worse: Whether it is worse beyond tolerance and noise.
        sentence: The same in words.
        better: Whether it is better beyond tolerance and noise.
    """

    metric: str
    concurrency: int
    before: float
    after: float
    share: float
    worse: bool
    sentence: str
    better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """This trial beside the last release's of the same workload.

    Attributes:
        status: `same` within tolerance or noise, `better`, `worse`, or `incomparable` (another workload, or none).
        because: Why, in a sentence.
        baseline_uri: Where the last release's result lies; empty when unknown.
        baseline_plan_digest: Its plan.
        baseline_started_at: When it was measured.
        changes: Number by number.
    """

    status: Literal["same", "better", "worse", "incomparable"]
    because: str
    baseline_uri: str = ""
    baseline_plan_digest: str = ""
    baseline_started_at: str = ""
    changes: tuple[Change, ...] = ()
