"""Predicts the rows of `seatrial predict`: throughput, p90 latency, what bounds, and how far it may be off.

The published load is the articles' protocol: a closed loop of three requests a client without warm-up. The steady load
is a closed loop of many. Rows that ask the same of one copy share its simulation.
"""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from functools import cache
from typing import TYPE_CHECKING, Literal

from seatrial.documents.prediction import Band, Limit
from seatrial.planner.predict.band import ASSUMED, DATA_PARALLEL, band_of, carried_chance, doubted
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.copy_model import compiled_length, hardware_of, least_batched_tokens, place_copy
from seatrial.planner.predict.memory import SharedPrefix, fit_memory, held_tokens
from seatrial.planner.predict.simulation import (
    PUBLISHED,
    REQUESTS_AT_A_RATE,
    Batches,
    closed_static,
    open_level,
    outcome,
    saturation_per_s,
    simulate_static,
)
from seatrial.planner.tables import options
from seatrial.planner.tables.rows import COUNTS
from seatrial.planner.tables.steady import (
    InstanceLevel,
    SteadyLevel,
    even_split,
    fleet,
    met_by_a_request,
    product_form,
    rising,
    round_trip_s,
    steady,
    steady_level,
    steady_mean,
)
from seatrial_base.catalog import neuron
from seatrial_base.catalog.architecture import shards_evenly
from seatrial_base.catalog.engine_limits import Start, start_refusals
from seatrial_base.catalog.engines import ENGINE_CANDIDATES, EngineCase, release_of, rule_reasons
from seatrial_base.table import without_formula
from seatrial_base.units import GIB, MS_PER_S, as_number
from seatrial_load.documents.arrivals import Poisson
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.tables.rows import CsvRow, Load, RowSpec
    from seatrial_base.catalog.engines import Facts

Form = Literal["simulation", "closed"]
TIMEOUT_S = 60.0  # SageMaker's bound of an invocation
# Sequences of a batch at most. TGI batches what its token budget holds, SGLang what its KV pool holds; 256 for LMI is
# an assumption, the batch limit that the planner takes; 2,048 is TensorRT-LLM's default of max_batch_size.
_BATCH_LIMITS = {"tgi": 1_000_000, "sglang": 1_000_000, "lmi": 256, "trtllm": 2_048}
# vLLM V1, engine/arg_utils.py: max_num_seqs of the API server, more from 70 GiB on except on the A100.
_VLLM_LIMIT, _VLLM_LARGE_LIMIT, _VLLM_LARGE_MEMORY = 256, 1_024, 70 * GIB
_MOST_SIMULATED = 512  # requests in flight on one copy; above it the closed form answers
_HOPELESS = 1.5  # times the timeout, in the mean: hardly a request is answered, and no simulation is worth its time
# The furthest that the routing of several instances was off from its simulation; docs/how-to/predict.md has the cases.
_ROUTING = Band(throughput=0.06, latency=0.17, measured=False, because="")
Cell = str | float | int | None
PREDICTED = (
    "predicted_throughput_tok_s",
    "predicted_latency_ms_per_token",
    "predicted_limit",
    "predicted_throughput_low_tok_s",
    "predicted_throughput_high_tok_s",
    "predicted_latency_low_ms_per_token",
    "predicted_latency_high_ms_per_token",
    "uncertainty",
)
STEADY = (
    "predicted_ttft_mean_ms",
    "predicted_tpot_mean_ms",
    "predicted_e2e_mean_ms",
    "predicted_e2e_p50_ms",
    "predicted_e2e_p90_ms",
)
OPEN = ("predicted_in_flight", "predicted_carried_chance")
ENGINE = "predicted_engine"
OPTIMIZATION = "predicted_optimization"
NOTE = "predicted_note"
ERROR = "predicted_error"
_DIGITS = 6  # significant ones; the band says how many mean something


@unique
class RowLimit(StrEnum):
    """What bounds a row that no copy's speed bounds."""

    TIMEOUT = "timeout"
    CONTEXT = "context"
    DOES_NOT_FIT = "does not fit"
    DEGREE = "degree does not divide the heads"
    QUEUE = "endless queue"
    ENGINE = "engine can't load it"


@dataclass(frozen=True, slots=True)
class RowPrediction:
    """What one row is predicted to give; not measured.

    Attributes:
        output_tok_s: Output tokens per second of all instances; `None` when the model does not fit.
        ms_per_token: 90th percentile of end-to-end latency over output tokens; `None` likewise.
        limit: What bounds it, or why there is nothing to bound.
        band: How far the numbers may be off.
        steady: Means and percentiles; only under a steady load, and where the row has a start or a rate.
        carried: Chance that the copies carry a rate, by the band of throughput; `None` in a closed loop.
    """

    output_tok_s: float | None
    ms_per_token: float | None
    limit: Limit | RowLimit
    band: Band
    steady: SteadyLevel | None = None
    carried: float | None = None


def predict_csv_row(spec: RowSpec, form: Form = "simulation", load: Load = "published") -> RowPrediction:
    """Predict one row.

    Args:
        form: The simulation, or the closed form, whose latency is the mean of the steady state.
    """
    band = _band(spec)
    if neuron.is_neuron(spec.instance):
        shards = neuron.can_be_sharded(spec.architecture, spec.degree)
    else:
        shards = shards_evenly(spec.architecture, spec.degree // spec.attention_data_parallel_degree)
    if not shards:
        return RowPrediction(None, None, RowLimit.DEGREE, band)
    copy = copy_of(spec)
    if copy.kv_limited_batch < 1:
        return RowPrediction(None, None, RowLimit.DOES_NOT_FIT, band)
    if spec.rate_per_s:
        return _at_rate(copy, spec, band)
    if load == "published" and spec.start is None:
        level_of_all = fleet(
            _instance(copy, spec, form),
            concurrency=spec.concurrency,
            instances=spec.instance_count,
            requests_per_client=PUBLISHED.requests_per_concurrency,
        )
        limit = _limit(copy, spec, spec.concurrency, level_of_all.longest_s)
        return RowPrediction(level_of_all.output_tok_s, level_of_all.ms_per_token, limit, band)
    if load == "saturated":
        return _saturated(copy, spec, form, band)
    batches, each = _batches(spec), steady if form == "simulation" else steady_mean
    # Where the row has a start, its levels are those of a trial; dynamic batches end together however clients begin.
    started = spec.start if batches is None and form == "simulation" else None

    def one(part: int) -> SteadyLevel:
        return each(copy, part, batches) if started is None else steady_level(copy, part, started)

    level = steady_fleet(
        lambda share: steady_split(one, share, spec.copies_per_instance),
        concurrency=spec.concurrency,
        instances=spec.instance_count,
    )
    limit = _limit(copy, spec, spec.concurrency, level.late_ms / MS_PER_S)
    return RowPrediction(level.output_tok_s, level.late_ms / spec.output_tokens, limit, band, level)


def _at_rate(copy: Copy, spec: RowSpec, band: Band) -> RowPrediction:
    """Return what copies do whose requests arrive at random, dealt out evenly to all of them.

    An endless queue has no latency.
    """
    copies = spec.instance_count * spec.copies_per_instance
    rate_per_s, most_per_s = spec.rate_per_s / copies, saturation_per_s(copy)
    carried = carried_chance(rate_per_s, most_per_s, band)
    tok_s = min(rate_per_s, most_per_s) * copies * spec.output_tokens
    if rate_per_s >= most_per_s:
        return RowPrediction(tok_s, None, RowLimit.QUEUE, band, carried=carried)
    level = open_level(
        copy, Poisson(), rate_per_s, requests=REQUESTS_AT_A_RATE, round_trip_s=copy.engine.performance.request_s
    )
    latency = level.e2e_latency_ms
    steady_state = SteadyLevel(
        copies * level.in_flight, spec.output_tokens, level.ttft_ms.mean, latency.mean, latency.p50, latency.p90
    )
    limit = _limit(copy, spec, math.ceil(steady_state.concurrency), latency.p90 / MS_PER_S)
    return RowPrediction(tok_s, latency.p90 / spec.output_tokens, limit, band, steady_state, carried)


def _saturated(copy: Copy, spec: RowSpec, form: Form, band: Band) -> RowPrediction:
    """Return the throughput with as many requests in flight as run at once, on each copy alike."""
    batches, each = _batches(spec), steady if form == "simulation" else steady_mean
    running = batches.most(copy) if batches else copy.most_running
    copies = spec.instance_count * spec.copies_per_instance
    level = each(copy, running, batches)
    limit = _limit(copy, spec, copies * (running + 1), longest_s=0.0)
    return RowPrediction(copies * level.output_tok_s, None, limit, band)


def copy_of(spec: RowSpec) -> Copy:
    """Place the copy that a row asks for; its KV room may be too small for one sequence."""
    # Rows that differ in their load alone are one key, and share the copy with its simulations.
    return _placed(replace(spec, concurrency=1, instance_count=1, copies_per_instance=1))


@cache
def _placed(spec: RowSpec) -> Copy:
    hardware = hardware_of(spec.instance, spec.quantization)
    if hardware is None:
        raise ValueError(f"{spec.instance.instance_type} has no known speed")
    compiled = spec.engine.compiled_shapes
    length = compiled_length(spec.input_tokens + spec.output_tokens) if compiled else 0
    shared = SharedPrefix(round(spec.prefix_hit_rate * spec.input_tokens))
    batched_tokens = length or least_batched_tokens(spec.engine, spec.instance, spec.input_tokens)
    memory = fit_memory(
        spec.architecture,
        spec.instance,
        spec.engine,
        degree=spec.degree,
        quantization=spec.quantization,
        tokens=length or held_tokens(spec.engine, spec.input_tokens, spec.output_tokens),
        batched_tokens=batched_tokens,
        kv_bits=8 if spec.kv_precision == "fp8" else 16,
        draft=spec.speculation.draft if spec.speculation else None,
        attention_data_parallel_degree=spec.attention_data_parallel_degree,
        shared=shared,
    )
    return place_copy(
        spec.architecture,
        hardware,
        spec.engine,
        memory,
        degree=spec.degree,
        quantization=spec.quantization,
        input_tokens=spec.input_tokens,
        output_tokens=spec.output_tokens,
        batched_tokens=batched_tokens,
        max_num_seqs=spec.max_num_seqs or spec.attention_data_parallel_degree * _batch_limit(spec),
        speculation=spec.speculation,
        prefix_hit_rate=spec.prefix_hit_rate,
        max_model_len=length,
        expert_parallel_degree=spec.expert_parallel_degree,
        attention_data_parallel_degree=spec.attention_data_parallel_degree,
        shared=shared,
    )


def _batch_limit(spec: RowSpec) -> int:
    """Return the sequences that an engine batches at most by default, in each group of attention."""
    if spec.engine.family == "vllm":
        has_much = spec.instance.accelerator_memory_bytes >= _VLLM_LARGE_MEMORY
        return _VLLM_LARGE_LIMIT if has_much and "A100" not in spec.instance.accelerator else _VLLM_LIMIT
    return spec.engine.batch_limit if spec.engine.compiled_shapes else _BATCH_LIMITS[spec.engine.family]


def _instance(copy: Copy, spec: RowSpec, form: Form) -> Callable[[int], InstanceLevel]:
    """Return what one instance does with some requests in flight: its copies share them evenly.

    Clients start one by one, and each copy gets every so-manieth of them.
    """
    stagger_s = PUBLISHED.stagger_s * spec.instance_count * spec.copies_per_instance
    batches = _batches(spec)

    def one(share: int) -> InstanceLevel:
        closed = _closed(copy, share, batches)
        if form == "closed" or share > _MOST_SIMULATED or closed.longest_s > _HOPELESS * TIMEOUT_S:
            return closed
        return _simulated(copy, share, stagger_s, batches)

    return lambda load: even_split(one, load, spec.copies_per_instance)


def _batches(spec: RowSpec) -> Batches | None:
    dynamic = spec.batching == "dynamic"
    return Batches(spec.batch_size, spec.max_batch_delay_ms / MS_PER_S) if dynamic else None


@cache
def _simulated(copy: Copy, concurrency: int, stagger_s: float, batches: Batches | None) -> InstanceLevel:
    protocol = replace(PUBLISHED, stagger_s=stagger_s, round_trip_s=round_trip_s(copy))
    if batches is None:
        level = outcome(copy, concurrency, protocol)
        return InstanceLevel(level.output_tok_s, level.ms_per_token.p90, level.e2e_latency_ms.max / MS_PER_S)
    requests = simulate_static(copy, concurrency, protocol, batches)
    waits = sorted(request.last_token_s - request.sent_s for request in requests)
    wall_s = requests[-1].last_token_s - min(request.sent_s for request in requests)
    late = percentile(waits, 90)
    tokens = len(requests) * copy.output_tokens
    return InstanceLevel(tokens / wall_s, late / copy.output_tokens * MS_PER_S, waits[-1])


@cache
def _closed(copy: Copy, concurrency: int, batches: Batches | None) -> InstanceLevel:
    if batches is None:
        point = predict_at(copy, concurrency)
        return InstanceLevel(point.output_tok_s, point.ms_per_token, point.e2e_latency_ms / MS_PER_S)
    tok_s, longest_s = closed_static(copy, concurrency, batches)
    return InstanceLevel(tok_s, longest_s / copy.output_tokens * MS_PER_S, longest_s)


def _limit(copy: Copy, spec: RowSpec, concurrency: int, longest_s: float) -> Limit | RowLimit:
    if spec.input_tokens + spec.output_tokens > spec.architecture.max_context:
        return RowLimit.CONTEXT
    if longest_s > TIMEOUT_S:
        return RowLimit.TIMEOUT
    share = math.ceil(concurrency / (spec.instance_count * spec.copies_per_instance))
    if spec.batching == "dynamic":
        return Limit.BATCH_LIMIT if share > spec.batch_size else Limit.MEMORY
    return predict_at(copy, share).limit


def _band(spec: RowSpec) -> Band:
    """Return the band of a row: nothing was fitted on dynamic batching, nor on several instances."""
    if spec.batching == "dynamic":
        because = "Dynamic batching was not fitted."
        return Band(throughput=ASSUMED, latency=ASSUMED, measured=False, because=because)
    band = band_of(
        spec.engine,
        spec.engine_version or "of the newest version",
        spec.architecture,
        spec.instance,
        degree=spec.degree,
        quantization=spec.quantization,
        speculation=spec.speculation,
        input_tokens=spec.input_tokens,
    )
    if spec.assumed_hits:
        because = f"{band.because} The hit rate of the prefix cache is an assumption."
        band = band.model_copy(update={"measured": False, "because": because})
    band = doubted(band, (*spec.guessed, *((DATA_PARALLEL,) if spec.attention_data_parallel_degree > 1 else ())))
    if spec.instance_count == 1 and spec.copies_per_instance == 1:
        return band
    return Band(
        throughput=(1 + band.throughput) * (1 + _ROUTING.throughput) - 1,
        latency=(1 + band.latency) * (1 + _ROUTING.latency) - 1,
        measured=False,
        because=f"{band.because} The spread of requests over copies or instances is modelled, not fitted.",
    )


def steady_fleet(one: Callable[[int], SteadyLevel], *, concurrency: int, instances: int) -> SteadyLevel:
    """Predict what some equal instances do whose requests are routed at random.

    Args:
        one: What one instance does with this many requests in flight; at least one.
    """
    if instances == 1:
        return one(concurrency)
    rates = rising(lambda load: one(load).output_tok_s, concurrency, concurrency / instances)
    throughput = product_form(rates, concurrency, instances).throughput
    usual, busy = met_by_a_request(concurrency, instances)
    typical, late = _between(one, usual), _between(one, busy)
    e2e_ms = concurrency * typical.output_tokens / throughput * MS_PER_S
    return replace(
        typical,
        concurrency=concurrency,
        ttft_ms=typical.ttft_ms / typical.e2e_ms * e2e_ms,
        e2e_ms=e2e_ms,
        e2e_p90_ms=None if typical.e2e_p50_ms is None else max(typical.e2e_p50_ms, late.late_ms),
    )


def steady_split(one: Callable[[int], SteadyLevel], concurrency: int, parts: int) -> SteadyLevel:
    """Predict equal copies among which requests are dealt out evenly."""
    each, fuller = divmod(concurrency, parts)
    full, less = one(each + 1) if fuller else None, one(each) if each else None
    if full is None or less is None:
        alone, count = (less, parts - fuller) if full is None else (full, fuller)
        if alone is None:
            raise ValueError("at least one request is in flight")
        return replace(alone, concurrency=alone.concurrency * count)
    weight = fuller * full.output_tok_s / (fuller * full.output_tok_s + (parts - fuller) * less.output_tok_s)
    mixed = _mixed(less, full, weight)
    p90 = None if mixed.e2e_p90_ms is None else max(full.late_ms, less.late_ms)
    return replace(mixed, concurrency=concurrency, e2e_p90_ms=p90)


def _between(one: Callable[[int], SteadyLevel], load: float) -> SteadyLevel:
    """Return the latencies at a load, linear between whole loads."""
    below = math.floor(load)
    low = one(below)
    return low if below == load else _mixed(low, one(below + 1), load - below)


def _mixed(low: SteadyLevel, high: SteadyLevel, share: float) -> SteadyLevel:
    """Return latencies between two levels; `share` is that of the higher one."""
    p50 = None if low.e2e_p50_ms is None or high.e2e_p50_ms is None else _at(low.e2e_p50_ms, high.e2e_p50_ms, share)
    p90 = None if low.e2e_p90_ms is None or high.e2e_p90_ms is None else _at(low.e2e_p90_ms, high.e2e_p90_ms, share)
    return SteadyLevel(
        low.concurrency,
        low.output_tokens,
        _at(low.ttft_ms, high.ttft_ms, share),
        _at(low.e2e_ms, high.e2e_ms, share),
        p50,
        p90,
    )


def _at(low: float, high: float, share: float) -> float:
    return low + share * (high - low)


@dataclass(frozen=True, slots=True)
class CsvTable:
    """Columns in their order, and the cells of each row; a number that is not there is `None`.

    Attributes:
        columns: Those that came, then those of the prediction.
        rows: Cells by column.
        unanswered: Rows without a number; their `predicted_error` or `predicted_limit` says why.
    """

    columns: tuple[str, ...]
    rows: tuple[dict[str, Cell], ...]
    unanswered: int


def answered(columns: Sequence[str], rows: Sequence[CsvRow], form: Form, load: Load = "published") -> CsvTable:
    """Predict every row that can be read; columns of an earlier prediction are written again."""
    optimized = (OPTIMIZATION,) if any(name in columns for name in options.COLUMNS) else ()
    noted = (NOTE,) if any(row.spec and row.spec.guessed for row in rows) else ()
    specs = [row.spec for row in rows if row.spec is not None]
    latencies = STEADY if load == "steady" or any(spec.start or spec.rate_per_s for spec in specs) else ()
    rates = OPEN if any(spec.rate_per_s for spec in specs) else ()
    predicted = (*PREDICTED, *latencies, *rates, ENGINE, *optimized, *noted, ERROR)
    kept = (*columns, *(name for name in predicted if name not in columns))
    written_before = (*PREDICTED, *STEADY, *OPEN, ENGINE, OPTIMIZATION, NOTE, ERROR)
    stale = dict.fromkeys(name for name in written_before if name in kept)
    written = tuple({**row.cells, **stale, **_cells(row, form, load)} for row in rows)
    return CsvTable(kept, written, sum(row.get(PREDICTED[0]) is None for row in written))


def engine_refusal(spec: RowSpec) -> str:
    """Return why the row's engine can't load its weights; empty where the catalog knows nothing against it."""
    family = spec.engine.family
    candidate = ENGINE_CANDIDATES.get("lmi-vllm" if family == "lmi" else family)
    # TensorRT-LLM of a table is its own server, and not the one inside LMI, of which alone the limits are known.
    if candidate is None or spec.engine.compiled_shapes:
        return ""
    loader, release = "vllm" if family == "lmi" else family, release_of(family, spec.engine_version)
    facts: Facts = {"quantization": spec.quantization} if spec.quantization else {}
    # Each expert may be whole on an accelerator of its own: rows rarely say so.
    where = (spec.degree, spec.degree, spec.instance.accelerator, spec.instance.dtype, spec.architecture)
    refusals = start_refusals(Start(loader, release, spec.quantization, *where))
    return " ".join((*rule_reasons(EngineCase(facts), candidate, "excludes"), *(each.because for each in refusals)))


def _cells(row: CsvRow, form: Form, load: Load) -> dict[str, Cell]:
    if row.spec is None:
        texts = []
        for problem in row.problems:
            field = f"{problem.field}: " if problem.field else ""
            hint = f" ({problem.hint})" if problem.hint else ""
            texts.append(f"{problem.rule}: {field}{problem.message}{hint}")
        return {ERROR: "; ".join(texts)}
    engine, version = row.spec.engine.family, row.spec.engine_version
    release = release_of(engine, version) if engine == "lmi" else None
    inside = f" (vLLM {'.'.join(map(str, release))})" if release else ""
    taken = f"{engine} {version or 'newest'}{inside}"
    if refusal := engine_refusal(row.spec):
        return {"predicted_limit": RowLimit.ENGINE, ENGINE: taken, ERROR: f"SEA254: {refusal}"}
    prediction = predict_csv_row(row.spec, form, load)
    throughput, latency = prediction.output_tok_s, prediction.ms_per_token
    low, high = 1 / (1 + prediction.band.throughput), 1 + prediction.band.throughput
    quick, slow = 1 / (1 + prediction.band.latency), 1 + prediction.band.latency
    values = (
        _rounded(throughput),
        _rounded(latency),
        prediction.limit,
        _rounded(throughput, low),
        _rounded(throughput, high),
        _rounded(latency, quick),
        _rounded(latency, slow),
        prediction.band.kind,
    )
    cells: dict[str, Cell] = dict(zip(PREDICTED, values, strict=True))
    if (level := prediction.steady) is not None:
        latencies = (level.ttft_ms, level.tpot_ms, level.e2e_ms, level.e2e_p50_ms, level.e2e_p90_ms)
        cells |= zip(STEADY, map(_rounded, latencies), strict=True)
    if prediction.carried is not None:
        in_flight = None if level is None else _rounded(level.concurrency)
        cells |= zip(OPEN, (in_flight, _rounded(prediction.carried)), strict=True)
    notes = {ENGINE: taken, OPTIMIZATION: row.optimization, NOTE: "; ".join(row.spec.guessed)}
    return cells | {name: text for name, text in notes.items() if text}


def predictions_csv(table: CsvTable) -> str:
    """Write a table as CSV with a head; a number that is not there is an empty cell, and no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(without_formula, table.columns))
    for row in table.rows:
        cells = (row[name] for name in table.columns)
        # A text that a spreadsheet would compute begins with a quote; a number stays one.
        writer.writerow(without_formula(c) if isinstance(c, str) and as_number(c) is None else c for c in cells)
    return text.getvalue()


def as_json(table: CsvTable) -> str:
    """Write a table as a JSON array of objects; counts and predictions are numbers, all else text as it came."""
    rows = [{name: _typed(name, row[name]) for name in table.columns} for row in table.rows]
    return f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n"


def _typed(name: str, cell: Cell) -> Cell:
    """Return a count as a number, an empty one as `None`, and what is no number as it was written."""
    if name not in COUNTS or not isinstance(cell, str):
        return cell
    try:
        number = float(cell) if cell.strip() else None
    except ValueError:
        return cell
    if number is None or not math.isfinite(number):
        return None if number is None else cell
    return int(number) if number.is_integer() else number


def _rounded(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else float(f"{value * factor:.{_DIGITS}g}")
