"""Fits the constants of an engine on published rows, and validates them with one configuration left out at a time.

Needs SciPy, which the project itself does not:

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.fit [--write]

Seven constants are fitted (`PRIOR`); the others of the catalog's row are fixed.
Residuals are the logarithms of predicted over published throughput and p90 latency, with a soft L1 loss; a prior keeps
each constant near a round number, because a configuration that is left out may be the only one that tells two of them
apart. A configuration is an instance type with its tensor parallel degree at one prompt length: all its concurrencies
are left out together. `--write` writes what was predicted for the rows that were left out to `leave_one_out.csv`, and
the errors, those of the catalog's constants beside them, into the table of docs/explanation/planner.md. Nothing is
written into the catalog: the printed constants are copied there by hand, rounded to three digits.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.fitting_engine import with_constants
from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory, held_tokens
from seatrial.planner.predict.simulation import PUBLISHED, outcome
from seatrial_base.catalog.engines import Performance, find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.planner.predict.copy_model import Copy

HERE = Path(__file__).parent
ROWS = HERE.parents[1] / "tests" / "planner" / "data" / "llama_2_7b_tgi.csv"
LEFT_OUT = HERE / "leave_one_out.csv"
PAGE = HERE.parents[1] / "docs" / "explanation" / "planner.md"
ENGINE = find_engine("tgi", "1.1.0")
PRIOR = {
    "product_factor": 1.0,
    "link_factor": 1.0,
    "kernel_launch_s": 3e-5,
    "sequence_s": 1e-4,
    "input_token_s": 3e-5,
    "attention_token_s": 1e-7,
    "skew_s": 1e-5,
}
"""Where the fit starts and what it stays near: round numbers."""
_COLUMNS = (
    "model",
    "instance_type",
    "tp_degree",
    "instance_count",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "throughput_tok_s",
    "latency_ms_per_token",
    "predicted_throughput_tok_s",
    "predicted_latency_ms_per_token",
)
_NO_LIMIT = 1_000  # sequences: the study's concurrencies end at 512
_NOISE = 0.08  # of a row, as a logarithm: the article's own repetitions differ by so much
_FACTOR_PRIOR = 0.15  # as a logarithm: kernels in an engine are rarely 15 % slower or faster than alone
_TIME_PRIOR = 0.8  # likewise: what no kernel shows is known within a factor of two


Pair = tuple[float, float]
"""Throughput in tokens/s and p90 latency in ms per token."""


@dataclass(frozen=True)
class Row:
    """One published row."""

    model: str
    instance_type: str
    degree: int
    input_tokens: int
    output_tokens: int
    concurrency: int
    throughput_tok_s: float
    latency_ms_per_token: float

    @property
    def configuration(self) -> tuple[str, int, int]:
        """What is left out together."""
        return self.instance_type, self.degree, self.input_tokens


def read_rows() -> list[Row]:
    """Read the published rows."""
    lines = [line for line in ROWS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [
        Row(
            model="Llama 2 7B",
            instance_type=row["instance_type"],
            degree=int(row["tp_degree"]),
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
            concurrency=int(row["concurrency"]),
            throughput_tok_s=float(row["throughput_tok_s"]),
            latency_ms_per_token=float(row["latency_ms_per_token"]),
        )
        for row in csv.DictReader(lines)
    ]


def with_factors(fixed: Performance, logs: Sequence[float]) -> Performance:
    """Multiply the priors by factors, given as logarithms in the order of `PRIOR`."""
    own = {field.name: getattr(fixed, field.name) for field in fields(fixed)}
    values = {name: prior * math.exp(log) for (name, prior), log in zip(PRIOR.items(), logs, strict=True)}
    return Performance(**{**own, **values})


def copy_of(row: Row, constants: Performance) -> Copy:
    """Place the row's copy with these constants."""
    architecture, instance = find_model("meta-llama/Llama-2-7b-hf"), find_instance(row.instance_type)
    if architecture is None or instance is None or (hardware := hardware_of(instance)) is None:
        raise LookupError(row.instance_type)
    engine = with_constants(ENGINE, constants)
    batched = ENGINE.default_batched_tokens
    memory = fit_memory(
        architecture,
        instance,
        engine,
        degree=row.degree,
        quantization=None,
        tokens=held_tokens(engine, row.input_tokens, row.output_tokens),
        batched_tokens=batched,
    )
    return place_copy(
        architecture,
        hardware,
        engine,
        memory,
        degree=row.degree,
        quantization=None,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        batched_tokens=batched,
        max_num_seqs=_NO_LIMIT,
    )


def predicted(row: Row, constants: Performance) -> Pair:
    """Return predicted throughput in tokens/s and p90 latency in ms per token."""
    found = outcome(copy_of(row, constants), row.concurrency, PUBLISHED)
    return found.output_tok_s, found.ms_per_token.p90


def fit(rows: Sequence[Row], fixed: Performance) -> Performance:
    """Fit the constants on some rows; the others are those of `fixed`."""
    from scipy.optimize import least_squares  # noqa: PLC0415 (only a fit needs SciPy, which the project does not)

    spread = [_TIME_PRIOR if name.endswith("_s") else _FACTOR_PRIOR for name in PRIOR]

    def residuals(logs: Sequence[float]) -> list[float]:
        constants = with_factors(fixed, logs)
        off = [_NOISE * log / width for log, width in zip(logs, spread, strict=True)]
        for row in rows:
            throughput, latency = predicted(row, constants)
            off += [math.log(throughput / row.throughput_tok_s), math.log(latency / row.latency_ms_per_token)]
        return off

    found = least_squares(residuals, [0.0] * len(spread), loss="soft_l1", f_scale=_NOISE, diff_step=0.01, max_nfev=60)
    return with_factors(fixed, found.x)


def errors(rows: Sequence[Row], found: Sequence[Pair]) -> tuple[list[float], list[float]]:
    """Return how far throughput and latency are off, as shares of the published values."""
    throughput = [abs(pair[0] / row.throughput_tok_s - 1) for row, pair in zip(rows, found, strict=True)]
    latency = [abs(pair[1] / row.latency_ms_per_token - 1) for row, pair in zip(rows, found, strict=True)]
    return throughput, latency


def leave_one_out(rows: Sequence[Row], fixed: Performance) -> list[Pair]:
    """Predict each row with constants fitted on the other configurations."""
    constants = {
        left_out: fit([row for row in rows if row.configuration != left_out], fixed)
        for left_out in dict.fromkeys(row.configuration for row in rows)
    }
    return [predicted(row, constants[row.configuration]) for row in rows]


def write(rows: Sequence[Row], found: Sequence[Pair]) -> None:
    """Write the predictions of the rows that were left out, in the columns of `seatrial predict`."""
    with LEFT_OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row, (throughput, latency) in zip(rows, found, strict=True):
            published = (row.throughput_tok_s, row.latency_ms_per_token)
            place_of = (row.model, row.instance_type, row.degree, 1, row.input_tokens, row.output_tokens)
            writer.writerow([*place_of, row.concurrency, *published, round(throughput, 2), round(latency, 2)])


def write_page(rows: Sequence[Row], found: Sequence[Pair], left_out: Sequence[Pair]) -> None:
    """Write the table of errors, those of the catalog's constants and of the rows that were left out."""
    page = PAGE.read_text(encoding="utf-8")
    places = dict.fromkeys((row.instance_type, row.degree, row.input_tokens) for row in rows)
    lines = []
    for instance_type, degree, prompt in places:
        inside = [at for at, row in enumerate(rows) if row.configuration == (instance_type, degree, prompt)]
        cells = _cells(rows, inside, found, left_out)
        lines.append(f"| {instance_type} | {degree} | {prompt:,} | {cells} |\n")
    lines.append(f"| all {len(rows)} rows | | | {_cells(rows, range(len(rows)), found, left_out)} |\n")
    before, after = re.split(r"^\| ml\..*^\| all 52 rows [^\n]*\n", page, maxsplit=1, flags=re.MULTILINE | re.DOTALL)
    PAGE.write_text(f"{before}{''.join(lines)}{after}", encoding="utf-8")


def _cells(rows: Sequence[Row], inside: Iterable[int], found: Sequence[Pair], left_out: Sequence[Pair]) -> str:
    """Return the mean errors of some rows: throughput and latency, then of what was left out."""
    chosen = list(inside)
    means = [fmean(off[at] for at in chosen) for predictions in (found, left_out) for off in errors(rows, predictions)]
    return " | ".join(f"{mean * 100:.1f} %" for mean in means)


def tell(name: str, rows: Sequence[Row], found: Sequence[Pair]) -> None:
    """Print mean errors and the error that 80 % of the rows stay within."""
    for what, off in zip(("throughput", "latency"), errors(rows, found), strict=True):
        within = sorted(off)[math.ceil(0.8 * len(off)) - 1]
        print(f"{name}: {what} MAPE {fmean(off):.1%}, 80 % within {within:.1%}")


def main() -> None:
    """Fit, validate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write leave_one_out.csv and the page's table")
    options = parser.parse_args()
    rows, shipped = read_rows(), ENGINE.performance
    as_shipped = [predicted(row, shipped) for row in rows]
    tell("as in the catalog", rows, as_shipped)
    constants = fit(rows, shipped)
    tell("fitted on all rows", rows, [predicted(row, constants) for row in rows])
    for name in PRIOR:
        print(f"  {name} {getattr(constants, name):.3g}")
    found = leave_one_out(rows, shipped)
    tell("one configuration left out", rows, found)
    if options.write:
        write(rows, found)
        write_page(rows, as_shipped, found)


if __name__ == "__main__":
    main()
