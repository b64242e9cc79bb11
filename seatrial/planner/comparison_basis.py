"""What a comparison rests on: the engine, its constants, and how far each row may be off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.comparison import Basis
from seatrial.planner.predict.band import band_of
from seatrial.planner.resolve import resolve

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec


def basis_of(loaded: LoadedSpec) -> Basis:
    """Return what a comparison of the allowed instance types rests on.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved, endpoint = resolve(loaded), loaded.endpoint
    choice, demand = resolved.choice, resolved.demand
    bands = {
        instance.instance_type: band_of(
            demand.engine,
            choice.version.value,
            demand.architecture,
            instance,
            quantization=demand.quantization,
            speculation=demand.speculation,
            input_tokens=endpoint.workload.input_tokens,
        )
        for instance in resolved.allowed
    }
    return Basis(
        engine=choice.engine.value,
        engine_version=choice.version.value,
        constants=choice.facts.performance.id,
        workload=f"{endpoint.workload.input_tokens:,} + {endpoint.workload.output_tokens:,} tokens",
        discount=demand.discount,
        bands=bands,
    )
