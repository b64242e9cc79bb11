"""A recipe as one text, what it means for the rest of the spec, and what contradicts it there.

The text names the optimizations with a plus between them: `awq+kv_fp8`. What an optimization is made from follows after
an equals sign, its other settings after commas: `awq=org/model-awq,revision=4f2b1e0`,
`speculative=org/draft,draft_tokens=4`, `compile=trtllm`. `none` is the empty recipe.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args
from urllib.parse import quote, unquote

from pydantic import TypeAdapter, ValidationError

from seatrial.specs import shapes
from seatrial.specs.endpoint import SpeculativeDecodingSpec
from seatrial.specs.optimization import (
    MOST_DRAFT_TOKENS,
    NAMES,
    SPECULATIONS,
    WEIGHTS,
    Compilation,
    DraftModel,
    NgramDrafts,
    Optimization,
    OptimizationSpec,
    PrefixCache,
    QuantizedWeights,
    Recipe,
)
from seatrial_base.bounds import DEFAULT_DRAFT_COST
from seatrial_base.catalog import optimizations, speculation
from seatrial_base.catalog import precision as precisions
from seatrial_base.catalog.models import licence_of, resolve_model, split_precision, unsupported_format
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic_core import ErrorDetails

    from seatrial.specs.endpoint import EndpointSpec, ModelSpec, ServingOverrides, ServingSpec
    from seatrial.specs.yaml_source import Document, FieldPath
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.speculation import Method


NONE = "none"
_LONGEST_SHOWN = 200  # characters of a text that is wrong
_RECIPE: TypeAdapter[Recipe] = TypeAdapter(Recipe)
_PLAIN = "/:@._-"  # left as they are in a setting's text, beside letters and digits
_MAIN = {"awq": "checkpoint", "fp8": "checkpoint", "mxfp4": "checkpoint", "smoothquant": "checkpoint"} | {
    "speculative": "draft",
    "eagle3": "draft",
    "prefix_cache": "hit_rate",
    "compile": "target",
}
_NUMBERS = ("draft_tokens", "acceptance_rate", "hit_rate", "max_hours", "job")  # and one truth
_HIGHEST_DRAFT_COST = 0.99  # the spec's bound: a draft as large as the model itself
_ENTRY: TypeAdapter[OptimizationSpec] = TypeAdapter(Optimization)
# How the planner names the precision of weights that an optimization makes (`catalog.precision`).
PRECISIONS = {"awq": "awq", "fp8": "fp8", "mxfp4": "mxfp4", "smoothquant": "int8"}
_OVERRIDES = ("serving", "overrides")
_SAGEMAKER = "sagemaker"  # what SageMaker's SDK calls the provider of its own draft models
_KINDS = (("quantizations", WEIGHTS), ("ways of speculative decoding", SPECULATIONS))
DRAFT_METHODS: dict[str, Method] = {"speculative": "draft_model", "eagle3": "eagle3", "ngram": "ngram"}
"""The catalog's method of each optimization that drafts tokens."""
_SPECULATION = ("serving", "overrides", "speculative_decoding")


def parse_recipe(text: str) -> Recipe:
    """Read a recipe from its text; its optimizations are sorted by name.

    Raises:
        SpecError: SEA104 for an optimization or setting that does not exist, SEA107 for a value that it can't have.
    """
    if text.strip() in ("", NONE):
        return ()
    problems: list[Finding] = []
    entries: list[OptimizationSpec] = []
    # One by one, so that each wrong optimization is reported, not the first alone.
    for part in text.split("+"):
        name, *others = part.strip().split(",")
        settings = [other.partition("=")[0] for other in others]
        settings += [_MAIN.get(name.partition("=")[0], "=")] if "=" in name else []
        place = Place.at(f"recipe {_short(text)}", _name_in(part.strip()))
        problems += (
            Finding("SEA231", place, f"{_short(setting)} is written twice", "keep one of them")
            for setting in sorted({setting for setting in settings if settings.count(setting) > 1})
        )
        try:
            entries.extend(_RECIPE.validate_json(json.dumps([_entry(part.strip())]), strict=True))
        except ValidationError as error:
            problems += [_unreadable(text, part.strip(), each) for each in error.errors()]
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return tuple(sorted(entries, key=_sort_key))


def _sort_key(entry: OptimizationSpec) -> tuple[str, str]:
    return entry.name, entry_text(entry)


def _name_in(part: str) -> str:
    return part.partition("=")[0].partition(",")[0]


def _unreadable(text: str, part: str, detail: ErrorDetails) -> Finding:
    name, where = _name_in(part), f"recipe {_short(text)}"
    if not name:
        return Finding("SEA104", Place.at(where), "an optimization is left out next to a plus or a comma", _known())
    if name not in NAMES:
        return Finding("SEA104", Place.at(where), f"{_short(name)} is no optimization", _known())
    path = [str(key) for key in detail["loc"][2:]]  # behind the place in the list and the optimization
    if detail["type"] in ("extra_forbidden", "missing"):
        rule = "SEA104" if detail["type"] == "extra_forbidden" and path != ["="] else "SEA107"
        return Finding(rule, Place.at(where, name), *_setting(name, path, missing=detail["type"] == "missing"))
    field = ".".join((name, *map(_short, path)))
    message = detail["msg"].removeprefix("Input ").removeprefix("String ")
    hint = "as in awq=org/model-awq+kv_fp8, or ngram,draft_tokens=3"
    return Finding("SEA107", Place.at(where, field), message[:1].lower() + message[1:], hint)


def _setting(name: str, path: list[str], *, missing: bool) -> tuple[str, str]:
    """Return the message and the hint for a setting that does not exist, or that is lacking."""
    main = _MAIN.get(name)
    if missing:
        return f"{name} needs {'.'.join(path)}", f"as in {name}={'trtllm' if name == 'compile' else '…'}"
    setting = ".".join(path)
    message = f"{name} has no setting {_short(setting)}" if setting else "a setting is left out next to a comma"
    message = f"{name} takes nothing behind the equals sign" if setting == "=" else message
    (model,) = (kind for kind in get_args(OptimizationSpec.model_fields[name].annotation) if kind is not type(None))
    known = [field for field in model.model_fields if field != main]
    return message, f"its settings: {', '.join(known)}" if known else f"write {name} alone"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _known() -> str:
    return f"known: {', '.join(NAMES)}; `{NONE}` for no optimization"


def _entry(part: str) -> dict[str, object]:
    first, *others = part.split(",")
    name, equals, main = first.partition("=")
    settings: dict[str, object] = {}
    if equals:
        settings[_MAIN.get(name, "=")] = _value(_MAIN.get(name, "="), main)
    for other in others:
        path, _, value = other.partition("=")
        *parents, last = path.split(".")
        node = settings
        for parent in parents:
            inner = node.get(parent)
            node[parent] = inner = inner if isinstance(inner, dict) else {}  # `job=true` beside a setting of the job
            node = inner
        node[last] = _value(last, value)
    return {name: settings}


def _value(setting: str, text: str) -> object:
    """Return the value of a setting; a text that is no number stays one, and is reported as wrong."""
    plain = unquote(text)
    if setting not in _NUMBERS:
        return plain
    try:
        value: object = json.loads(plain)
    except (ValueError, RecursionError):  # thousands of open brackets
        return plain
    return value


def recipe_name(recipe: Recipe) -> str:
    """Return the text of a recipe, its optimizations sorted: `awq=org/model-awq+kv_fp8`; `none` for the empty one."""
    return "+".join(entry_text(entry) for entry in sorted(recipe, key=_sort_key)) or NONE


def entry_text(entry: OptimizationSpec) -> str:
    """Return the text of one optimization with its settings."""
    settings = dict(_flat(getattr(entry, entry.name).model_dump(mode="json", exclude_defaults=True)))
    if getattr(getattr(entry, entry.name), "job", None) and not any(key.startswith("job.") for key in settings):
        settings["job"] = True
    main = settings.pop(_MAIN.get(entry.name, "="), None)
    head = entry.name if main is None else f"{entry.name}={_text(main)}"
    return ",".join([head, *(f"{key}={_text(value)}" for key, value in sorted(settings.items()))])


def _flat(node: dict[str, object], parents: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _flat(value, (*parents, key))
        else:
            yield ".".join((*parents, key)), value


def _text(value: object) -> str:
    return quote(value if isinstance(value, str) else json.dumps(value), safe=_PLAIN)


def expanded(endpoint: EndpointSpec) -> EndpointSpec:
    """Return a spec with what its recipe means in the fields that the planner and the renderer read.

    A spec that was expanded already comes back as it is. Contradictions are reported before
    (`recipe_problems`); where there are some all the same, the recipe's value is taken.
    """
    for entry in endpoint.optimization:
        settings = getattr(entry, entry.name)
        if isinstance(settings, QuantizedWeights):
            endpoint = _with_overrides(endpoint, quantization=PRECISIONS[entry.name])
            if settings.checkpoint is not None:
                model = _with_checkpoint(endpoint.model, settings.checkpoint, settings.revision)
                endpoint = endpoint.model_copy(update={"model": model})
        elif isinstance(settings, DraftModel | NgramDrafts):
            endpoint = _with_overrides(endpoint, speculative_decoding=_speculation(endpoint.model, entry))
        elif isinstance(settings, PrefixCache):
            endpoint = _with_overrides(endpoint, prefix_caching=True)
            if settings.hit_rate is not None:
                workload = endpoint.workload.model_copy(update={"prefix_hit_rate": settings.hit_rate})
                endpoint = endpoint.model_copy(update={"workload": workload})
        elif isinstance(settings, Compilation):
            # For AWS Neuron the instance types decide between the images; nothing else says TensorRT-LLM.
            endpoint = (
                _with_serving(endpoint, engine="lmi", backend="trtllm") if settings.target == "trtllm" else endpoint
            )
        else:
            # e5m2 is FP8 as well: who wrote it keeps it.
            kept = endpoint.serving.overrides.kv_cache_dtype
            endpoint = _with_overrides(endpoint, kv_cache_dtype=kept if kept == "fp8_e5m2" else "fp8_e4m3")
    return endpoint


def quantizes(recipe: Recipe) -> OptimizationSpec | None:
    """Return the optimization of a recipe that quantizes the weights; `None` without one."""
    return next((entry for entry in recipe if entry.name in WEIGHTS), None)


def compiles(recipe: Recipe) -> Compilation | None:
    """Return the compilation of a recipe; `None` without one."""
    return next((entry.compile for entry in recipe if entry.compile is not None), None)


def is_quantized_at_start(endpoint: EndpointSpec, architecture: Architecture) -> bool:
    """Return whether the engine itself quantizes the weights when it starts: FP8, and every kind by TensorRT-LLM."""
    quantization, entry = endpoint.serving.overrides.quantization, quantizes(endpoint.optimization)
    if entry is not None:
        settings, compiled = getattr(entry, entry.name), compiles(endpoint.optimization)
        if settings.checkpoint or settings.job or (compiled is not None and compiled.when == "ahead_of_time"):
            return False
    own = architecture.checkpoint_quantization
    return quantization is not None and own is None and (quantization == "fp8" or endpoint.serving.backend == "trtllm")


def fields_of(recipe: Recipe) -> frozenset[str]:
    """Return the fields of `serving.overrides` that a recipe sets."""
    fields = {WEIGHTS: "quantization", SPECULATIONS: "speculative_decoding"}
    own = {"prefix_cache": "prefix_caching", "kv_fp8": "kv_cache_dtype"}
    names = {
        own.get(entry.name) or next((field for kind, field in fields.items() if entry.name in kind), None)
        for entry in recipe
    }
    return frozenset(name for name in names if name is not None)


def _with_overrides(endpoint: EndpointSpec, **fields: object) -> EndpointSpec:
    overrides: ServingOverrides = endpoint.serving.overrides.model_copy(update=fields)
    return _with_serving(endpoint, overrides=overrides)


def _with_serving(endpoint: EndpointSpec, **fields: object) -> EndpointSpec:
    serving: ServingSpec = endpoint.serving.model_copy(update=fields)
    return endpoint.model_copy(update={"serving": serving})


def _with_checkpoint(model: ModelSpec, checkpoint: str, revision: str | None) -> ModelSpec:
    """Return the model with other weights: its shape and its licence stay those of the base model."""
    base = model.hub_id or model.jumpstart_id
    # A checkpoint's own name may be unknown: its shape is looked up by the base model's, unless the spec describes it.
    described = model.architecture or model.config_file or model.shape
    in_s3 = checkpoint.startswith("s3://")
    source = {"hub_id": None if in_s3 else checkpoint, "s3_uri": s3_prefix(checkpoint) if in_s3 else None}
    if (model.hub_id, model.s3_uri) == (source["hub_id"], source["s3_uri"]):
        return model
    return model.model_copy(
        update={
            **source,
            "revision": None if in_s3 else revision,
            "jumpstart_id": None,
            "jumpstart_metadata": None,
            "hub_content_arn": None,
            "architecture": model.architecture if described else model.hub_id,
            "licence": model.licence or (licence_of(base) if base else None),
        }
    )


def s3_prefix(uri: str) -> str:
    """Return the place of weights as `model.s3_uri` writes it: a prefix ends with a slash."""
    return uri if uri.endswith(("/", ".tar.gz")) else f"{uri}/"


def _speculation(model: ModelSpec, entry: OptimizationSpec) -> SpeculativeDecodingSpec:
    settings: DraftModel | NgramDrafts = getattr(entry, entry.name)
    draft = settings.draft if isinstance(settings, DraftModel) else None
    name = model.architecture or model.hub_id or model.jumpstart_id or ""
    facts = speculation.assumed(DRAFT_METHODS[entry.name], name, draft)
    trained = entry.job is not None  # its artifacts have the head, and the recommended image knows where
    return SpeculativeDecodingSpec.model_validate(
        {
            "draft_tokens": settings.draft_tokens or facts.draft_tokens,
            "acceptance_rate": settings.acceptance_rate or facts.acceptance_rate,
            "draft_cost": min(facts.draft_cost, _HIGHEST_DRAFT_COST),
            "method": None if trained else DRAFT_METHODS[entry.name],
            "model": draft,
        }
    )


def recipe_problems(document: Document) -> Iterator[Finding]:
    """Yield every contradiction of a recipe: with the rest of the spec, within itself, and what it lacks."""
    entries = tuple(_entries(document))
    seen: dict[str, str] = {}
    for path, entry in entries:
        kinds: dict[str, str] = {entry.name: f"{entry.name} is written twice"}
        kinds |= {kind: f"two {kind}: {seen.get(kind)} and {entry.name}" for kind, of in _KINDS if entry.name in of}
        repeated = [message for kind, message in kinds.items() if kind in seen]
        if repeated:
            yield document.problem(path, "SEA231", repeated[0], "keep one of them")
        seen |= dict.fromkeys(kinds, entry.name)
    for path, entry in entries:
        for rule in _RULES:
            yield from rule(document, path, entry)
    if not entries:
        yield from _overridden_weights(document)


_QUANTIZING = (
    "trtllm",
    "neuronx",
    "deepspeed",
)  # they make fewer bits of 16-bit weights themselves


def _overridden_weights(document: Document) -> Iterator[Finding]:
    """Yield a precision that the plan would count and the weights, by the catalog, don't have."""
    path, hub_id = (*_OVERRIDES, "quantization"), document.value("model", "hub_id")
    precision, backend = document.value(*path), document.value("serving", "backend")
    known = (
        resolve_model(hub_id) if isinstance(hub_id, str) and document.value("model", "config_file") is None else None
    )
    if known is None or precision not in precisions.NAMES or precision == known[1] or backend in _QUANTIZING:
        return
    if known[1] is None and precision != "fp8":
        message = f"{precision} needs weights that are quantized so; those of {hub_id} have 16 bits"
        hint = "name the repository of the quantized weights in model.hub_id, or take fp8, which needs none"
        yield document.problem(path, "SEA152", message, hint)
    elif known[1] is not None:
        message = f"the weights of {hub_id} are {known[1]}, so {precision} can't be made from them"
        yield document.problem(path, "SEA152", message, "leave it out, or name other weights in model.hub_id")


def _entries(document: Document) -> Iterator[tuple[FieldPath, OptimizationSpec]]:
    """Yield the optimizations that can be read; the others are reported by their own type or bound."""
    written = document.value("optimization")
    for index, value in enumerate(written if isinstance(written, list) else ()):
        try:
            yield ("optimization", index), _ENTRY.validate_json(json.dumps(value), strict=True)
        except ValidationError:
            continue


def _against(document: Document, path: FieldPath, entry: OptimizationSpec, *, is_of: str) -> Finding:
    field = ".".join(str(part) for part in path)
    value = document.value(*map(str, path))
    shown = json.dumps(value) if isinstance(value, bool | dict | list) else str(value)
    message = f"the optimization {entry.name} is {is_of}, but {field} is {shown}"
    return document.problem(path, "SEA230", message, f"remove {field}, or the optimization")


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
    _, quantization, is_explicit = split_precision(name)
    named = quantization or "16 bits" if is_explicit else unsupported_format(name)
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
        given = f"`{entry.name}: {{checkpoint: org/model-{entry.name}}}`"
        hint = f"give it a checkpoint, {given}, or `job: true`; or take fp8"
        if entry.name == "mxfp4":
            hint = "give mxfp4 with a checkpoint: {checkpoint: org/model}; or fp8, which needs none"
        yield document.problem(path, "SEA232", message, hint)


def _built_at_start(document: Document, entry: OptimizationSpec) -> bool:
    """Return whether TensorRT-LLM quantizes the weights when it builds its engine (LMI's `option.quantize`)."""
    compilations = [other.compile for _, other in _entries(document) if other.compile is not None]
    trtllm = any(compilation.target == "trtllm" for compilation in compilations)
    return entry.name in ("awq", "smoothquant") and (trtllm or document.value("serving", "backend") == "trtllm")


def published_quantization(name: str) -> str | None:
    """Return the quantization of the weights of a hub id, by the catalog or its name; `None` for 16 bits."""
    known = resolve_model(name)
    return known[1] if known is not None else split_precision(name)[1]


def _speculation_problems(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
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
    _speculation_problems,
    _prefix_cache,
    _kv_cache,
    _compilation,
)


@dataclass(frozen=True, slots=True)
class _Drafting:
    """Drafting, wherever a spec says it.

    Attributes:
        path: Where it stands.
        draft_tokens: Tokens drafted per step.
        acceptance_rate: Probability that one is accepted.
        draft_cost: Drafting one token, in steps of the model.
        without: What to leave out for no drafting.
    """

    path: FieldPath
    draft_tokens: int
    acceptance_rate: float | None
    draft_cost: float
    without: str


def speculation_problems(document: Document) -> Iterator[Finding]:
    """Yield a draft as long as the whole output, and a draft that costs more steps than it is expected to save."""
    drafted = _number(document, "draft_tokens")
    if not isinstance(drafted, int) or not 1 <= drafted <= MOST_DRAFT_TOKENS:
        return
    accepted, cost = _number(document, "acceptance_rate"), _number(document, "draft_cost")
    accepted = accepted if accepted is not None and 0 < accepted < 1 else None
    cost = DEFAULT_DRAFT_COST if cost is None else cost
    rate = accepted if 0 <= cost < 1 else None
    yield from _problems(document, _Drafting(_SPECULATION, drafted, rate, cost, "speculative_decoding"))


def draft_problems(document: Document, path: FieldPath, entry: OptimizationSpec) -> Iterator[Finding]:
    """Yield the same of an optimization that drafts, with what the catalog assumes where it says nothing."""
    settings: DraftModel | NgramDrafts = getattr(entry, entry.name)
    draft = settings.draft if isinstance(settings, DraftModel) else None
    named = (document.value("model", field) for field in ("architecture", "hub_id", "jumpstart_id"))
    model = next((name for name in named if isinstance(name, str)), "")
    facts = speculation.assumed(DRAFT_METHODS[entry.name], model, draft)
    drafting = _Drafting(
        path=(*path, entry.name),
        draft_tokens=settings.draft_tokens or facts.draft_tokens,
        acceptance_rate=settings.acceptance_rate or facts.acceptance_rate,
        draft_cost=facts.draft_cost,
        without=entry.name,
    )
    yield from _problems(document, drafting)


def _problems(document: Document, drafting: _Drafting) -> Iterator[Finding]:
    drafted, output = drafting.draft_tokens, document.value("workload", "output_tokens")
    if isinstance(output, int) and not isinstance(output, bool) and 1 <= output <= drafted:
        message = f"draft_tokens {drafted} is not below workload.output_tokens {output}"
        hint = f"draft fewer tokens, or leave {drafting.without} out"
        yield document.problem((*drafting.path, "draft_tokens"), "SEA108", message, hint)
    if drafting.acceptance_rate is None:
        return
    gained, spent = tokens_per_cycle(drafted, drafting.acceptance_rate), 1 + drafted * drafting.draft_cost
    if gained <= spent:
        message = f"speculative decoding would slow the endpoint: {gained:.2f} tokens in the time of {spent:.2f} steps"
        hint = f"draft fewer tokens, use a cheaper or better draft, or leave {drafting.without} out"
        yield document.problem(drafting.path, "SEA116", message, hint)


def tokens_per_cycle(draft_tokens: int, acceptance_rate: float) -> float:
    """Return the tokens expected of one cycle: draft, then one step of the model that accepts or corrects.

    (1 - a^(k+1)) / (1 - a) for k drafted tokens that are accepted with probability a each: Leviathan et al. 2023,
    "Fast Inference from Transformers via Speculative Decoding", equation 1.
    """
    return float((1 - acceptance_rate ** (draft_tokens + 1)) / (1 - acceptance_rate))


def _number(document: Document, name: str) -> float | None:
    value = document.value(*_SPECULATION, name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
