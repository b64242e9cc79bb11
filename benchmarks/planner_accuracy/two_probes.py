"""Two measured points of an endpoint, and how well they predict the levels between: on the published rows.

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.two_probes

The probes of each configuration are its first and its last published level. Twice: with the constants of the catalog,
which were fitted on these rows, and with constants fitted on the other configurations only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.fit import ENGINE, Row, copy_of, fit, read_rows
from seatrial.documents.calibration import Compared, MeasuredPoint
from seatrial.planner.calibration import compare_points, fit_calibration
from seatrial.planner.predict.simulation import PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engines import Performance


def _point(row: Row) -> MeasuredPoint:
    return MeasuredPoint(
        concurrency=row.concurrency, output_tok_s=row.throughput_tok_s, ms_per_token_p90=row.latency_ms_per_token
    )


def between(rows: list[Row], constants: Performance) -> Iterator[Compared]:
    """Calibrate on the first and the last level of one configuration, and predict the others."""
    points = sorted((_point(row) for row in rows), key=lambda point: point.concurrency)
    copy = copy_of(rows[0], constants)
    calibration = fit_calibration(copy, (points[0], points[-1]), PUBLISHED)
    print(f"  {rows[0].configuration}: fixed {calibration.fixed:.2f}, marginal {calibration.marginal:.2f}")
    yield from compare_points(replace(copy, calibration=calibration), points[1:-1], PUBLISHED)


def tell(name: str, found: list[Compared]) -> None:
    """Print mean errors and the error that 80 % of the levels stay within."""
    errors = {
        "throughput": [one.throughput_error for one in found],
        "latency": [one.latency_error or 0.0 for one in found],
    }
    for what, off in errors.items():
        within = sorted(off)[math.ceil(0.8 * len(off)) - 1]
        print(f"{name}, {len(off)} levels: {what} MAPE {fmean(off):.1%}, 80 % within {within:.1%}")


def main() -> None:
    """Print both."""
    rows, shipped = read_rows(), ENGINE.performance
    configurations = list(dict.fromkeys(row.configuration for row in rows))
    for name in ("constants of the catalog", "constants of the other configurations"):
        found: list[Compared] = []
        for configuration in configurations:
            others = [row for row in rows if row.configuration != configuration]
            constants = shipped if name == "constants of the catalog" else fit(others, shipped)
            found += between([row for row in rows if row.configuration == configuration], constants)
        tell(name, found)


if __name__ == "__main__":
    main()
