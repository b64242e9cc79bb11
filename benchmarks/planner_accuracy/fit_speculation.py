"""Fits the acceptance rate and the work between two drafted tokens on the EAGLE-3 rows of AWS's benchmark suite.

    python -m benchmarks.planner_accuracy.fit_speculation [--write]

Two numbers for all rows: everything else (verification, weights and cache of the head, the model's own step) is what
the performance model has, with the constants of the plain rows. Residuals are the logarithms of predicted over measured
mean latency with a soft L1 loss, as in `fit_engines`; the work between two drafted tokens stays near what one
publication says of an H100. `--write` puts both into the catalog and the table of errors into
README.md. Each row is also predicted by numbers that were fitted on the other use cases.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.compare import markdown
from benchmarks.planner_accuracy.fit_engines import place_row
from benchmarks.planner_accuracy.measured import FOLDER as ROWS
from benchmarks.planner_accuracy.measured import read_optimized
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.copy_model import Speculation
from seatrial_base.catalog.speculation import draft_of
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.planner_accuracy.measured import MeasuredRow
    from seatrial_base.catalog.speculation import Method

METHOD: Method = "eagle3"
DRAFT_TOKENS = 4  # recipes/qwen3-32b-g5-eagle3.yaml of the suite
CATALOG = ROWS.parents[2] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "speculation.json"
README = ROWS.parent / "README.md"
_BEGIN = "<!-- begin speculation: python -m benchmarks.planner_accuracy.fit_speculation --write -->"
_END = "<!-- end speculation -->"
_NOISE = 0.08  # of a row, as a logarithm, as in `fit_engines`
# vllm-project/vllm pull request 16937, Llama 3.1 8B on one H100 at batch 1: 133 tok/s, and 220.21 with two tokens of an
# EAGLE-3 head. At an acceptance rate of 0.743 (issue 26191) a step is 10.4 ms instead of 7.5: 1.2 ms a drafted token
# beside reading the head.
_PRIOR_S = 1.2e-3
_TIME_PRIOR = 0.2  # as a logarithm: the same engine on another host
_RATES = (0.05, 0.95)
_FLOORS = (math.log(1e-4), math.log(1e-2))  # seconds
_CUTS = 16  # each leaves two thirds of an interval


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is fitted.

    Attributes:
        acceptance_rate: Chance that a drafted token is accepted.
        step_s: Work between two drafted tokens.
    """

    acceptance_rate: float
    step_s: float


def rows_of(optimization: str) -> tuple[MeasuredRow, ...]:
    """Return the rows with one optimization."""
    return tuple(row for row in read_optimized() if row.optimization == optimization)


def error(row: MeasuredRow, fitted: Fitted | None) -> float:
    """Return the logarithm of predicted over measured mean latency; without drafts where nothing is fitted."""
    copy = place_row(row)
    if copy is None or row.concurrency is None or row.e2e_mean_ms is None:
        raise ValueError(f"{row.model} on {row.instance.instance_type} has no latency to compare with")
    if fitted is not None:
        draft = draft_of(METHOD, row.architecture)
        own = replace(draft, step_s=fitted.step_s) if draft else None
        copy = replace(copy, speculation=Speculation(DRAFT_TOKENS, fitted.acceptance_rate, 0.0, own))
    return math.log(predict_at(copy, row.concurrency).e2e_latency_ms / row.e2e_mean_ms)


def fit(rows: Sequence[MeasuredRow]) -> Fitted:
    """Fit both numbers, rounded to three digits."""

    def best_rate(floor: float) -> float:
        return _least(lambda rate: _loss(rows, rate, floor), _RATES)

    floor = _least(lambda each: _loss(rows, best_rate(each), each), _FLOORS)
    return Fitted(float(f"{best_rate(floor):.3g}"), float(f"{math.exp(floor):.3g}"))


def _loss(rows: Sequence[MeasuredRow], rate: float, floor: float) -> float:
    fitted = Fitted(rate, math.exp(floor))
    off = math.fsum(math.sqrt(1 + (error(row, fitted) / _NOISE) ** 2) - 1 for row in rows)
    return 2 * off + ((floor - math.log(_PRIOR_S)) / _TIME_PRIOR) ** 2


def _least(loss: Callable[[float], float], between: tuple[float, float]) -> float:
    """Return where a function of one minimum is least, by cutting the interval in three."""
    low, high = between
    for _ in range(_CUTS):
        third = (high - low) / 3
        low, high = (low, high - third) if loss(low + third) < loss(high - third) else (low + third, high)
    return (low + high) / 2


def left_out(rows: Sequence[MeasuredRow]) -> dict[str, list[float]]:
    """Return the errors of each use case, predicted by numbers that were fitted on the others."""
    cases = dict.fromkeys(row.use_case for row in rows)
    return {
        case: [error(row, others) for row in rows if row.use_case == case]
        for case in cases
        for others in [fit([row for row in rows if row.use_case != case])]
    }


def table(rows: Sequence[MeasuredRow], fitted: Fitted) -> str:
    """Return the errors by use case: without drafts, fitted on all, and fitted on the other use cases."""
    unseen = left_out(rows)
    lines = [_line(case, [row for row in rows if row.use_case == case], fitted, off) for case, off in unseen.items()]
    lines.append(_line("all", rows, fitted, [each for off in unseen.values() for each in off]))
    cached = rows_of("prefix-cache")
    plain = _told([error(row, None) for row in cached])
    lines.append(["prefix-cache, all", str(len(cached)), *plain, *plain, *plain])
    kinds = ("without drafts", "fitted on all", "fitted on the other use cases")
    head = ["rows of", "rows", *(f"{kind}: {name}" for kind in kinds for name in ("median", "p90"))]
    return markdown(head, 1, lines)


def _line(name: str, rows: Sequence[MeasuredRow], fitted: Fitted, unseen: Sequence[float]) -> list[str]:
    before = [error(row, None) for row in rows]
    after = [error(row, fitted) for row in rows]
    return [f"{METHOD}, {name}", str(len(rows)), *_told(before), *_told(after), *_told(unseen)]


def _told(logs: Sequence[float]) -> tuple[str, str]:
    shares = sorted(abs(math.exp(each) - 1) for each in logs)
    return f"{median(shares):.1%}".replace("%", " %"), f"{percentile(shares, 90):.1%}".replace("%", " %")


def main() -> None:
    """Print what is fitted and the table, or with `--write` put them where they belong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the catalog and README.md")
    write, rows = parser.parse_args().write, rows_of(METHOD)
    fitted = fit(rows)
    told = table(rows, fitted)
    print(fitted, told, sep="\n")
    if write:
        CATALOG.write_text(fitted_into(CATALOG.read_text(encoding="utf-8"), fitted), encoding="utf-8")
        README.write_text(_between_marks(README.read_text(encoding="utf-8"), told), encoding="utf-8")


def fitted_into(catalog: str, fitted: Fitted) -> str:
    """Return the catalog's file with what was fitted; a rate that another model borrows follows."""
    document = json.loads(catalog)
    document["times"]["draft_step_s"] = str(fitted.step_s)
    for row in document["rows"]:
        if row["method"] == METHOD and row["provenance"] in ("fitted", "assumed"):
            row["acceptance_rate"] = fitted.acceptance_rate
    return f"{json.dumps(document, indent=2)}\n"


def _between_marks(page: str, told: str) -> str:
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{told}\n{_END}{after}"


if __name__ == "__main__":
    main()
