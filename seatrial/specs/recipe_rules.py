"""What contradicts a recipe within one spec, looked up in the raw document so that it shows beside other errors."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from seatrial.specs import shapes
from seatrial.specs.draft_rules import draft_problems
from seatrial.specs.optimization import (
    SPECULATIONS,
    WEIGHTS,
    Compilation,
    DraftModel,
    Optimization,
    OptimizationSpec,
    PrefixCache,
    QuantizedWeights,
)
from seatrial_base.catalog import optimizations
from seatrial_base.catalog.models import resolve_model, split_precision, unsupported_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial.specs.yaml_source import Document, FieldPath
    from seatrial_base.findings import Finding

_ENTRY: TypeAdapter[OptimizationSpec] = TypeAdapter(Optimization)
# How the planner names the precision of weights that an optimization makes (`catalog.precision`).
PRECISIONS = {"awq": "awq", "fp8": "fp8", "mxfp4": "mxfp4", "smoothquant": "int8"}
_OVERRIDES = ("serving", "overrides")
_SAGEMAKER = "sagemaker"  # what SageMaker's SDK calls the provider of its own draft models
_KINDS = (("quantizations", WEIGHTS), ("ways of speculative decoding", SPECULATIONS))


def recipe_problems(document: Document) -> Iterator[Finding]:
    """Yield every contradiction of a recipe: with the rest of the spec, within itself, and what it lacks."""
    entries = tuple(_entries(document))
    yield from _twice(document, entries)
    for path, entry in entries:
        for rule in _RULES:
            yield from rule(document, path, entry)


def _entries(document: Document) -> Iterator[tuple[FieldPath, OptimizationSpec]]:
    """Yield the optimizations that can be read; the others are told by their own type or bound."""
    written = document.value("optimization")
    for index, value in enumerate(written if isinstance(written, list) else ()):
        try:
            yield ("optimization", index), _ENTRY.validate_json(json.dumps(value), strict=True)
        except ValidationError:
            continue


def _twice(document: Document, entries: Sequence[tuple[FieldPath, OptimizationSpec]]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for path, entry in entries:
        kinds: dict[str, str] = {entry.name: f"{entry.name} is written twice"}
        kinds |= {kind: f"two {kind}: {seen.get(kind)} and {entry.name}" for kind, of in _KINDS if entry.name in of}
        repeated = [message for kind, message in kinds.items() if kind in seen]
        if repeated:
            yield document.problem(path, "SEA231", repeated[0], "keep one of them")
        seen |= dict.fromkeys(kinds, entry.name)


def _against(document: Document, path: FieldPath, entry: OptimizationSpec, *, is_of: str) -> Finding:
    field = ".".join(str(part) for part in path)
    message = f"the optimization {entry.name} is {is_of}, but {field} is {_shown(document.value(*map(str, path)))}"
    return document.problem(path, "SEA230", message, f"remove {field}, or the optimization")


def _shown(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool | dict | list) else str(value)


def _quantization(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    if entry.name not in WEIGHTS:
        return
    field, precision = (*_OVERRIDES, "quantization"), PRECISIONS[entry.name]
    if document.value(*field) not in (None, precision):
        yield _against(document, field, entry, is_of=precision)
    settings: QuantizedWeights = getattr(entry, entry.name)
    if settings.checkpoint is not None:
        yield from _checkpoint(document, path, entry, settings.checkpoint)
    if settings.checkpoint is not None and settings.job is not None:
        message = f"{entry.name} has a checkpoint and a job: both say where the weights come from"
        yield document.problem((*path, entry.name), "SEA230", message, "keep one of them")
    if settings.revision is not None and (settings.checkpoint is None or settings.checkpoint.startswith("s3://")):
        message = "revision needs a checkpoint on the hub"
        yield document.problem((*path, entry.name, "revision"), "SEA232", message, "remove revision")


def _checkpoint(document: Document, path: FieldPath, entry: OptimizationSpec, checkpoint: str) -> Iterator[Finding]:
    where = (*path, entry.name, "checkpoint")
    if document.value("model", "model_package_arn") is not None:
        message = "the checkpoint replaces the weights, but model.model_package_arn says what is mounted"
        yield document.problem(where, "SEA230", message, "remove the checkpoint, or give model.hub_id or model.s3_uri")
    prefix = f"{checkpoint.removesuffix('/')}/" if not checkpoint.endswith(".tar.gz") else checkpoint
    pattern, text = (shapes.MODEL_URI, prefix) if checkpoint.startswith("s3://") else (shapes.HUB_ID, checkpoint)
    if not re.match(pattern, text):
        message = f"the checkpoint {checkpoint} is neither a hub id nor an S3 prefix"
        yield document.problem(where, "SEA232", message, "as in org/model-awq or s3://bucket/model-awq/")
    name = checkpoint.removesuffix("/").removesuffix(".tar.gz").rpartition("/")[2]
    _, told, is_told = split_precision(name)
    named = told or "16 bits" if is_told else unsupported_format(name)
    if named is None and checkpoint == document.value("model", "hub_id") and published_quantization(checkpoint) is None:
        named = "16 bits"
    if named not in (None, PRECISIONS[entry.name]):
        message = f"the checkpoint {checkpoint} has {named} by its name, not {entry.name}"
        yield document.problem(where, "SEA230", message, f"give weights that are quantized with {entry.name}")


def _own_weights(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    """Yield a quantization that nothing makes: the hub's weights are others, and fp8 alone is made at loading."""
    if entry.name not in WEIGHTS or document.value("model", "config_file") is not None:
        return
    settings: QuantizedWeights = getattr(entry, entry.name)
    hub_id = document.value("model", "hub_id")
    if not isinstance(hub_id, str) or settings.checkpoint is not None:
        return
    own, precision = published_quantization(hub_id), PRECISIONS[entry.name]
    if own not in (None, precision):
        message = f"the weights of {hub_id} are {own}, so {entry.name} can't be made from them"
        yield document.problem(
            path, "SEA230", message, f"give a 16-bit model.hub_id, or {entry.name} with a checkpoint"
        )
    elif own is None and entry.name != "fp8" and settings.job is None and not _built_at_start(document, entry):
        message = f"{entry.name} needs quantized weights, and those of {hub_id} have 16 bits"
        yield document.problem(path, "SEA232", message, _ways(entry))


def _ways(entry: OptimizationSpec) -> str:
    if entry.name == "mxfp4":
        return "give mxfp4 with a checkpoint: {checkpoint: org/model}; or fp8, which needs none"
    return f"give it a checkpoint, `{entry.name}: {{checkpoint: org/model-{entry.name}}}`, or `job: true`; or take fp8"


def _built_at_start(document: Document, entry: OptimizationSpec) -> bool:
    """Tell whether TensorRT-LLM quantizes the weights when it builds its engine (LMI's `option.quantize`)."""
    asked = [other.compile for _, other in _entries(document) if other.compile is not None]
    trtllm = any(compilation.target == "trtllm" for compilation in asked)
    return entry.name in ("awq", "smoothquant") and (trtllm or document.value("serving", "backend") == "trtllm")


def published_quantization(name: str) -> str | None:
    """Return the quantization of the weights of a hub id, by the catalog or its name; `None` for 16 bits."""
    found = resolve_model(name)
    return found[1] if found is not None else split_precision(name)[1]


def _speculation(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    if entry.name not in SPECULATIONS:
        return
    field = (*_OVERRIDES, "speculative_decoding")
    if document.value(*field) is not None:
        message = f"{entry.name} and serving.overrides.speculative_decoding both say how tokens are drafted"
        yield document.problem(field, "SEA230", message, "keep one of them")
    settings = getattr(entry, entry.name)
    if isinstance(settings, DraftModel):
        yield from _draft(document, path, entry, settings)
    if not isinstance(settings, DraftModel) or settings.draft is not None or settings.job is not None:
        yield from draft_problems(document, path, entry)


def _draft(document: Document, path: FieldPath, entry: OptimizationSpec, settings: DraftModel) -> Iterator[Finding]:
    if settings.draft is None and settings.job is None:
        way = "a draft" if entry.name == "speculative" else "a draft head or a job"
        hint = f"write `{entry.name}: {{draft: org/draft}}`; ngram needs none"
        yield document.problem(path, "SEA232", f"{entry.name} needs {way}", hint)
    if settings.draft == _SAGEMAKER:
        reasons = " ".join(row.because for row in optimizations.SAGEMAKER_DRAFTS.rows)
        message = f"SageMaker's own draft model can't be deployed here. {reasons}"
        yield document.problem((*path, entry.name, "draft"), "SEA238", message, "give a draft's hub id, or take ngram")
    if settings.draft is not None and settings.draft.startswith("s3://"):
        message = f"the draft {settings.draft} can't be mounted: CloudFormation gives a model one source of weights"
        hint = (
            "give a hub id; or put the draft into a folder of the model's own S3 prefix and give its path, as in "
            "/opt/ml/model/draft"
        )
        yield document.problem((*path, entry.name, "draft"), "SEA238", message, hint)


def _prefix_cache(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    settings = entry.prefix_cache
    if not isinstance(settings, PrefixCache):
        return
    if document.value(*_OVERRIDES, "prefix_caching") is False:
        yield _against(document, (*_OVERRIDES, "prefix_caching"), entry, is_of="on")
    written = document.value("workload", "prefix_hit_rate")
    if settings.hit_rate is not None and written not in (None, settings.hit_rate):
        message = f"the hit rate of prefix_cache is {settings.hit_rate}, but workload.prefix_hit_rate is {written}"
        yield document.problem((*path, "prefix_cache", "hit_rate"), "SEA230", message, "keep one of them")
    for name in ("shared_prefix_tokens", "turns") if settings.hit_rate is not None else ():
        if not document.value("workload", name):
            continue
        message = f"the hit rate of prefix_cache is {settings.hit_rate}, but it follows from {name}"
        yield document.problem((*path, "prefix_cache", "hit_rate"), "SEA230", message, "leave hit_rate out")


def _kv_cache(document: Document, _path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    field = (*_OVERRIDES, "kv_cache_dtype")
    if entry.name == "kv_fp8" and document.value(*field) == "auto":
        yield _against(document, field, entry, is_of="fp8_e4m3")


def _compilation(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    settings = entry.compile
    if not isinstance(settings, Compilation):
        return
    backend = "trtllm" if settings.target == "trtllm" else "neuronx"
    if document.value("serving", "backend") not in (None, "auto", backend):
        yield _against(document, ("serving", "backend"), entry, is_of=f"for {backend}")
    if settings.target == "trtllm" and document.value("serving", "engine") not in (None, "auto", "lmi"):
        yield _against(document, ("serving", "engine"), entry, is_of="for TensorRT-LLM, a backend of lmi")
    for name in ("job", "artifacts") if settings.when == "startup" else ():
        if getattr(settings, name) is not None:
            message = f"{name} needs `when: ahead_of_time`"
            yield document.problem((*path, "compile", name), "SEA230", message, f"add it, or remove {name}")


_RULES: tuple[Callable[[Document, FieldPath, OptimizationSpec], Iterator[Finding]], ...] = (
    _quantization,
    _own_weights,
    _speculation,
    _prefix_cache,
    _kv_cache,
    _compilation,
)
