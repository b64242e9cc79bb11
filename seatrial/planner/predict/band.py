"""The band of a prediction: from left-out measurements, or an assumption with its reasons.

TGI's constants were fitted on one published table and keep the bands of that fit. The bands of the other engines come
from `bands.json` of the catalog: the errors of measured rows that the fit did not see.

Wider is the band of what no row was fitted on, of a family that no row has or that another one stands in for, and of
what was taken for another thing than what is written.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal

from seatrial.documents.prediction import EXTRAPOLATED, OTHER_LENGTHS, Band
from seatrial.planner.predict.copy_model import tokens_per_step
from seatrial_base.catalog import bands
from seatrial_base.catalog.bands import BAND_CELLS, BandPlace
from seatrial_base.catalog.config_json import unplanned_feature
from seatrial_base.catalog.engine_versions import read_version
from seatrial_base.catalog.engines import release_of
from seatrial_base.catalog.instances import ACCELERATORS
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.planner.predict.copy_model import Speculation
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.bands import BandCell, Facet
    from seatrial_base.catalog.engines import Engine, Performance
    from seatrial_base.catalog.instances import Instance

FITTED_MODEL = "meta-llama/Llama-2-7b-hf"
FITTED_PROMPTS = (256, 3_840)  # tokens
LONGEST_MEASURED_PROMPT = 20_000  # tokens, of the rows in benchmarks/planner_accuracy/measured
NEAR = 0.2  # an assumption: a dense model that was not fitted, where engine and accelerator were
ON_NEURON = 1.0  # an assumption: what the operators reach is assumed too
# 80 % of the rows with EAGLE-3 were predicted within this share while their use case was left out of the fit of their
# acceptance rate (benchmarks/planner_accuracy/fit_speculation.py).
FITTED_DRAFTS = 0.25
FITTED_DRAFTS_ON = "NVIDIA A10G"
RATE_OFF = 0.15  # an assumption: published acceptance rates of one method differ by so much between data sets
HIGHEST_RATE = 0.99
ASSUMED = 0.5  # an assumption, not a measurement: nothing was measured outside the fit
DATA_PARALLEL = "Attention data parallelism was not fitted"
_WIDER = 1.5  # times the band; an assumption
_COVERAGE_Z = NormalDist().inv_cdf(0.9)  # a band holds 80 % of the errors: 10 % lie beyond either end
WIDER: Final = 2  # times; an assumption: no row shows how far off they are
ADA: Final = 89  # compute capability of L40S and L4
# vLLM pull request 29217: Qwen3-VL-32B-Instruct-FP8 on one L40S, 622 tok/s where 1,100 are predicted. One row gives no
# factor; Ada's kernels of experts in FP8 are tables of their own.
BLOCK_FP8_ON_ADA: Final = 0.8


def band_of(
    engine: Engine,
    version: str,
    architecture: Architecture,
    instance: Instance,
    *,
    degree: int = 1,
    quantization: str | None = None,
    speculation: Speculation | None = None,
    input_tokens: int = FITTED_PROMPTS[0],
    calibrated: Band | None = None,
) -> Band:
    """Return the band of an engine and a model on an instance type; one of points measured on this deployment wins."""
    if calibrated is not None:
        return calibrated
    plain = _plain_band(
        engine,
        version,
        architecture,
        instance,
        degree=degree,
        quantization=quantization,
        speculation=speculation,
        input_tokens=input_tokens,
    )
    band = widened(plain, architecture)
    # A square of weights that share a scale, as the checkpoint has it, in a dense layer.
    is_blocks = quantization == "fp8" and architecture.weight_block and architecture.experts is None
    if is_blocks and ACCELERATORS[instance.accelerator].compute_capability == ADA:
        because = (
            f"{band.because} {instance.accelerator} has no tuned kernel for FP8 in blocks: the one row took "
            f"{1 + BLOCK_FP8_ON_ADA:g} times as long."
        )
        shares = {figure: max(getattr(band, figure), BLOCK_FP8_ON_ADA) for figure in ("throughput", "latency")}
        band = band.model_copy(update={**shares, "measured": False, "because": because})
    return band


def _plain_band(
    engine: Engine,
    version: str,
    architecture: Architecture,
    instance: Instance,
    *,
    degree: int,
    quantization: str | None,
    speculation: Speculation | None,
    input_tokens: int,
) -> Band:
    if engine.family not in ("tgi", "neuron") and input_tokens <= LONGEST_MEASURED_PROMPT:
        # LMI runs another engine: the one whose constants it has (`vllm-v1`).
        place = BandPlace(
            accelerator=instance.accelerator,
            bits=bands.bits_of(quantization or architecture.checkpoint_quantization),
            family=bands.family_of(architecture),
            engine=engine.constants.partition("-")[0] if engine.family == "lmi" else engine.family,
            degree=degree,
            shape=bands.shape_of(architecture),
        )
        release = release_of(engine.family, version)
        # A build that tells no bundle may have any release: no row is known to have it.
        is_unknown = engine.family == "lmi" and release is None and read_version("lmi", version) is not None
        is_new = is_unknown or bands.release_is_new(place.engine, release)
        new: tuple[Facet, ...] = ("release",) if is_new else ()
        earned = _earned(place, new)
        if earned is not None:
            return earned if speculation is None else _drafted(earned, speculation, instance.accelerator)
    if engine.compiled_shapes:
        because = (
            f"The prediction is not calibrated for AWS Neuron: ±{ON_NEURON:.0%} is an assumption until a trial runs."
        )
        return Band(throughput=ON_NEURON, latency=ON_NEURON, measured=False, because=because)
    constants = engine.performance
    # A margin around the prompts that were fitted: half of the shortest, a tenth above the longest.
    near_fitted = FITTED_PROMPTS[0] / 2 <= input_tokens <= FITTED_PROMPTS[1] * 1.1
    doubts = {
        f"{engine.family} {version}": not engine.fitted,
        f"{instance.accelerator}": instance.accelerator not in constants.fitted_accelerators,
        "mixture of experts": architecture.experts is not None,
        f"{quantization} weights": quantization is not None,
        "speculative decoding": speculation is not None,
        f"prompts outside {FITTED_PROMPTS[0]} to {FITTED_PROMPTS[1]:,} tokens": not near_fitted,
    }
    return _fitted_or_assumed(constants, architecture, [reason for reason, holds in doubts.items() if holds])


@cache
def _earned(place: BandPlace, new: tuple[Facet, ...]) -> Band | None:
    return earned_band(place, BAND_CELLS.rows, bands.MEASURED_PLACES.rows, new)


def earned_band(
    place: BandPlace, cells: Iterable[BandCell], measured: Iterable[BandPlace], others: tuple[Facet, ...] = ()
) -> Band | None:
    """Return the band that left-out rows give a deployment, `None` when too few were measured; fine cells come first.

    A model that was measured there at this degree is off by what rows of other lengths show of its own, at any other
    degree by what rows of other degrees do; any other model counts as one that was left out. What no row has (the
    accelerator with its tables, engine, precision, degree, `others`: a release) is off by what rows show that were left
    out for theirs. Such errors have other causes, so their logarithms add up in squares; the band is an extrapolation.
    """
    kept, seen = tuple(cells), tuple(measured)
    unseen = bands.unseen(seen, place)
    # A place that was measured is off by other lengths alone; else by what was left out of the fit as this place is.
    own: Facet = "lengths" if place in seen else "degree" if bands.has_model(seen, place) else "model"
    new = (*(unseen if own == "model" else ()), *others)
    left_out: tuple[Facet, ...] = (own, *new)
    matches = [bands.holding(kept, place, facet) for facet in left_out]
    throughputs = [cell for per in matches if (cell := _first(per, "throughput")) is not None]
    latencies = [cell for per in matches if (cell := _first(per, "latency")) is not None]
    if len(throughputs) < len(left_out) or len(latencies) < len(left_out):
        return None
    throughput = max(throughputs, key=lambda cell: cell.throughput or 0.0)
    latency = max(latencies, key=lambda cell: cell.latency or 0.0)
    # What no measured row has, as a sentence; empty where each facet has rows.
    facet_words = {
        "tables": place.accelerator,
        "release": f"this release of {place.engine}",
        "engine": f"{place.engine} on {place.accelerator}",
        "precision": f"{place.bits}-bit weights on {place.accelerator}",
        "degree": f"degree {place.degree} on {place.accelerator}",
    }
    missing = " or ".join(facet_words[facet] for facet in new if facet in facet_words)
    because = (
        f"{_coverage_words(throughput, 'the band of throughput')} {_coverage_words(latency, 'the band of latency')}"
    )
    if throughput == latency:
        because = _coverage_words(latency, "this band")
    if new:
        because = f"The largest of {len(left_out)} errors that add up in squares: {because}"
    return Band(
        throughput=_in_squares(cell.throughput for cell in throughputs),
        latency=_in_squares(cell.latency for cell in latencies),
        measured=True,
        because=because + (f" No row has {missing}: {EXTRAPOLATED}" if missing else ""),
    )


def _in_squares(shares: Iterable[float | None]) -> float:
    """Return the share whose logarithm is the root of the squares of those of others: of 10 and 20 %, 23 %."""
    own = tuple(share or 0.0 for share in shares)
    return own[0] if len(own) == 1 else round(math.expm1(math.hypot(*(math.log1p(share) for share in own))), 3)


def chance_within(ratio: float, share: float, slower: float = 0.0) -> float:
    """Return the chance that a bound is kept.

    Args:
        ratio: The predicted value as a multiple of its bound: above 1 it misses; 0 is TPOT of a single token.
        share: The band of the prediction, as a share.
        slower: By how many standard deviations the truth is taken to be slower than predicted.
    """
    if share <= 0 or ratio <= 0:
        return float(ratio <= 1)
    return NormalDist().cdf(-math.log(ratio) / (math.log1p(share) / _COVERAGE_Z) - slower)


def carried_chance(rate_per_s: float, saturation_per_s: float, band: Band, slower: float = 0.0) -> float:
    """Return the chance that a rate is not above the true saturation: 0.5 for one at the predicted saturation."""
    return chance_within(rate_per_s / saturation_per_s, band.throughput, slower)


def carried_share(chance: float, band: Band) -> float:
    """Return the share of the predicted saturation that is carried with a chance: what `carried_chance` inverts."""
    return math.exp(-NormalDist().inv_cdf(chance) * math.log1p(band.throughput) / _COVERAGE_Z)


def _drafted(plain: Band, speculation: Speculation, accelerator: str) -> Band:
    """Return the band of a deployment that drafts: what its acceptance rate may be off adds to that of a plain one.

    A rate that was fitted has been judged with everything else, so there the wider share counts.
    """
    words = f"{plain.because} The acceptance rate {speculation.acceptance_rate:g} is {acceptance_words(speculation)}"
    if speculation.provenance == "fitted":
        return Band(
            throughput=max(plain.throughput, FITTED_DRAFTS),
            latency=max(plain.latency, FITTED_DRAFTS),
            measured=plain.measured and accelerator == FITTED_DRAFTS_ON,
            because=f"{words}; 80 % of its rows were within {FITTED_DRAFTS:.0%} while their use case was left out.",
        )
    # What a rate that is `RATE_OFF` off changes in the tokens of a step, as a share.
    rate, drafted = speculation.acceptance_rate, speculation.draft_tokens
    usual = tokens_per_step(rate, drafted)
    more = tokens_per_step(min(rate + RATE_OFF, HIGHEST_RATE), drafted)
    less = tokens_per_step(max(rate - RATE_OFF, 0.0), drafted)
    off = max(more / usual, usual / less) - 1
    return Band(
        throughput=(1 + plain.throughput) * (1 + off) - 1,
        latency=(1 + plain.latency) * (1 + off) - 1,
        measured=False,
        because=f"{words}; {RATE_OFF:g} more or less of it changes the speed by up to {off:.0%}.",
    )


def acceptance_words(speculation: Speculation) -> str:
    """Return where an acceptance rate comes from: `assumed (Leviathan et al. …)`, or `given by the spec`."""
    if speculation.provenance == "given":
        return "given by the spec"
    return f"{speculation.provenance} ({speculation.source})"


def _first(cells: Iterable[BandCell], figure: Literal["throughput", "latency"]) -> BandCell | None:
    return next((cell for cell in cells if getattr(cell, figure) is not None), None)


def _coverage_words(cell: BandCell, band: str) -> str:
    what = "accelerator, with its tables," if cell.left_out == "tables" else cell.left_out
    left_out = OTHER_LENGTHS if cell.left_out == "lengths" else f"while their {what} was left out of the fit"
    parts = (
        cell.accelerator,
        None if cell.bits is None else f"{cell.bits}-bit weights",
        cell.family,
        cell.engine,
        None if cell.degree is None else f"degree {cell.degree}",
    )
    place = ", ".join(part for part in parts if part is not None) or "all engines and models"
    rows = f"{counted(cell.rows, 'row')} of {'this model' if cell.shape else counted(cell.models, 'model')} ({place})"
    return f"80 % of measured rows were predicted within {band} {left_out}, weighed towards {rows}."


def _fitted_or_assumed(constants: Performance, architecture: Architecture, reasons: Sequence[str]) -> Band:
    if not reasons and architecture.id != FITTED_MODEL:
        because = (
            f"The constants of {constants.id} were fitted on {FITTED_MODEL} only; ±{NEAR:.0%} is an assumption until "
            f"a trial runs."
        )
        return Band(throughput=NEAR, latency=NEAR, measured=False, because=because)
    if not reasons:
        because = f"80 % of the rows held out of the fit of {constants.id} were predicted within this band."
        return Band(
            throughput=constants.throughput_error, latency=constants.latency_error, measured=True, because=because
        )
    why = f"Constants of {constants.id}, not fitted for: {'; '.join(reasons)}"
    because = f"{why}; ±{ASSUMED:.0%} is an assumption until a trial runs."
    return Band(throughput=ASSUMED, latency=ASSUMED, measured=False, because=because)


def doubted(band: Band, doubts: tuple[str, ...]) -> Band:
    """Return the band of what is in doubt: 1.5 times as wide and not measured; the same without doubts."""
    if not doubts:
        return band
    wider = {"throughput": _WIDER * band.throughput, "latency": _WIDER * band.latency}
    because = f"{band.because} {'; '.join(doubts)}."
    return band.model_copy(update={**wider, "measured": False, "because": because})


def stand_in_words(architecture: Architecture) -> str:
    """Say which family stands in for which, and what it lacks where that is known; empty for a known family."""
    unknown = architecture.unknown_family
    if unknown is None:
        return ""
    lacking = unplanned_feature(unknown)
    without = f", without {lacking}" if lacking else ""
    return f"{unknown} is unknown, planned as {architecture.family}{without}"


def widened(band: Band, architecture: Architecture) -> Band:
    """Return the band of a deployment: twice as wide for an unknown family or Mamba, unless it was calibrated."""
    words = stand_in_words(architecture)
    doubt = f"The model_type {words}" if words else "No row has Mamba layers" if architecture.state_bytes else ""
    if not doubt or band.points:
        return band
    because = f"{band.because} {doubt}, so the band is {WIDER} times as wide: {EXTRAPOLATED}"
    wider = {"throughput": band.throughput * WIDER, "latency": band.latency * WIDER}
    return band.model_copy(update={**wider, "because": because})
