"""Fits the constants of vLLM, SGLang and TensorRT-LLM on the published rows of `measured/`.

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.fit_engines

Needs NumPy, which the project itself does not (SciPy brings it). The time of each operator is given by measured kernels
(`catalog.operators`); fitted are factors on them, which a prior keeps near 1, and what no kernel shows: the
work between two steps, small kernels, the server's work per sequence and per prompt token, the front end.

All engines are fitted at once. A factor is a product of what an engine's rows share, what the accelerators of a
generation share (as far from 1 as the fit of its kernels is off), and of what is left for the accelerator, the engine
on the generation, and the engine on the accelerator. What no row shows is left at 1: an accelerator without rows takes
the factors of its generation, and an engine without rows the times that all have in common. Each minor release of vLLM
changes the time of experts by one factor.

Residuals are the logarithms of predicted over measured TTFT, TPOT, end-to-end latency and throughput with a soft L1
loss; a cell (model, precision, accelerator, degree) weighs the same however many rows it has. The planner itself
predicts; a row's residuals depend on few constants, so one prediction for each gives the whole derivative (chain rule).
`--write` puts the constants into the catalog, rounded to three digits.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.fitting_engine import with_constants
from benchmarks.planner_accuracy.measured import ENGINES, FILES, PUBLIC, read_rows
from benchmarks.planner_accuracy.questions import write_csv
from seatrial.planner.predict.closed_form import predict_at as closed_form
from seatrial.planner.predict.copy_model import hardware_of, least_batched_tokens, place_copy
from seatrial.planner.predict.iteration_cost import kernels_of
from seatrial.planner.predict.memory import fit_memory, held_tokens
from seatrial_base.catalog import precision
from seatrial_base.catalog.engines import ENGINES as CATALOG_ENGINES
from seatrial_base.catalog.engines import PERFORMANCE, Performance, find_engine
from seatrial_base.catalog.operators import find_operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.planner_accuracy.measured import MeasuredRow
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_base.catalog.operators import Kind

    Numbers = NDArray[np.float64]

CATALOG = (
    Path(__file__).parents[2] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "engines.json"
)
FELT = Path(__file__).parent / "felt.csv"
FACTORS = ("product_factor", "experts_factor", "attention_factor", "link_factor")
TIMES = (
    "step_s",
    "layer_s",
    "sequence_s",
    "input_token_s",
    "request_s",
    "bunching",
    "skew_s",
    "sequence_rank",
    "linear_layer_s",
    "block_scaling_layer_s",
    "expert_parallel_layer_s",
    "sparse_layer_s",
)
PRIOR = {
    **dict.fromkeys(FACTORS, 1.0),
    "step_s": 1e-3,
    "layer_s": 8e-6,
    "sequence_s": 25e-6,
    "input_token_s": 2e-6,
    "request_s": 0.03,
    "bunching": 0.12,
    "skew_s": 5e-7,
    "sequence_rank": 0.1,
    "linear_layer_s": 2e-5,
    "block_scaling_layer_s": 5e-6,
    "expert_parallel_layer_s": 1e-5,
    "sparse_layer_s": 5e-5,
}
"""Where the fit starts and what it stays near: round numbers."""
GENERATIONS = {
    "NVIDIA A100 80GB SXM4": "Ampere",
    "NVIDIA A100 40GB SXM4": "Ampere",
    "NVIDIA A10G": "Ampere, PCIe",
    "NVIDIA L40S": "Ada",
    "NVIDIA L4": "Ada",
    "NVIDIA H100 SXM5 80GB": "Hopper",
    "NVIDIA H200 SXM 141GB": "Hopper",
    "NVIDIA B200 SXM": "Blackwell",
    "NVIDIA B300 SXM": "Blackwell",
    "NVIDIA RTX PRO 6000 Blackwell Server": "Blackwell, PCIe",
    "NVIDIA RTX PRO 4500 Blackwell Server": "Blackwell, PCIe",
}
"""Accelerators whose kernels are built alike."""
_NOISE = 0.08  # of a row, as a logarithm: published repeats and versions differ by so much
_ENGINE_PRIOR = 0.07  # as a logarithm: kernels in an engine are rarely 7 % slower or faster than alone
_TABLE_PRIOR = (0.07, 0.3)  # likewise, of a generation: the error of the fit on its kernels, within these
_LINK_PRIOR = 0.15  # likewise, of its links
_OWN_PRIOR = 0.08  # likewise, of what is left for an engine on an accelerator
_OF_ENGINES = ("product", "experts")  # operators whose kernels engines choose for themselves
_SHARED_TIMES = {"skew_s": 0.7, "sequence_rank": 0.7, "linear_layer_s": 0.4}
_SHARED_TIME_PRIOR = 0.8  # likewise: what no kernel shows is known within a factor of two to three
_OWN_TIMES = ("step_s", "sequence_s", "input_token_s", "bunching")  # those in which engines differ
_OWN_TIME_PRIOR = 0.6  # likewise: by a factor of two
_HARNESS_PRIOR = 0.8  # likewise: time of a request outside of the engine, by whoever sent it
_LINE_TIMES = ("step_s", "sequence_s")  # the host's work: in what vLLM's first engine differs from the one of today
_LINES = ("vllm-0.5", "vllm-0.6")
_LINE_PRIOR = 1.5  # likewise: by a factor of several
_SHIPPED_HARNESS = ("gpu_at_hand", "vllm")  # the one whose client is Seatrial's own
_RELEASE = "experts_release"
_RELEASE_PRIOR = 0.05  # likewise: a minor release makes experts a few per cent faster or slower
_OWN, _POOLED = "engine on accelerator", "engines on accelerator"
_FEWEST_ROWS = 10  # that an unknown is felt by: fewer keep what is shared
_LEAST_FACTOR = 0.005  # of a factor, as a logarithm: below, it is left out
_MOST_STEPS = 25
_SETTLED = 1e-4  # of the loss, as a share
_SHIFT = 0.005  # of a constant's logarithm, for a derivative
_TTFT_WEIGHT = 0.25  # rows don't say whether it is a mean or a median, nor how prompts arrived
_MOST_SEQUENCES = {"vllm": 1024, "sglang": 1024, "trtllm": 2048}

Fitted = dict[tuple[str, str], Performance]
"""Constants by their ID and by the file of the rows, whose harness takes a time of its own; "" for any other."""


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
    """Fit the constants of all engines on some rows, from `PRIOR`; without rows they keep that."""
    usable = [row for row in rows if place_row(row) is not None and row.is_comparable]
    unknowns = _unknowns(usable)
    found = dict(zip(unknowns.names, _fitted(usable, unknowns), strict=True)) if usable else {}
    kernels = sorted({name.partition("/")[::2] for row in usable for name in _kernels_of_row(row)})
    return {
        (line, file): _constants(line, file, found, kernels)
        for line, file in product((line for line, _ in shipped()), ("", *FILES))
    }


def _from_prior(constants: Performance) -> Performance:
    """Return constants with those that are fitted at `PRIOR`."""
    fixed = {field.name: getattr(constants, field.name) for field in fields(constants) if field.name not in PRIOR}
    return Performance(**{**fixed, **PRIOR, _RELEASE: 0.0, "kernel_factors": ()})


def _with(constants: Performance, values: Mapping[str, float], kernel_factors: tuple[str, ...]) -> Performance:
    own = {field.name: getattr(constants, field.name) for field in fields(constants)}
    return Performance(**{**own, **values, "kernel_factors": kernel_factors})


def shipped() -> Fitted:
    """Return the constants of the catalog."""
    lines = (row.constants for family in ENGINES.values() for row in CATALOG_ENGINES.having(family))
    return {(line, ""): PERFORMANCE[line] for line in lines}


def predict(row: MeasuredRow, fitted: Fitted, tables_of: str = "") -> PredictedRow | None:
    """Predict a row; `None` where the copy does not fit its accelerators.

    `tables_of`: The accelerator whose kernels and links are taken instead of its own, without factors.
    """
    copy = place_row(row)
    if copy is None:
        return None
    line = copy.engine.constants
    constants = fitted.get((line, row.file)) or fitted[line, ""]
    if tables_of:
        copy = replace(copy, hardware=replace(copy.hardware, accelerator=tables_of))
        constants = replace(constants, kernel_factors=())
    return _predict(replace(copy, engine=with_constants(copy.engine, constants)), row)


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
        attention_data_parallel_degree=row.attention_data_parallel_degree,
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
        expert_parallel_degree=row.expert_parallel_degree,
        attention_data_parallel_degree=row.attention_data_parallel_degree,
    )


Unknown = tuple[str, ...]
"""Name of one fitted logarithm: `("engine", "vllm", "product")`, `("time", "step_s")`, and so on."""


@dataclass(frozen=True, slots=True)
class _Unknowns:
    """What is fitted, and which of it make up a row's constants.

    Attributes:
        names: Of each unknown.
        spread: How far its logarithm may be from 0.
        parts: Of each row, by slot (an operator or a time): the places of the unknowns that add up to its logarithm.
    """

    names: tuple[Unknown, ...]
    spread: tuple[float, ...]
    parts: tuple[dict[str, tuple[int, ...]], ...]


def _unknowns(rows: Sequence[MeasuredRow]) -> _Unknowns:
    spread: dict[Unknown, float] = {}
    written: list[dict[str, tuple[Unknown, ...]]] = []
    for row in rows:
        copy = place_row(row)
        slots = (
            {name.split("/")[1]: _factor_parts(row.engine, name, spread) for name in kernels_of(copy)} if copy else {}
        )
        slots |= {name: _time_parts(row, name, spread) for name in TIMES if _counts(copy, name)} if copy else {}
        written.append(slots | _release_parts(row, spread))
    # Engines on an accelerator with too few rows each share a factor there, if all of them together have enough.
    felt = _felt(written)
    pooled = {name: (_POOLED, *name[2:]) if felt[name] < _FEWEST_ROWS and name[0] == _OWN else name for name in spread}
    spread |= {pooled[name]: width for name, width in spread.items()}
    written = [{slot: tuple(pooled[name] for name in own) for slot, own in slots.items()} for slots in written]
    felt = _felt(written)
    kept = {
        name: width
        for name, width in spread.items()
        if felt[name] >= _FEWEST_ROWS or (name[0] == "harness" and felt[name])
    }
    places = {name: at for at, name in enumerate(kept)}
    parts = tuple(
        {slot: tuple(places[name] for name in own if name in places) for slot, own in slots.items()}
        for slots in written
    )
    return _Unknowns(tuple(kept), tuple(kept.values()), parts)


def _counts(copy: Copy, name: str) -> bool:
    """Tell whether a time is a part of what a copy takes: that of linear attention only with linear layers."""
    shape = copy.architecture
    of_some = {
        "skew_s": copy.degree > 1,
        "linear_layer_s": shape.linear_layers + shape.mixed_layers > 0,
        "block_scaling_layer_s": shape.experts is not None and copy.quantization == "fp8",
        "expert_parallel_layer_s": shape.experts is not None and copy.expert_parallel_degree > 1,
        "sparse_layer_s": shape.sparse_tokens is not None,
    }
    return of_some.get(name, True)


def _felt(written: Iterable[Mapping[str, tuple[Unknown, ...]]]) -> Counter[Unknown]:
    """Return how many rows feel each unknown."""
    return Counter(name for slots in written for name in {name for own in slots.values() for name in own})


def _factor_parts(engine: str, kernel: str, spread: dict[Unknown, float]) -> tuple[Unknown, ...]:
    """Return what the factor of a kernel (`NVIDIA B200 SXM/experts/mxfp4`) is made of; notes each one's spread."""
    accelerator, operator, narrow = kernel.split("/")
    generation, own = GENERATIONS[accelerator], f"{operator}/{narrow}"
    if operator == "prefill attention":
        return ()
    names: dict[Unknown, float] = {("generation", generation, own): _table_prior(accelerator, operator, narrow)}
    if operator in _OF_ENGINES:
        names[_OWN, engine, accelerator, own] = _OWN_PRIOR
    for name, width in names.items():
        spread.setdefault(name, width)
    return tuple(names)


def _table_prior(accelerator: str, operator: str, narrow: str) -> float:
    if operator == "link":
        return _LINK_PRIOR
    least, most = _TABLE_PRIOR
    return min(most, max(least, find_operator(accelerator, _kind(operator), _quantized(narrow)).error))


def _kind(name: str) -> Kind:
    kinds: dict[str, Kind] = {
        "product": "product",
        "experts": "experts",
        "decode attention": "decode attention",
        "prefill attention": "prefill attention",
    }
    return kinds[name]


def _quantized(narrow: str) -> str | None:
    return None if narrow == "16-bit" else narrow


def _time_parts(row: MeasuredRow, name: str, spread: dict[Unknown, float]) -> tuple[Unknown, ...]:
    if name == "sequence_rank":
        return ()
    if name == "request_s":
        parts: dict[Unknown, float] = {("harness", row.file, row.engine): _HARNESS_PRIOR}
    else:
        parts = {("time", name): _SHARED_TIMES.get(name, _SHARED_TIME_PRIOR)}
        if name in _OWN_TIMES:
            parts["time of engine", row.engine, name] = _OWN_TIME_PRIOR
        if name in _LINE_TIMES and (line := _line_of(row)) in _LINES:
            parts["time of line", line, name] = _LINE_PRIOR
    for part, width in parts.items():
        spread.setdefault(part, width)
    return tuple(parts)


def _release_parts(row: MeasuredRow, spread: dict[Unknown, float]) -> dict[str, tuple[Unknown, ...]]:
    """Return the slot of what a release changes, where the row's engine has several with experts."""
    copy = place_row(row)
    if copy is None or row.dense or not copy.engine.releases:
        return {}
    name = ("release of engine", row.engine)
    spread.setdefault(name, _RELEASE_PRIOR)
    return {_RELEASE: (name,)}


def _fitted(rows: Sequence[MeasuredRow], unknowns: _Unknowns) -> list[float]:
    """Return the logarithms that make the loss least: Gauss-Newton steps, damped until they pay."""
    import numpy as np  # noqa: PLC0415 (only a fit needs it, which the project does not)

    sizes = Counter(map(cell_of, rows))
    weights = np.array([1 / math.sqrt(sizes[cell_of(row)]) for row in rows])[:, None]
    prior = (_NOISE / np.array(unknowns.spread)) ** 2

    def loss(at: Numbers, off: Numbers) -> float:
        return float(2 * _NOISE**2 * (np.sqrt(1 + (off / _NOISE) ** 2) - 1).sum() + (prior * at * at).sum())

    at, damping = np.zeros(len(unknowns.names)), 1e-3
    off = weights * _residuals(rows, unknowns, at)
    least = loss(at, off)
    for _ in range(_MOST_STEPS):
        slope = weights[:, :, None] * _slopes(rows, unknowns, at, off / weights)
        steep = 1 / np.sqrt(1 + (off / _NOISE) ** 2)
        matrix = np.diag(prior) + np.einsum("rfp,rf,rfq->pq", slope, steep, slope, optimize=True)
        downhill = prior * at + np.einsum("rfp,rf->p", slope, steep * off, optimize=True)
        while damping < 1e6:  # noqa: PLR2004 (a step of nothing)
            step = np.clip(np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), -downhill), -1, 1)
            tried = weights * _residuals(rows, unknowns, at + step)
            if (found := loss(at + step, tried)) < least:
                break
            damping *= 5
        else:
            break
        settled, at, off, least, damping = least - found < _SETTLED * least, at + step, tried, found, damping / 5
        if settled:
            break
    return [float(each) for each in at]


def _residuals(rows: Sequence[MeasuredRow], unknowns: _Unknowns, at: Numbers) -> Numbers:
    import numpy as np  # noqa: PLC0415

    logs = [_logs(parts, at) for parts in unknowns.parts]
    return np.array([_off(row, own) for row, own in zip(rows, logs, strict=True)])


def _slopes(rows: Sequence[MeasuredRow], unknowns: _Unknowns, at: Numbers, off: Numbers) -> Numbers:
    """Return the derivatives of every row's residuals by every unknown."""
    import numpy as np  # noqa: PLC0415

    found = np.zeros((len(rows), off.shape[1], len(unknowns.names)))
    for place, (row, parts) in enumerate(zip(rows, unknowns.parts, strict=True)):
        logs = _logs(parts, at)
        for slot, own in parts.items():
            moved = np.array(_off(row, logs | {slot: logs[slot] + _SHIFT}))
            found[place][:, list(own)] = ((moved - off[place]) / _SHIFT)[:, None]
    return found


def _logs(parts: Mapping[str, Iterable[int]], at: Numbers) -> dict[str, float]:
    return {slot: float(sum(at[place] for place in own)) for slot, own in parts.items()}


def _off(row: MeasuredRow, logs: Mapping[str, float]) -> list[float]:
    """Return a row's residuals under constants whose logarithms over the prior are given by slot."""
    copy = place_row(row)
    if copy is None:
        raise LookupError(row.model)
    times = {name: PRIOR[name] * math.exp(logs.get(name, 0.0)) for name in TIMES}
    named = ((name, name.split("/")[1]) for name in kernels_of(copy))
    factors = tuple(f"{name}={math.exp(logs[slot])!r}" for name, slot in named)
    constants = _with(_start(copy.engine.constants), times | {_RELEASE: logs.get(_RELEASE, 0.0)}, factors)
    return errors(row, _predict(replace(copy, engine=with_constants(copy.engine, constants)), row))


@cache
def _start(line: str) -> Performance:
    return _from_prior(shipped()[line, ""])


def _line_of(row: MeasuredRow) -> str:
    return find_engine(row.engine, row.engine_version).constants


def _kernels_of_row(row: MeasuredRow) -> tuple[str, ...]:
    copy = place_row(row)
    return kernels_of(copy) if copy else ()


def _constants(line: str, file: str, found: Mapping[Unknown, float], kernels: Sequence[tuple[str, str]]) -> Performance:
    """Return a line's constants under a harness: its own where its rows showed them, else what engines share.

    A factor is of an accelerator that has rows: those of others were worse than none when it was left out.
    """
    engine = line.partition("-")[0]

    def total(*names: Unknown) -> float:
        return sum(found.get(name, 0.0) for name in names)

    logs = {
        name: total(("time", name), ("time of engine", engine, name), ("time of line", line, name)) for name in TIMES
    }
    logs["request_s"] = total(("harness", file, engine) if file else ("harness", *_SHIPPED_HARNESS))
    factors: list[str] = []
    for accelerator, own in kernels:
        log = total(
            ("generation", GENERATIONS[accelerator], own), (_OWN, engine, accelerator, own), (_POOLED, accelerator, own)
        )
        if abs(log) >= _LEAST_FACTOR:
            factors.append(f"{accelerator}/{own}={math.exp(log)!r}")
    values = {name: PRIOR[name] * math.exp(log) for name, log in logs.items()}
    release = {_RELEASE: total(("release of engine", engine))}
    return _with(_start(line), values | release, tuple(factors))


def felt_by(rows: Sequence[MeasuredRow]) -> list[dict[str, str]]:
    """Return each unknown of the fit with the rows, the sources and the models that feel it."""
    usable = [row for row in rows if place_row(row) is not None and row.is_comparable]
    unknowns = _unknowns(usable)
    own: dict[int, list[MeasuredRow]] = {}
    for row, parts in zip(usable, unknowns.parts, strict=True):
        for place in {place for slot in parts.values() for place in slot}:
            own.setdefault(place, []).append(row)
    return [
        {
            "unknown": " / ".join(name),
            "rows": str(len(own[place])),
            "sources": str(len({row.source for row in own[place]})),
            "models": str(len({row.architecture.id for row in own[place]})),
        }
        for place, name in enumerate(unknowns.names)
    ]


def cell_of(row: MeasuredRow) -> tuple[str, str, str, str, int, int]:
    """Return what rows share that weigh as one."""
    place = row.accelerator, row.degree, row.expert_parallel_degree
    return row.engine, row.architecture.id, row.precision, *place


def errors(row: MeasuredRow, found: PredictedRow) -> list[float]:
    """Return the weighted logarithms of predicted over measured values, 0 where none was measured.

    Where all requests have the same length they stay together, and their prompts wait for each other: what they wait
    belongs to the harness, not to the engine, so of `gpu_runs` only the sum counts. Of SageMaker endpoints the mean
    counts: where answers differ in length, the median is that of another length than the mean one.
    """
    split = row.file not in ("gpu_runs", PUBLIC) and (row.file != "gpu_at_hand" or row.concurrency == 1)
    pairs = (
        (found.ttft_ms, row.ttft_ms if split else None, _TTFT_WEIGHT),
        (found.tpot_ms, row.tpot_ms if split else None, 0.7),
        (found.e2e_mean_ms, row.e2e_mean_ms, 1.0 if row.tpot_ms is None else 0.7),
        (found.output_tok_s, row.output_tok_s, 1.0),
    )
    return [weight * math.log(predicted / measured) if measured else 0.0 for predicted, measured, weight in pairs]


def main() -> None:
    """Print the constants, or with `--write` put them into the catalog, rounded to three digits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the constants into the catalog")
    found = {row.id: _rounded(row) for (_, file), row in fit(read_rows()).items() if not file}
    if not parser.parse_args().write:
        print(json.dumps(found, indent=2))
        return
    document = json.loads(CATALOG.read_text(encoding="utf-8"))
    rows = [{**row, **found.get(row["id"], {})} for row in document["performance"]]
    parts = (("performance", rows), ("rows", document["rows"]))
    lines = (f'"{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in part) + "\n]" for name, part in parts)
    CATALOG.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    write_csv(FELT, felt_by(read_rows()))


def _rounded(constants: Performance) -> dict[str, object]:
    numbers = {name: float(f"{getattr(constants, name):.3g}") for name in (*FACTORS, *TIMES, _RELEASE)}
    pairs = (entry.rpartition("=") for entry in constants.kernel_factors)
    return {**numbers, "kernel_factors": [f"{name}={float(value):.3g}" for name, _, value in pairs]}


if __name__ == "__main__":
    main()
