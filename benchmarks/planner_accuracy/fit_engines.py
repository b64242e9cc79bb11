"""Fits the constants of vLLM, SGLang and TensorRT-LLM on the published rows of `measured/`.

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.fit_engines

Needs SciPy, which the project itself does not. The time of each operator is given by measured kernels
(`catalog.operators`); fitted are factors on them, which a prior keeps near 1, and what no kernel shows: the
work between two steps, small kernels, the server's work per sequence and per prompt token, the front end. Residuals are
the logarithms of predicted over measured TTFT, TPOT, end-to-end latency and throughput with a soft L1 loss; a cell
(model, precision, accelerator, degree) weighs the same however many rows it has. `--write` puts the constants into the
catalog, rounded to three digits.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.fitting_engine import with_constants
from benchmarks.planner_accuracy.measured import ENGINES, read_rows
from seatrial.planner.predict.closed_form import predict_at as closed_form
from seatrial.planner.predict.copy_model import hardware_of, least_batched_tokens, place_copy
from seatrial.planner.predict.iteration_cost import kernels_of
from seatrial.planner.predict.memory import fit_memory, held_tokens
from seatrial_base.catalog import precision
from seatrial_base.catalog.engines import Performance, find_engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.planner_accuracy.measured import MeasuredRow
    from seatrial.planner.predict.copy_model import Copy

CATALOG = (
    Path(__file__).parents[2] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "engines.json"
)
FACTORS = ("product_factor", "experts_factor", "attention_factor", "link_factor")
TIMES = ("step_s", "layer_s", "sequence_s", "input_token_s", "request_s", "bunching")
PRIOR = {
    **dict.fromkeys(FACTORS, 1.0),
    "step_s": 1e-3,
    "layer_s": 8e-6,
    "sequence_s": 25e-6,
    "input_token_s": 2e-6,
    "request_s": 0.03,
    "bunching": 0.12,
}
"""Where the fit starts and what it stays near: round numbers."""
_FACTOR_PRIOR = 0.07  # as a logarithm: kernels in an engine are rarely 7 % slower or faster than alone
_KERNEL_PRIOR = 0.2  # likewise, of one operator on one accelerator: the error of the fits on measured kernels
_NOISE = 0.08  # of a row, as a logarithm: published repeats and versions differ by so much
_MOST_STEPS = 12
_REQUEST_PRIOR = 0.4  # likewise, of the front end, which TTFT alone shows
_TIME_PRIOR = 1.0  # likewise: what no kernel shows is known within a factor of three
_TTFT_WEIGHT = 0.25  # rows don't say whether it is a mean or a median, nor how prompts arrived
_MOST_SEQUENCES = {"vllm": 1024, "sglang": 1024, "trtllm": 1024}

Fitted = dict[str, Performance]
"""Constants by engine."""


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """What is predicted for a row, all means but the percentiles."""

    ttft_ms: float
    tpot_ms: float
    e2e_mean_ms: float
    e2e_p50_ms: float
    e2e_p90_ms: float
    output_tok_s: float


def fit(rows: Sequence[MeasuredRow]) -> Fitted:
    """Fit the constants of each engine on its rows, from `PRIOR`; an engine without rows keeps that."""
    return {
        engine: _fit_engine([row for row in rows if row.engine == engine], _from_prior(constants))
        for engine, constants in shipped().items()
    }


def _from_prior(constants: Performance) -> Performance:
    """Return constants with those that are fitted at `PRIOR`."""
    fixed = {field.name: getattr(constants, field.name) for field in fields(constants) if field.name not in PRIOR}
    return Performance(**{**fixed, **PRIOR, "kernel_factors": ()})


def shipped() -> Fitted:
    """Return the constants of the catalog."""
    return {family: find_engine(family, "").performance for family in ENGINES.values()}


def predict(row: MeasuredRow, fitted: Mapping[str, Performance]) -> PredictedRow | None:
    """Predict a row; `None` where the copy does not fit its accelerators."""
    copy = place_row(row)
    if copy is None:
        return None
    return _predict(replace(copy, engine=with_constants(copy.engine, fitted[row.engine])), row)


def _predict(copy: Copy, row: MeasuredRow) -> PredictedRow:
    found = closed_form(copy, row.concurrency or copy.most_running)
    return PredictedRow(
        ttft_ms=found.ttft_ms,
        tpot_ms=found.tpot_ms,
        e2e_mean_ms=found.e2e_latency_ms,
        e2e_p50_ms=found.e2e_latency_ms,
        e2e_p90_ms=found.e2e_latency_ms,
        output_tok_s=found.output_tok_s,
    )


@cache
def place_row(row: MeasuredRow) -> Copy | None:
    """Place the copy of a row; `None` where it does not fit its accelerators."""
    engine, hardware = find_engine(row.engine, row.engine_version), hardware_of(row.instance, row.quantization)
    if hardware is None:
        return None
    batched = least_batched_tokens(engine, row.instance, row.input_tokens)
    memory = fit_memory(
        row.architecture,
        row.instance,
        engine,
        degree=row.degree,
        quantization=row.quantization,
        tokens=held_tokens(engine, row.input_tokens, row.output_tokens),
        batched_tokens=batched,
        kv_bits=precision.default_kv_bits(row.engine, row.quantization),
    )
    if memory.kv_limited_batch < 1:
        return None
    return place_copy(
        row.architecture,
        hardware,
        engine,
        memory,
        degree=row.degree,
        quantization=row.quantization,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        batched_tokens=batched,
        max_num_seqs=_MOST_SEQUENCES[row.engine],
        prefix_hit_rate=row.prefix_hit_rate,
    )


@dataclass(frozen=True, slots=True)
class _Unknowns:
    """What is fitted for one engine, as logarithms in this order.

    Attributes:
        kernels: Operators on one accelerator at one precision that its rows ran.
    """

    kernels: tuple[str, ...]

    def spread(self) -> list[float]:
        """Return how far each may be from where it starts."""
        times = [_REQUEST_PRIOR if name == "request_s" else _TIME_PRIOR for name in TIMES]
        shared = [_FACTOR_PRIOR] * len(FACTORS) + times
        return [*shared, *[_KERNEL_PRIOR] * len(self.kernels)]

    def constants(self, start: Performance, logs: Sequence[float]) -> Performance:
        """Return the constants of the engine."""
        names = (*FACTORS, *TIMES)
        values = {name: getattr(start, name) * math.exp(log) for name, log in zip(names, logs, strict=False)}
        own = zip(self.kernels, logs[len(names) :], strict=False)
        written = tuple(f"{name}={math.exp(log)}" for name, log in own)
        return replace(start, **values, kernel_factors=written)


def _unknowns(rows: Sequence[MeasuredRow]) -> _Unknowns:
    names: dict[str, None] = {}
    for row in rows:
        copy = place_row(row)
        if copy is not None:
            names |= dict.fromkeys(kernels_of(copy))
    return _Unknowns(tuple(sorted(names)))


def _fit_engine(rows: Sequence[MeasuredRow], start: Performance) -> Performance:
    usable = [row for row in rows if place_row(row) is not None and not is_direct(row) and not has_queued(row)]
    if not usable:
        return start
    from scipy.optimize import least_squares  # noqa: PLC0415 (only a fit needs SciPy, which the project does not)

    sizes, unknowns = Counter(map(cell_of, usable)), _unknowns(usable)
    spread = unknowns.spread()

    def residuals(shifted: Sequence[float]) -> list[float]:
        logs = [each - 1 for each in shifted]
        constants = unknowns.constants(start, logs)
        off = [_NOISE * log / width for log, width in zip(logs, spread, strict=True)]
        for row in usable:
            found = predict(row, {row.engine: constants})
            weight = 1 / math.sqrt(sizes[cell_of(row)])
            off += [weight * each for each in errors(row, found)] if found else []
        return off

    found = least_squares(
        residuals, [1.0] * len(spread), loss="soft_l1", f_scale=_NOISE, diff_step=0.01, max_nfev=_MOST_STEPS
    )
    return unknowns.constants(start, [each - 1 for each in found.x])


def cell_of(row: MeasuredRow) -> tuple[str, str, str, str, int]:
    """Return what rows share that weigh as one."""
    return row.engine, row.architecture.id, row.precision, row.accelerator, row.degree


def is_direct(row: MeasuredRow) -> bool:
    """Tell whether accelerators on PCIe talked to each other directly, as those of no instance type on AWS do.

    TensorRT-LLM's pages are of such a machine; so fast an all-reduce would be wrong for ml.g6e.
    """
    return row.file == "trtllm_saturation" and row.accelerator == "NVIDIA L40S" and row.degree > 1


def has_queued(row: MeasuredRow) -> bool:
    """Tell whether requests waited longer than they ran: a limit that the source does not give kept them out."""
    return row.e2e_mean_ms is not None and row.ttft_ms is not None and row.ttft_ms > row.e2e_mean_ms / 2


def errors(row: MeasuredRow, found: PredictedRow) -> list[float]:
    """Return the weighted logarithms of predicted over measured values.

    Where all requests have the same length they stay together, and their prompts wait for each other: what they wait
    belongs to the harness, not to the engine, so of `gpu_runs` only the sum counts.
    """
    split = row.file != "gpu_runs"
    pairs = (
        (found.ttft_ms, row.ttft_ms if split else None, _TTFT_WEIGHT),
        (found.tpot_ms, row.tpot_ms if split else None, 0.7),
        (found.e2e_mean_ms, row.e2e_mean_ms, 0.7),
        (found.e2e_p50_ms, row.e2e_p50_ms, 1.0),
        (found.output_tok_s, row.output_tok_s, 1.0),
    )
    return [weight * math.log(predicted / measured) for predicted, measured, weight in pairs if measured]


def main() -> None:
    """Print the constants, or with `--write` put them into the catalog, rounded to three digits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the constants into the catalog")
    found = {constants.id: _rounded(constants) for constants in fit(read_rows()).values()}
    if not parser.parse_args().write:
        print(json.dumps(found, indent=2))
        return
    document = json.loads(CATALOG.read_text(encoding="utf-8"))
    rows = [{**row, **found.get(row["id"], {})} for row in document["performance"]]
    parts = (("performance", rows), ("rows", document["rows"]))
    lines = (f'"{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in part) + "\n]" for name, part in parts)
    CATALOG.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _rounded(constants: Performance) -> dict[str, object]:
    numbers = {name: float(f"{getattr(constants, name):.3g}") for name in (*FACTORS, *TIMES)}
    pairs = (entry.rpartition("=") for entry in constants.kernel_factors)
    return {**numbers, "kernel_factors": [f"{name}={float(value):.3g}" for name, _, value in pairs]}


if __name__ == "__main__":
    main()
