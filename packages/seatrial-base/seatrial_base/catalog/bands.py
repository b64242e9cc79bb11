"""Errors of predictions against measured rows that the fit did not see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.catalog.precision import find_precision
from seatrial_base.catalog.rows import CatalogTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.catalog.architecture import Architecture

ModelFamily = Literal["dense", "MoE", "MLA"]
Facet = Literal["model", "accelerator", "tables", "engine", "release", "precision", "degree", "lengths"]
_BITS_16 = 16


@dataclass(frozen=True, slots=True)
class BandCell:
    """What 80 % of some left-out rows were predicted within; a part that is `None` holds for all.

    Attributes:
        left_out: What of a row the fit did not see.
        engine: The engine whose constants were fitted: `vllm`, `sglang` or `trtllm`.
        degree: Accelerators that a copy is sharded over.
        shape: Of the model: `shape_of`.
        rows: Measured rows of the cell.
        models: Different models of these rows.
        throughput: Share of a throughput, drawn towards that of wider cells; `None` when too few rows have one.
        latency: Share of an end-to-end latency; `None` likewise.
    """

    left_out: Facet
    accelerator: str | None
    bits: int | None
    family: ModelFamily | None
    engine: str | None
    degree: int | None
    shape: str | None
    rows: int
    models: int
    throughput: float | None
    latency: float | None


@dataclass(frozen=True, slots=True)
class BandPlace:
    """Where a deployment stands among the cells."""

    accelerator: str
    bits: int
    family: ModelFamily
    engine: str
    degree: int
    shape: str


@dataclass(frozen=True, slots=True)
class MeasuredReleases:
    """The oldest and the newest release of an engine that has rows, as (0, 19)."""

    engine: str
    oldest: tuple[int, ...]
    newest: tuple[int, ...]


# Of each kind of what was left out the finest cells first.
BAND_CELLS: Final = CatalogTable(BandCell, "bands.json")
# Every place that has a measured row.
MEASURED_PLACES: Final = CatalogTable(BandPlace, "bands.json#measured")
MEASURED_RELEASES: Final = CatalogTable(MeasuredReleases, "bands.json#releases", key="engine")


def holding(cells: Iterable[BandCell], place: BandPlace, left_out: Facet) -> tuple[BandCell, ...]:
    """Return the cells that hold for a place while this was left out, the finest first."""
    return tuple(cell for cell in cells if cell.left_out == left_out and _holds(cell, place))


def unseen(places: Iterable[BandPlace], place: BandPlace) -> tuple[Facet, ...]:
    """Return what of a place none of these places has; its model is not looked at.

    Engine and precision count as seen where a row of the accelerator has them, a degree where one of the engine there
    does; where no row has the accelerator, wherever any row has them.
    """
    known = tuple(places)
    there = [one for one in known if one.accelerator == place.accelerator]
    alike = [one for one in there or known if one.engine == place.engine]
    facets: dict[Facet, bool] = {
        "tables": not there,
        "engine": not alike,
        "precision": all(one.bits != place.bits for one in there or known),
        "degree": bool(there and alike) and all(one.degree != place.degree for one in alike),
    }
    return tuple(facet for facet, is_new in facets.items() if is_new)


def release_is_new(engine: str, release: tuple[int, ...] | None) -> bool:
    """Return whether a release of an engine is older or newer than all with rows; one that nothing tells is not."""
    known = MEASURED_RELEASES.get(engine)
    return known is not None and release is not None and not known.oldest <= release <= known.newest


def has_model(places: Iterable[BandPlace], place: BandPlace) -> bool:
    """Return whether this very model was measured on this accelerator, precision and engine, at whatever degree."""
    return any(replace(one, degree=place.degree) == place for one in places)


def shape_of(architecture: Architecture) -> str:
    """Return what releases of one model have in common: layers, hidden size, parameters."""
    return f"{architecture.layers}x{architecture.hidden_size}x{architecture.params_total}"


def family_of(architecture: Architecture) -> ModelFamily:
    """Return the kind of a model: multi-head latent attention goes before mixture of experts."""
    if architecture.is_mla or architecture.latent_dim is not None:
        return "MLA"
    return "dense" if architecture.experts is None else "MoE"


def bits_of(quantization: str | None) -> int:
    """Return the bits of a weight, without those of its group's scale: 16, 8 or 4.

    Raises:
        KeyError: The quantization is unknown.
    """
    precision = find_precision(quantization)
    return _BITS_16 if precision is None else int(precision.bits)


def _holds(cell: BandCell, place: BandPlace) -> bool:
    pairs = (
        (cell.accelerator, place.accelerator),
        (cell.bits, place.bits),
        (cell.family, place.family),
        (cell.engine, place.engine),
        (cell.degree, place.degree),
        (cell.shape, place.shape),
    )
    return all(own is None or own == requested for own, requested in pairs)
