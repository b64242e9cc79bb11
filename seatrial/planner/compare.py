"""The instance types side by side, as the published articles compare them: one request alone, and as many as it takes.

Predicted, not measured. An instance carries as many copies as its accelerators take; the load doubles from 1 until a
request takes longer than the request timeout. No objective and no budget counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.documents.comparison import Basis, InstanceComparison
from seatrial.planner.cost import blended, usd_per_hour, usd_per_million
from seatrial.planner.predict.band import band_of
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.resolve import resolve
from seatrial.planner.search.candidate import Candidate, RejectedCandidate
from seatrial.planner.search.capacity import MOST_IN_FLIGHT
from seatrial.planner.search.fitting import candidates
from seatrial_base.catalog import neuron
from seatrial_base.units import MS_PER_S, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A candidate under its highest load."""

    candidate: Candidate
    concurrency: int
    tok_s: float


def compare_instance_types(loaded: LoadedSpec) -> tuple[InstanceComparison, ...]:
    """Compare the allowed instance types, the cheapest token first; an unknown price comes last.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved = resolve(loaded)
    rows = [_compared(resolved.demand, instance) for instance in resolved.allowed]
    return tuple(sorted(rows, key=_by_price))


def _by_price(row: InstanceComparison) -> tuple[bool, float, float, str]:
    price = row.usd_per_million_output_tokens
    return not row.fits, math.inf if price is None else price, -row.highest_tok_s, row.instance_type


def _compared(demand: Demand, instance: Instance) -> InstanceComparison:
    found = list(candidates(demand, instance))
    fitting = [candidate for candidate in found if isinstance(candidate, Candidate)]
    if not fitting:
        rejections = [rejection for rejection in found if isinstance(rejection, RejectedCandidate)]
        return _without(demand, instance, rejections)
    estimates = [_estimated(candidate) for candidate in fitting]
    best = max(estimates, key=lambda each: (each.tok_s, -each.candidate.degree))
    others = ", ".join(str(each.candidate.degree) for each in estimates if each is not best)
    why = f"The degree with the highest throughput; {others} fit too." if others else "The only degree that fits."
    return _row(demand, _simulated(best), why)


def _estimated(candidate: Candidate) -> _Loaded:
    """Load an instance in closed form until a mean request takes as long as the timeout."""
    timeout_ms, copies = candidate.levels.timeout_s * MS_PER_S, candidate.copies_per_instance
    level = 1
    while (
        2 * level <= MOST_IN_FLIGHT * copies
        and predict_at(candidate.copy, math.ceil(2 * level / copies)).e2e_latency_ms <= timeout_ms
    ):
        level *= 2
    tok_s = _instance_tok_s(level, copies, lambda each: predict_at(candidate.copy, each).output_tok_s)
    return _Loaded(candidate, level, tok_s)


def _simulated(estimated: _Loaded) -> _Loaded:
    """Lower the load until no request is late."""
    candidate, level = estimated.candidate, estimated.concurrency
    copies = candidate.copies_per_instance
    while level and candidate.levels.at(math.ceil(level / copies)).late:
        level //= 2
    tok_s = _instance_tok_s(level, copies, lambda each: candidate.levels.at(each).output_tok_s)
    return _Loaded(candidate, level, tok_s)


def _instance_tok_s(concurrency: int, copies: int, tok_s: Callable[[int], float]) -> float:
    """Return the throughput of copies that share some requests evenly."""
    fewer, busier = divmod(concurrency, copies)
    return (busier * tok_s(fewer + 1) if busier else 0.0) + ((copies - busier) * tok_s(fewer) if fewer else 0.0)


def _row(demand: Demand, best: _Loaded, why: str) -> InstanceComparison:
    candidate, instance = best.candidate, best.candidate.instance
    hourly = usd_per_hour(instance, 1, demand.discount)
    per_million = None if hourly is None or not best.tok_s else usd_per_million(hourly, best.tok_s)
    return InstanceComparison(
        instance_type=instance.instance_type,
        accelerators=neuron.device_count(instance),
        tensor_parallel_degree=candidate.degree,
        copies_per_instance=candidate.copies_per_instance,
        kv_limited_batch=candidate.memory.kv_limited_batch,
        ms_per_token_alone=round(candidate.alone.ms_per_token.mean, 2),
        highest_concurrency=best.concurrency,
        highest_tok_s=round(best.tok_s, 1),
        usd_per_hour=None if hourly is None else round(hourly, 4),
        usd_per_million_output_tokens=None if per_million is None else round(per_million, 4),
        blended_usd_per_million_tokens=None if per_million is None else round(blended(per_million), 4),
        fits=True,
        because=why,
    )


def _without(demand: Demand, instance: Instance, rejections: list[RejectedCandidate]) -> InstanceComparison:
    """Return the row of an instance type on which nothing fits, with what the widest degree lacks."""
    hourly = usd_per_hour(instance, 1, demand.discount)
    count = counted(instance.accelerator_count, "accelerator")
    because = f"No tensor parallel degree fits both the attention heads and its {count}."
    because = rejections[-1].because if rejections else because
    return InstanceComparison(
        instance_type=instance.instance_type,
        accelerators=neuron.device_count(instance),
        tensor_parallel_degree=rejections[-1].degree if rejections else instance.accelerator_count,
        copies_per_instance=0,
        kv_limited_batch=0,
        ms_per_token_alone=None,
        highest_concurrency=0,
        highest_tok_s=0.0,
        usd_per_hour=None if hourly is None else round(hourly, 4),
        usd_per_million_output_tokens=None,
        blended_usd_per_million_tokens=None,
        fits=False,
        because=because,
    )


def basis_of(loaded: LoadedSpec) -> Basis:
    """Return what a comparison of the allowed instance types rests on.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved = resolve(loaded)
    choice, demand = resolved.choice, resolved.demand
    bands = {
        instance.instance_type: band_of(
            demand.engine,
            choice.version.value,
            demand.architecture,
            instance,
            quantization=demand.quantization,
            speculation=demand.speculation,
            input_tokens=demand.prompt_tokens,
        )
        for instance in resolved.allowed
    }
    return Basis(
        engine=choice.engine.value,
        engine_version=choice.version.value,
        constants=choice.facts.performance.id,
        workload=demand.lengths.words,
        discount=demand.discount,
        bands=bands,
    )
