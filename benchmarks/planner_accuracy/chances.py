"""How often stated chances come true: the chance that a deployment meets a target, against what was measured.

    python -m benchmarks.planner_accuracy.chances    # print the table, which accuracy.py and scoreboard.py write

The chance is the planner's (`seatrial.planner.search.evaluate`), of rows that the fit did not see, with bands that come
from the errors of other models, degrees or lengths. Targets are those of `decisions`, and a few of TTFT. Picks are the
cheapest deployments that are predicted to meet a target; cheaper ones in doubt are predicted to miss it by less than
their band.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.compare import MISSING
from benchmarks.planner_accuracy.decisions import OBJECTIVES, Objective, cost, workloads
from benchmarks.planner_accuracy.earned_bands import JUDGED_FACETS, nested
from benchmarks.planner_accuracy.judged import LEFT_OUT, JudgedRow, read_judged
from seatrial.documents.prediction import Band
from seatrial.planner.predict.band import chance_within
from seatrial.planner.search.evaluate import SLOWER_IN_DOUBT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.planner_accuracy.questions import Question
    from seatrial_base.catalog.bands import Facet

Stated = tuple[float, bool]
"""A chance, and whether the measured value met the target."""
BINS = ((0.01, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 0.99))
TTFT_OBJECTIVES = tuple(Objective("ttft_ms", target) for target in (50, 100, 200, 500, 1_000, 2_000, 5_000))
_HEAD = tuple(f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in BINS)


def main() -> None:
    """Print the table."""
    print(table(read_judged() if LEFT_OUT.exists() else ()))


def table(rows: Sequence[JudgedRow]) -> str:
    """Return of each range of stated chances the mean one and how many came true."""
    found = {f"every row and target, {kind} left out": list(_every(rows, kind, OBJECTIVES)) for kind in JUDGED_FACETS}
    found |= {f"TTFT, {kind} left out": list(_every(rows, kind, TTFT_OBJECTIVES)) for kind in JUDGED_FACETS}
    for kind in JUDGED_FACETS:
        shares = {row.question: share for row, share in nested(rows, "latency", kind)}
        options = [row for row in rows if row.left_out == kind and row.question in shares]
        found[f"picks, {kind} left out"] = list(_picks(options, shares))
        slower = 0.0 if kind == "lengths" else SLOWER_IN_DOUBT
        found[f"cheaper deployments in doubt, {kind} left out"] = list(_doubtful(options, shares, slower))
    lines = [("stated chance", *_HEAD), ["---"] + ["---:"] * len(BINS)]
    lines += [(title, *(_told(stated, low, high) for low, high in BINS)) for title, stated in found.items()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def stated(row: JudgedRow, objective: Objective, share: float, slower: float = 0.0) -> Stated | None:
    """Return the chance that a row meets a target, and whether it did; `None` where either has no such figure."""
    predicted: float | None = getattr(row.predicted, objective.figure)
    measured: float | None = getattr(row.measured, objective.figure)
    if not predicted or not measured:
        return None
    band = Band(throughput=share, latency=share, measured=True, because="")
    own = band.latency_of(objective.figure)
    return chance_within(predicted / objective.target_ms, own, slower), objective.met(row.measured)


def _every(rows: Sequence[JudgedRow], kind: Facet, objectives: Sequence[Objective]) -> Iterator[Stated]:
    for row, share in nested(rows, "latency", kind):
        yield from filter(None, (stated(row, objective, share) for objective in objectives))


def _picks(rows: Sequence[JudgedRow], shares: Mapping[Question, float]) -> Iterator[Stated]:
    for possible, in_flight in workloads(rows):
        for objective in OBJECTIVES:
            pick = _pick(possible, in_flight, objective)
            told = pick and stated(pick, objective, shares[pick.question])
            if told:
                yield told


def _doubtful(rows: Sequence[JudgedRow], shares: Mapping[Question, float], slower: float) -> Iterator[Stated]:
    """Yield of each pick the cheaper deployment whose saving times its chance is largest, as `seatrial plan` has it."""
    for possible, in_flight in workloads(rows):
        for objective in OBJECTIVES:
            pick = _pick(possible, in_flight, objective)
            if pick is None:
                continue
            price = cost(pick.question, in_flight)
            cheaper = [row for row in possible if cost(row.question, in_flight) < price]
            told = [(row, stated(row, objective, shares[row.question], slower)) for row in cheaper]
            within = [(row, one) for row, one in told if one and _is_in_doubt(row, objective, shares[row.question])]
            if within:
                yield max(within, key=lambda pair: (price - cost(pair[0].question, in_flight)) * pair[1][0])[1]


def _is_in_doubt(row: JudgedRow, objective: Objective, share: float) -> bool:
    predicted: float = getattr(row.predicted, objective.figure)
    return 1 < predicted / objective.target_ms <= 1 + share


def _pick(rows: Sequence[JudgedRow], in_flight: float, objective: Objective) -> JudgedRow | None:
    promised = [row for row in rows if objective.met(row.predicted)]
    return min(promised, key=lambda row: cost(row.question, in_flight), default=None)


def _told(found: Sequence[Stated], low: float, high: float) -> str:
    own = [(chance, met) for chance, met in found if low <= chance < high]
    if not own:
        return MISSING
    return f"{100 * fmean(chance for chance, _ in own):.0f} %: {100 * fmean(met for _, met in own):.0f} % of {len(own)}"


if __name__ == "__main__":
    main()
