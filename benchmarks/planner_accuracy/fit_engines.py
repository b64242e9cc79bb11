"""Fits the constants of vLLM, SGLang and TensorRT-LLM on the published rows of `measured/`.

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.fit_engines

Needs SciPy, which the project itself does not. The time of each operator is given by measured kernels
(`seatrial.catalog.operators`); fitted are factors on them, which a prior keeps near 1, and what no kernel shows: the
work between two steps, small kernels, the server's work per sequence and per prompt token, the front end. Residuals are
the logarithms of predicted over measured TTFT, TPOT, end-to-end latency and throughput with a soft L1 loss; a cell
(model, precision, accelerator, degree) weighs the same however many rows it has. Nothing is written into the catalog:
the printed constants are copied there by hand, rounded to three digits.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.measured import read_rows
from seatrial.catalog import engines
from seatrial.predict.closed_form import predict as closed_form
from seatrial.predict.copy_model import hardware_of, place
from seatrial.predict.memory import fit_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.planner_accuracy.measured import MeasuredRow
    from seatrial.catalog.engines import Performance
    from seatrial.predict.copy_model import Copy

FACTORS = ("product_factor", "experts_factor", "attention_factor", "link_factor")
TIMES = ("step_s", "layer_s", "sequence_s", "input_token_s", "request_s", "bunching")
_FACTOR_PRIOR = 0.15  # as a logarithm: kernels in an engine are rarely 15 % slower or faster than alone
_TIME_PRIOR = 1.5  # likewise: what no kernel shows is known within a factor of four or five
_TTFT_WEIGHT = 0.25  # rows don't say whether it is a mean or a median, nor how prompts arrived
_MOST_SEQUENCES = {"vllm": 1024, "sglang": 1024, "trtllm": 1024}

Fitted = dict[str, "Performance"]
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
    """Fit the constants of each engine on its rows; an engine without rows keeps those of the catalog."""
    return {
        engine: _fit_engine([row for row in rows if row.engine == engine], start) for engine, start in shipped().items()
    }


def shipped() -> Fitted:
    """Return the constants of the catalog."""
    return {family: engines.find(family, "").performance for family in ("vllm", "sglang", "trtllm")}


def predict(row: MeasuredRow, fitted: Mapping[str, Performance]) -> PredictedRow | None:
    """Predict a row; `None` where the copy does not fit its accelerators."""
    copy = _placed(row)
    if copy is None:
        return None
    return _predict(replace(copy, engine=_with(copy.engine, fitted[row.engine])), row)


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
def _placed(row: MeasuredRow) -> Copy | None:
    engine, hardware = engines.find(row.engine, row.engine_version), hardware_of(row.instance, row.quantization)
    if hardware is None:
        return None
    tokens = row.input_tokens + row.output_tokens
    memory = fit_memory(
        row.architecture,
        row.instance,
        engine,
        degree=row.degree,
        quantization=row.quantization,
        tokens=tokens,
        batched_tokens=engine.default_batched_tokens,
        kv_bits=_kv_bits(row),
    )
    if memory.kv_limited_batch < 1:
        return None
    return place(
        row.architecture,
        hardware,
        engine,
        memory,
        degree=row.degree,
        quantization=row.quantization,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        batched_tokens=engine.default_batched_tokens,
        max_num_seqs=_MOST_SEQUENCES[row.engine],
        prefix_hit_rate=row.prefix_hit_rate,
    )


def _kv_bits(row: MeasuredRow) -> int:
    """Return the bits of a cached element: checkpoints of NVIDIA's Model Optimizer bring scales of an FP8 cache."""
    narrow = row.quantization == "nvfp4" or (row.quantization == "fp8" and row.engine == "trtllm")
    return 8 if narrow else 16


class _Fitting(engines.Engine):
    """An engine with constants that are being fitted."""

    __slots__ = ("_constants",)

    def __init__(self, engine: engines.Engine, constants: Performance) -> None:
        super().__init__(**{name: getattr(engine, name) for name in engines.Engine.__dataclass_fields__})
        object.__setattr__(self, "_constants", constants)

    @property
    def performance(self) -> Performance:
        return self._constants  # type: ignore[no-any-return, attr-defined]  # (a slot set by __init__)


def _with(engine: engines.Engine, constants: Performance) -> engines.Engine:
    return _Fitting(engine, constants)


def _fit_engine(rows: Sequence[MeasuredRow], start: Performance) -> Performance:
    from scipy.optimize import least_squares

    usable = [row for row in rows if _placed(row) is not None]
    if not usable:
        return start
    sizes = Counter(map(cell_of, usable))
    names = (*FACTORS, *TIMES)

    def residuals(logs: Sequence[float]) -> list[float]:
        constants = _moved(start, names, logs)
        off = [log / _FACTOR_PRIOR for log in logs[: len(FACTORS)]] + [
            log / _TIME_PRIOR for log in logs[len(FACTORS) :]
        ]
        off = [0.1 * each for each in off]
        for row in usable:
            found = predict(row, {row.engine: constants})
            weight = 1 / math.sqrt(sizes[cell_of(row)])
            off += [weight * each for each in errors(row, found)] if found else []
        return off

    found = least_squares(residuals, [0.0] * len(names), loss="soft_l1", f_scale=0.1, diff_step=0.01, max_nfev=25)
    return _moved(start, names, found.x)


def _moved(start: Performance, names: Sequence[str], logs: Sequence[float]) -> Performance:
    values = {name: getattr(start, name) * math.exp(log) for name, log in zip(names, logs, strict=True)}
    return replace(start, **values)


def cell_of(row: MeasuredRow) -> tuple[str, str, str, str, int]:
    """Return what rows share that weigh as one."""
    return row.engine, row.architecture.id, row.precision, row.accelerator, row.degree


def errors(row: MeasuredRow, found: PredictedRow) -> list[float]:
    """Return the weighted logarithms of predicted over measured values."""
    pairs = (
        (found.ttft_ms, row.ttft_ms, _TTFT_WEIGHT),
        (found.tpot_ms, row.tpot_ms, 0.7),
        (found.e2e_mean_ms, row.e2e_mean_ms, 0.7),
        (found.e2e_p50_ms, row.e2e_p50_ms, 1.0),
        (found.output_tok_s, row.output_tok_s, 1.0),
    )
    return [weight * math.log(predicted / measured) for predicted, measured, weight in pairs if measured]


def main() -> None:
    """Print the constants."""
    for engine, constants in fit(read_rows()).items():
        names = (*FACTORS, *TIMES)
        print(engine, json.dumps({name: float(f"{asdict(constants)[name]:.3g}") for name in names}))


if __name__ == "__main__":
    main()
