"""Optimizations of a model's serving: quantization, speculative decoding, caches and compilation, a line each.

A recipe is the list of them in a spec, in any order: `optimization: [fp8, kv_fp8, prefix_cache]`. An entry is a name,
or a name with its settings: `- awq: {checkpoint: org/model-awq}`.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from seatrial.specs import shapes
from seatrial_base.frozen_model import FrozenModel

MOST_OPTIMIZATIONS = 6
MOST_DRAFT_TOKENS = 16
LONGEST_JOB_HOURS = 120.0
OptimizationName = Literal[
    "awq", "fp8", "mxfp4", "smoothquant", "speculative", "eagle3", "ngram", "prefix_cache", "kv_fp8", "compile"
]
NAMES: tuple[str, ...] = get_args(OptimizationName)
WEIGHTS: tuple[OptimizationName, ...] = ("awq", "fp8", "mxfp4", "smoothquant")  # one of these quantizes the weights
SPECULATIONS: tuple[OptimizationName, ...] = ("speculative", "eagle3", "ngram")  # one of these drafts tokens
Share = Annotated[float, Field(gt=0, lt=1)]
DraftTokens = Annotated[int, Field(ge=1, le=MOST_DRAFT_TOKENS)]
Checkpoint = Annotated[str, StringConstraints(pattern=shapes.MODEL_PATH, max_length=1024)]
Prefix = Annotated[str, StringConstraints(pattern=shapes.MODEL_URI)]
Revision = Annotated[str, StringConstraints(pattern=shapes.REVISION, max_length=255)]
JobInstanceType = Annotated[str, StringConstraints(pattern=r"^ml\.[a-z0-9-]+\.[a-z0-9]+$", max_length=64)]


def _written_short(value: object) -> object:
    """Read `true` as the settings' defaults."""
    return {} if value is True else value


class OptimizationJobSpec(FrozenModel):
    """A SageMaker optimization job that makes the model's artifacts once for each recipe and model."""

    max_hours: Annotated[float, Field(gt=0, le=LONGEST_JOB_HOURS)] = Field(
        12, description="The job is stopped after this number of hours."
    )
    instance_type: JobInstanceType | None = Field(
        None, description="Instance type that the artifacts are made for. Default: the plan's."
    )
    training_data_s3_uri: Prefix | None = Field(
        None, description="Data that an EAGLE draft head is trained on; only for `eagle3`."
    )


Job = Annotated[
    OptimizationJobSpec,
    BeforeValidator(_written_short, json_schema_input_type=Literal[True] | OptimizationJobSpec),
]


class QuantizedWeights(FrozenModel):
    """Where quantized weights come from.

    With neither field the model's own checkpoint has them, or the engine makes them when it loads (`fp8`).
    """

    checkpoint: Checkpoint | None = Field(None, description="Hub id or S3 prefix of weights that are quantized so.")
    revision: Revision | None = Field(None, description="Commit of the checkpoint's hub repository.")
    job: Job | None = Field(None, description="A SageMaker optimization job quantizes them: `true`, or its settings.")


class DraftModel(FrozenModel):
    """A draft model or head, whose tokens the model checks."""

    draft: Checkpoint | None = Field(None, description="Hub id or S3 prefix of the draft model or head.")
    draft_tokens: DraftTokens | None = Field(None, description="Tokens drafted per step. Default: the catalog's.")
    acceptance_rate: Share | None = Field(
        None, description="Probability that a drafted token is accepted. Default: fitted or assumed by the catalog."
    )
    job: Job | None = Field(None, description="A SageMaker optimization job trains the head; only for `eagle3`.")


class NgramDrafts(FrozenModel):
    """Tokens drafted by looking up the last ones in the prompt."""

    draft_tokens: DraftTokens | None = Field(None, description="Tokens drafted per step. Default: the catalog's.")
    acceptance_rate: Share | None = Field(
        None, description="Probability that a drafted token is accepted. Default: assumed by the catalog."
    )


class PrefixCache(FrozenModel):
    """The KV cache of prefixes that prompts have in common."""

    hit_rate: Share | None = Field(
        None, description="The same as `workload.prefix_hit_rate`: share of the prompt tokens that are found."
    )


class KvCacheFp8(FrozenModel):
    """The KV cache at 8 bits."""


class Compilation(FrozenModel):
    """Compilation of the model for its accelerator."""

    target: Literal["trtllm", "neuron"] = Field(description="Compiler: TensorRT-LLM or AWS Neuron.")
    when: Literal["startup", "ahead_of_time"] = Field(
        "startup", description="`startup` compiles when a container starts; `ahead_of_time` in an optimization job."
    )
    artifacts: Prefix | None = Field(None, description="S3 prefix of artifacts that were compiled before.")
    job: Job | None = Field(None, description="Settings of the optimization job, for `ahead_of_time`.")


class OptimizationSpec(FrozenModel):
    """One optimization: exactly one field is set, and its name is the optimization's."""

    awq: QuantizedWeights | None = Field(None, description="AWQ: weights at 4 bits, activations at 16.")
    fp8: QuantizedWeights | None = Field(None, description="FP8: weights and activations at 8 bits.")
    mxfp4: QuantizedWeights | None = Field(None, description="MXFP4: experts at 4 bits, as gpt-oss ships them.")
    smoothquant: QuantizedWeights | None = Field(None, description="SmoothQuant: INT8 weights and activations.")
    speculative: DraftModel | None = Field(None, description="Speculative decoding with a smaller draft model.")
    eagle3: DraftModel | None = Field(None, description="Speculative decoding with an EAGLE-3 head.")
    ngram: NgramDrafts | None = Field(None, description="Speculative decoding with tokens of the prompt.")
    prefix_cache: PrefixCache | None = Field(None, description="Prompts share the KV cache of a common prefix.")
    kv_fp8: KvCacheFp8 | None = Field(None, description="The KV cache at 8 bits.")
    compile: Compilation | None = Field(None, description="Compilation: `trtllm` or `neuron`.")

    @model_validator(mode="after")
    def _is_one(self) -> OptimizationSpec:
        if len(self.model_fields_set) != 1 or getattr(self, next(iter(self.model_fields_set))) is None:
            raise ValueError(f"one optimization, with its settings: {', '.join(NAMES)}")
        return self

    @property
    def name(self) -> OptimizationName:
        """The optimization's name."""
        written: OptimizationName = next(name for name in get_args(OptimizationName) if name in self.model_fields_set)
        return written

    @property
    def job(self) -> OptimizationJobSpec | None:
        """The optimization job that it needs; `None` when it needs none."""
        settings = getattr(self, self.name)
        compiled = isinstance(settings, Compilation) and settings.when == "ahead_of_time" and not settings.artifacts
        job: OptimizationJobSpec | None = getattr(settings, "job", None)
        return job or (OptimizationJobSpec() if compiled else None)


def _with_settings(value: object) -> object:
    """Read a bare name as the optimization with its defaults, and a compiler's name as its target."""
    if isinstance(value, str):
        return {value: {}}
    if isinstance(value, dict) and isinstance(value.get("compile"), str):
        return {**value, "compile": {"target": value["compile"]}}
    return value


Optimization = Annotated[
    OptimizationSpec,
    BeforeValidator(_with_settings, json_schema_input_type=OptimizationName | OptimizationSpec),
]
Recipe = tuple[Optimization, ...]
