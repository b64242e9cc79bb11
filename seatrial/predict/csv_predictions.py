"""Predicts the rows of `seatrial predict`: throughput, p90 latency, what bounds, and how far it may be off.

The load is the published articles' protocol: a closed loop of three requests a client without warm-up. Rows that ask
the same of one instance share its simulation.
"""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from seatrial.catalog import engines
from seatrial.catalog.architecture import shards_evenly
from seatrial.errors import SpecError
from seatrial.measure.distribution import percentile
from seatrial.predict.band import ASSUMED, Band, band_of
from seatrial.predict.closed_form import Limit, predict
from seatrial.predict.copy_model import hardware_of, least_batched_tokens, place
from seatrial.predict.csv_rows import COUNTS
from seatrial.predict.memory import fit_memory
from seatrial.predict.multi_instance import InstanceLevel, even_split, fleet
from seatrial.predict.simulation import PUBLISHED, Batches, closed_static, outcome, simulate_static
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seatrial.catalog.engines import Engine
    from seatrial.predict.copy_model import Copy
    from seatrial.predict.csv_rows import Asked, CsvRow


Form = Literal["simulation", "closed"]

TIMEOUT_S = 60.0  # SageMaker's bound of an invocation
_NO_LIMIT = 1_000_000  # sequences: TGI batches what its token budget holds
_LMI_LIMIT = 256  # an assumption: the batch limit that the planner takes
_MOST_SIMULATED = 512  # requests in flight on one copy; above it the closed form answers
_HOPELESS = 1.5  # times the timeout, in the mean: hardly a request is answered, and no simulation is worth its time
# The furthest that the routing of several instances was off from its simulation; docs/how-to/predict.md has the cases.
_ROUTING = Band(throughput=0.06, latency=0.17, measured=False, because="")


@unique
class RowLimit(StrEnum):
    """What bounds a row that no copy's speed bounds."""

    TIMEOUT = "timeout"
    CONTEXT = "context"
    DOES_NOT_FIT = "does not fit"
    DEGREE = "degree does not divide the heads"


@dataclass(frozen=True, slots=True)
class RowPrediction:
    """What one row is predicted to give; not measured.

    Attributes:
        output_tok_s: Output tokens per second of all instances; `None` when the model does not fit.
        ms_per_token: 90th percentile of end-to-end latency over output tokens; `None` likewise.
        limit: What bounds it, or why there is nothing to bound.
        band: How far the numbers may be off.
    """

    output_tok_s: float | None
    ms_per_token: float | None
    limit: Limit | RowLimit
    band: Band


def answer(asked: Asked, engine: Engine, version: str, form: Form) -> RowPrediction:
    """Predict one row.

    Args:
        asked: The row.
        engine: The engine.
        version: Its version, for the words of the band.
        form: The simulation, or the closed form, whose latency is the mean of the steady state.
    """
    band = _band(asked, engine, version)
    if not shards_evenly(asked.architecture, asked.degree):
        return RowPrediction(None, None, RowLimit.DEGREE, band)
    copy = copy_of(asked, engine)
    if copy.kv_limited_batch < 1:
        return RowPrediction(None, None, RowLimit.DOES_NOT_FIT, band)
    found = fleet(
        _instance(copy, asked, form),
        concurrency=asked.concurrency,
        instances=asked.instance_count,
        requests_per_client=PUBLISHED.requests_per_concurrency,
    )
    return RowPrediction(found.output_tok_s, found.ms_per_token, _limit(copy, asked, found), band)


def copy_of(asked: Asked, engine: Engine) -> Copy:
    """Place the copy that a row asks for; its KV room may be too small for one sequence."""
    return _placed(replace(asked, concurrency=1, instance_count=1, copies_per_instance=1), engine)


@cache
def _placed(asked: Asked, engine: Engine) -> Copy:
    hardware = hardware_of(asked.instance, asked.quantization)
    if hardware is None:
        raise ValueError(f"{asked.instance.instance_type} has no known speed")
    separate = engine.scheduler == "separate"
    batched_tokens = least_batched_tokens(engine, asked.instance, asked.input_tokens)
    memory = fit_memory(
        asked.architecture,
        asked.instance,
        engine,
        degree=asked.degree,
        quantization=asked.quantization,
        tokens=asked.input_tokens + asked.output_tokens,
        batched_tokens=batched_tokens,
    )
    return place(
        asked.architecture,
        hardware,
        engine,
        memory,
        degree=asked.degree,
        quantization=asked.quantization,
        input_tokens=asked.input_tokens,
        output_tokens=asked.output_tokens,
        batched_tokens=batched_tokens,
        max_num_seqs=asked.max_num_seqs or (_NO_LIMIT if separate else _LMI_LIMIT),
    )


def _instance(copy: Copy, asked: Asked, form: Form) -> Callable[[int], InstanceLevel]:
    """Return what one instance does with some requests in flight: its copies share them evenly.

    Clients start one by one, and each copy gets every so-manieth of them.
    """
    stagger_s = PUBLISHED.stagger_s * asked.instance_count * asked.copies_per_instance
    batches = _batches(asked)

    def one(share: int) -> InstanceLevel:
        closed = _closed(copy, share, batches)
        if form == "closed" or share > _MOST_SIMULATED or closed.longest_s > _HOPELESS * TIMEOUT_S:
            return closed
        return _simulated(copy, share, stagger_s, batches)

    return lambda load: even_split(one, load, asked.copies_per_instance)


def _batches(asked: Asked) -> Batches | None:
    dynamic = asked.batching == "dynamic"
    return Batches(asked.batch_size, asked.max_batch_delay_ms / MS_PER_S) if dynamic else None


@cache
def _simulated(copy: Copy, concurrency: int, stagger_s: float, batches: Batches | None) -> InstanceLevel:
    protocol = replace(PUBLISHED, stagger_s=stagger_s)
    if batches is None:
        found = outcome(copy, concurrency, protocol)
        return InstanceLevel(found.output_tok_s, found.ms_per_token.p90, found.e2e_latency_ms.max / MS_PER_S)
    requests = simulate_static(copy, concurrency, protocol, batches)
    waits = sorted(request.last_token_s - request.sent_s for request in requests)
    wall_s = requests[-1].last_token_s - min(request.sent_s for request in requests)
    late = percentile(waits, 90)
    tokens = len(requests) * copy.output_tokens
    return InstanceLevel(tokens / wall_s, late / copy.output_tokens * MS_PER_S, waits[-1])


@cache
def _closed(copy: Copy, concurrency: int, batches: Batches | None) -> InstanceLevel:
    if batches is None:
        point = predict(copy, concurrency)
        return InstanceLevel(point.output_tok_s, point.ms_per_token, point.e2e_latency_ms / MS_PER_S)
    tok_s, longest_s = closed_static(copy, concurrency, batches)
    return InstanceLevel(tok_s, longest_s / copy.output_tokens * MS_PER_S, longest_s)


def _limit(copy: Copy, asked: Asked, found: InstanceLevel) -> Limit | RowLimit:
    if asked.input_tokens + asked.output_tokens > asked.architecture.max_context:
        return RowLimit.CONTEXT
    if found.longest_s > TIMEOUT_S:
        return RowLimit.TIMEOUT
    share = math.ceil(asked.concurrency / (asked.instance_count * asked.copies_per_instance))
    if asked.batching == "dynamic":
        return Limit.BATCH_LIMIT if share > asked.batch_size else Limit.MEMORY
    return predict(copy, share).limit


def _band(asked: Asked, engine: Engine, version: str) -> Band:
    """Return the band of a row: nothing was fitted on dynamic batching, nor on several instances."""
    if asked.batching == "dynamic":
        because = "Dynamic batching was not fitted."
        return Band(throughput=ASSUMED, latency=ASSUMED, measured=False, because=because)
    found = band_of(
        engine,
        version,
        asked.architecture,
        asked.instance,
        quantization=asked.quantization,
        input_tokens=asked.input_tokens,
    )
    if asked.instance_count == 1 and asked.copies_per_instance == 1:
        return found
    return Band(
        throughput=(1 + found.throughput) * (1 + _ROUTING.throughput) - 1,
        latency=(1 + found.latency) * (1 + _ROUTING.latency) - 1,
        measured=False,
        because=f"{found.because} The spread of requests over copies or instances is modelled, not fitted.",
    )


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
_DIGITS = 6  # significant ones; the band says how many mean something


@dataclass(frozen=True, slots=True)
class CsvTable:
    """Columns in their order, and the cells of each row; a number that is not there is `None`."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Cell], ...]


def read_engine(text: str) -> tuple[Engine, str]:
    """Read an engine as `tgi-1.1`; return its facts and its version.

    Raises:
        SpecError: SEA223 when there is no such engine.
    """
    family, _, version = text.partition("-")
    for known in get_args(engines.Family):
        if family == known and version[:1].isdigit():
            return engines.find(known, version), version
    hint = f"write family and version, as `tgi-1.1` or `lmi-15`; families: {', '.join(get_args(engines.Family))}"
    raise SpecError.of("SEA223", f"the engine {text!r} is unknown", hint=hint, where="--engine")


def answered(columns: Sequence[str], rows: Iterable[CsvRow], engine: Engine, version: str, form: Form) -> CsvTable:
    """Predict every row; columns of an earlier prediction are written anew."""
    kept = (*columns, *(name for name in PREDICTED if name not in columns))
    predicted = ((row, _cells(answer(row.asked, engine, version, form))) for row in rows)
    return CsvTable(kept, tuple({**row.cells, **cells} for row, cells in predicted))


def as_csv(table: CsvTable) -> str:
    """Write a table as CSV with a head; a number that is not there is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.rows)
    return text.getvalue()


def as_json(table: CsvTable) -> str:
    """Write a table as a JSON array of objects; counts and predictions are numbers, all else text as it came."""
    rows = [{name: _typed(name, row[name]) for name in table.columns} for row in table.rows]
    return f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n"


def _typed(name: str, cell: Cell) -> Cell:
    if name not in COUNTS or not isinstance(cell, str):
        return cell
    return int(float(cell)) if cell.strip() else None


def _cells(found: RowPrediction) -> dict[str, Cell]:
    throughput, latency = found.output_tok_s, found.ms_per_token
    low, high = 1 / (1 + found.band.throughput), 1 + found.band.throughput
    quick, slow = 1 / (1 + found.band.latency), 1 + found.band.latency
    values = (
        _rounded(throughput),
        _rounded(latency),
        found.limit,
        _rounded(throughput, low),
        _rounded(throughput, high),
        _rounded(latency, quick),
        _rounded(latency, slow),
        "measured" if found.band.measured else "assumed",
    )
    return dict(zip(PREDICTED, values, strict=True))


def _rounded(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else float(f"{value * factor:.{_DIGITS}g}")
