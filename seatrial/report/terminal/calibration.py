"""A calibration on a terminal: measured and predicted, before and after, probes marked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import table_view
from seatrial_base.table import number_columns, table_of, text_columns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.documents.calibration import Compared, EndpointCalibration, Outlook


def calibration_view(outlook: Outlook, entry: EndpointCalibration) -> RenderableType:
    """Return the factors, and every measured level with its predictions without and with them."""
    probes = {point.concurrency for point in entry.points}
    where = f"{entry.instance_type} with degree {entry.tensor_parallel_degree}, {entry.engine} {entry.engine_version}"
    numbers = ("tok/s\nmeasured", "\nbefore", "\nafter", "p90 ms/token\nmeasured", "\nbefore", "\nafter")
    columns = (*text_columns("\nconcurrency", ""), *number_columns(*numbers))
    parts: list[RenderableType] = [
        Text(f"Calibration of {entry.model} on {where}", style="bold"),
        Text(
            f"Fixed time per step: x {entry.fixed:,.4g}. Time per sequence and token: x {entry.marginal:,.4g}. "
            f"Band between the probes: throughput \u00b1{entry.throughput_error:.0%}, latency "
            f"\u00b1{entry.latency_error or 0:.0%}."
        ),
        table_view(table_of(columns, map(partial(_level_row, probes), outlook.before, outlook.after))),
    ]
    # The probes are what was fitted: only the levels between them show how good the fit is.
    between = [one for one in outlook.after if one.measured.concurrency not in probes]
    if between:
        throughput = sum(one.throughput_error for one in between) / len(between)
        latencies = [one.latency_error for one in between if one.latency_error is not None]
        text = f"Mean error at the other levels: throughput {throughput:.1%}"
        parts.append(
            Text(f"{text}." if not latencies else f"{text}, p90 latency {sum(latencies) / len(latencies):.1%}.")
        )
    if entry.source.engine_note:
        parts.append(Text(f"measured on: {entry.source.engine_note}", style="yellow"))
    return Group(*parts)


def _level_row(probes: set[int], plain: Compared, calibrated: Compared) -> tuple[str, ...]:
    point = plain.measured
    return (
        str(point.concurrency),
        "probe" if point.concurrency in probes else "",
        f"{point.output_tok_s:,.4g}",
        f"{plain.output_tok_s:,.4g}",
        f"{calibrated.output_tok_s:,.4g}",
        "" if point.ms_per_token_p90 is None else f"{point.ms_per_token_p90:,.4g}",
        f"{plain.ms_per_token:,.4g}",
        f"{calibrated.ms_per_token:,.4g}",
    )
