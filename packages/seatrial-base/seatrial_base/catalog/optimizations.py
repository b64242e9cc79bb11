"""Optimizations: their engines, versions, accelerators, exclusions and jobs, each sourced; keys of compiled artifacts.

Optimizations are named as in `seatrial.specs.optimization`, engines as in `engine_choice.json`. An artifact fits
one combination of weights, shapes, types, sharding, accelerator and framework: whoever changes one of them compiles
again, at the next start of a container or ahead of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from seatrial_base.catalog.engine_versions import within
from seatrial_base.catalog.rows import CatalogTable, Sourced
from seatrial_base.frozen_model import FrozenModel, canonical_json, digest

Provenance = Literal["published", "unknown"]
Compiler = Literal["neuron", "trtllm"]
# LMI's tutorial of TensorRT-LLM's ahead-of-time compilation: Falcon 40B and Llama 2 70B take about 7 minutes and more,
# 140 GB in 420 s for the larger one. A third of that speed is assumed: a timeout that is too long costs nothing.
# https://docs.djl.ai/docs/serving/serving/docs/lmi/tutorials/trtllm_aot_tutorial.html
BUILD_BYTES_S = 100_000_000
QUANTIZED_BUILDS = 2  # times a build: calibration reads all weights again (assumed)
_NAMES = {
    "compiler": "compiler",
    "model": "model",
    "revision": "revision of the weights",
    "batch_size": "batch size",
    "sequence_length": "sequence length",
    "batched_tokens": "tokens of an iteration",
    "dtype": "type of the weights",
    "quantization": "quantization",
    "degree": "tensor parallel degree",
    "accelerator": "accelerator",
    "framework": "framework and its version",
}


@dataclass(frozen=True, slots=True)
class EngineSupport(Sourced):
    """Versions of some engines that run some optimizations.

    Attributes:
        since: The first version; `None` for every one.
        until: The last version; `None` for every one.
        because: Why the others do not, a sentence; empty where every version runs them.
    """

    engines: tuple[str, ...]
    optimizations: tuple[str, ...]
    supported: bool
    since: str | None
    until: str | None
    because: str


@dataclass(frozen=True, slots=True)
class AcceleratorLimit(Sourced):
    """What an optimization does not do, or does with less, on some accelerators.

    Attributes:
        engines: The engines that it is true of; empty for every one.
        until: The last version of the engine that it is true of; `None` for every one.
        accelerators: The accelerators, as the instances name them.
        verdict: `excludes`: it does not run; `limits`: it runs, and gives less.
        because: The reason, a sentence.
    """

    optimizations: tuple[str, ...]
    engines: tuple[str, ...]
    until: str | None
    accelerators: tuple[str, ...]
    verdict: Literal["excludes", "limits"]
    because: str


@dataclass(frozen=True, slots=True)
class PairLimit(Sourced):
    """Optimizations that exclude one another: each of the first with each of the second."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    engines: tuple[str, ...]
    until: str | None
    because: str


@dataclass(frozen=True, slots=True)
class FeatureLimit(Sourced):
    """Optimizations that exclude a field of `serving.overrides`."""

    optimizations: tuple[str, ...]
    field: str
    engines: tuple[str, ...]
    until: str | None
    because: str


@dataclass(frozen=True, slots=True)
class JobSupport(Sourced):
    """What a SageMaker optimization job makes.

    Attributes:
        needs: Optimization that must be in the same job; `None` for none.
        families: Families of instance types that SageMaker's SDK lists for them.
        because: Why not, a sentence; empty where nothing is refused.
    """

    optimizations: tuple[str, ...]
    allowed: bool
    needs: str | None
    families: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class JobInstances(Sourced):
    """Families of instance types that an optimization job takes as its target."""

    families: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftRestriction(Sourced):
    """A restriction of the draft models that SageMaker brings."""

    field: str
    because: str


@dataclass(frozen=True, slots=True)
class GivenUp(Sourced):
    """What an optimization gives up.

    Attributes:
        quality: What happens to the answers, a sentence.
        provenance: `published` where someone measured or proved it, `unknown` where only a comparison tells.
        startup: What happens to the start of a container; empty for nothing.
        features: What is lost beside; empty for nothing.
    """

    optimization: str
    quality: str
    provenance: Provenance
    startup: str
    features: str


ENGINE_SUPPORT: Final = CatalogTable(EngineSupport, "optimizations.json#engines", key="optimizations")


ACCELERATOR_LIMITS: Final = CatalogTable(AcceleratorLimit, "optimizations.json#accelerators", key="optimizations")


PAIR_LIMITS: Final = CatalogTable(PairLimit, "optimizations.json#pairs")


FEATURE_LIMITS: Final = CatalogTable(FeatureLimit, "optimizations.json#features")


JOB_SUPPORT: Final = CatalogTable(JobSupport, "optimizations.json#jobs", key="optimizations")


# One row.
JOB_INSTANCES: Final = CatalogTable(JobInstances, "optimizations.json#job_instances")


SAGEMAKER_DRAFTS: Final = CatalogTable(DraftRestriction, "optimizations.json#sagemaker_drafts")


LOSSES: Final = CatalogTable(GivenUp, "optimizations.json#gives_up", key="optimization")


def supports(optimization: str, engine: str) -> tuple[EngineSupport, ...]:
    """Return the rows about an optimization on an engine; none where no one wrote one."""
    return tuple(row for row in ENGINE_SUPPORT.having(optimization) if engine in row.engines)


def holds_since(row: EngineSupport, version: tuple[int, ...]) -> bool:
    """Return whether a version is in the range of a row."""
    return row.supported and within(version, row.since, row.until)


def holds(engines: tuple[str, ...], until: str | None, engine: str, version: tuple[int, ...] | None) -> bool:
    """Return whether a row is true of an engine; of a version that can't be read, only rows of every version are."""
    if engines and engine not in engines:
        return False
    return until is None or (version is not None and within(version, None, until))


def limits_on(
    optimization: str, engine: str, version: tuple[int, ...] | None, accelerator: str
) -> tuple[AcceleratorLimit, ...]:
    """Return what is said of an optimization on an accelerator."""
    return tuple(
        row
        for row in ACCELERATOR_LIMITS.having(optimization)
        if accelerator in row.accelerators and holds(row.engines, row.until, engine, version)
    )


class CompilationKey(FrozenModel):
    """What a compiled artifact was made for; artifacts of an equal key can be used again.

    Attributes:
        compiler: AWS Neuron's or TensorRT-LLM's.
        revision: Commit of the hub repository, or a digest of the weights; `None` where neither is known.
        batch_size: Most sequences of a batch.
        batched_tokens: Prompt tokens of one iteration, which the engine's shapes hold.
        quantization: Quantization of the weights; `None` for 16 bits.
        degree: Accelerators that one copy is sharded over; NeuronCores on AWS Neuron.
        accelerator: The accelerator: an artifact of one generation does not run on another.
        framework: Image repository and tag, which fix framework and compiler version.
    """

    compiler: Compiler
    model: str
    revision: str | None
    batch_size: int
    sequence_length: int
    batched_tokens: int
    dtype: str
    quantization: str | None
    degree: int
    accelerator: str
    framework: str

    @property
    def digest(self) -> str:
        """Digest of the key: the name under which an artifact is kept."""
        return digest(canonical_json(self))


def invalidated(before: CompilationKey | None, after: CompilationKey | None) -> tuple[str, ...]:
    """Return what makes compiled artifacts useless, a sentence each; nothing when they can be used again.

    Args:
        before: What they were compiled for; `None` for nothing.
        after: What is needed now; `None` when nothing is compiled any more.
    """
    if before is None or after is None or before.compiler != after.compiler:
        return ()
    old, new = before.model_dump(), after.model_dump()
    return tuple(
        f"The {_NAMES[name]} changes from {_text(old[name])} to {_text(new[name])}: compiled artifacts are made again."
        for name in _NAMES
        if old[name] != new[name]
    )


def _text(value: str | int | None) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else value


def build_seconds(weights_bytes: int, *, quantizes: bool) -> float:
    """Return how long TensorRT-LLM may take to build its engine, in seconds; an assumption, slow on purpose.

    Args:
        weights_bytes: Of all weights at 16 bits.
        quantizes: The build quantizes them too.
    """
    return weights_bytes / BUILD_BYTES_S * (QUANTIZED_BUILDS if quantizes else 1)
