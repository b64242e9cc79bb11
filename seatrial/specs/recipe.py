"""A recipe as one text, and what it means for the rest of the spec.

The text names the optimizations with a plus between them: `awq+kv_fp8`. What an optimization is made from follows after
an equals sign, its other settings after commas: `awq=org/model-awq,revision=4f2b1e0`,
`speculative=org/draft,draft_tokens=4`, `compile=trtllm`. `none` is the empty recipe.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args
from urllib.parse import quote, unquote

from pydantic import TypeAdapter, ValidationError

from seatrial.specs.broken_rails import guard_rail_problems
from seatrial.specs.contradictions import contradictions
from seatrial.specs.draft_rules import DRAFT_METHODS
from seatrial.specs.endpoint import EndpointSpec, SpeculativeDecodingSpec
from seatrial.specs.optimization import (
    NAMES,
    SPECULATIONS,
    WEIGHTS,
    Compilation,
    DraftModel,
    NgramDrafts,
    OptimizationSpec,
    PrefixCache,
    QuantizedWeights,
    Recipe,
)
from seatrial.specs.recipe_rules import PRECISIONS
from seatrial_base.catalog import speculation
from seatrial_base.catalog.model_names import licence_of
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from seatrial.specs.endpoint import ModelSpec, ServingOverrides, ServingSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import Yaml
    from seatrial_base.catalog.architecture import Architecture

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


def parse_recipe(text: str) -> Recipe:
    """Read a recipe from its text; its optimizations are sorted by name.

    Raises:
        SpecError: SEA104 for an optimization or setting that does not exist, SEA107 for a value that it can't have.
    """
    if text.strip() in ("", NONE):
        return ()
    problems: list[Finding] = []
    found: list[OptimizationSpec] = []
    for part in text.split("+"):
        problems += [_repeated(text, part, name) for name in _twice(part)]
        try:
            found.extend(_RECIPE.validate_json(json.dumps([_entry(part.strip())]), strict=True))
        except ValidationError as error:
            problems += [_unreadable(text, part.strip(), each) for each in error.errors()]
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return tuple(sorted(found, key=_sort_key))


def _sort_key(entry: OptimizationSpec) -> tuple[str, str]:
    return entry.name, entry_text(entry)


def _twice(part: str) -> list[str]:
    """Return the settings of an optimization that are written more than once."""
    name, *others = part.strip().split(",")
    written = [other.partition("=")[0] for other in others]
    written += [_MAIN.get(name.partition("=")[0], "=")] if "=" in name else []
    return sorted({setting for setting in written if written.count(setting) > 1})


def _repeated(text: str, part: str, setting: str) -> Finding:
    where = _name_in(part.strip())
    return Finding(
        "SEA231", Place.at(f"recipe {_short(text)}", where), f"{_short(setting)} is written twice", "keep one of them"
    )


def _name_in(part: str) -> str:
    return part.partition("=")[0].partition(",")[0]


def _unreadable(text: str, part: str, found: ErrorDetails) -> Finding:
    name, where = _name_in(part), f"recipe {_short(text)}"
    if not name:
        return Finding("SEA104", Place.at(where), "an optimization is left out beside a plus or a comma", _known())
    if name not in NAMES:
        return Finding("SEA104", Place.at(where), f"{_short(name)} is no optimization", _known())
    path = [str(key) for key in found["loc"][2:]]  # behind the place in the list and the optimization
    if found["type"] in ("extra_forbidden", "missing"):
        rule = "SEA104" if found["type"] == "extra_forbidden" and path != ["="] else "SEA107"
        return Finding(rule, Place.at(where, name), *_setting(name, path, missing=found["type"] == "missing"))
    told = ".".join((name, *map(_short, path)))
    message = found["msg"].removeprefix("Input ").removeprefix("String ")
    hint = "as in awq=org/model-awq+kv_fp8, or ngram,draft_tokens=3"
    return Finding("SEA107", Place.at(where, told), message[:1].lower() + message[1:], hint)


def _setting(name: str, path: list[str], *, missing: bool) -> tuple[str, str]:
    """Return the message and the hint for a setting that does not exist, or that is lacking."""
    main = _MAIN.get(name)
    if missing:
        return f"{name} needs {'.'.join(path)}", f"as in {name}={'trtllm' if name == 'compile' else '…'}"
    setting = ".".join(path)
    told = f"{name} has no setting {_short(setting)}" if setting else "a setting is left out beside a comma"
    told = f"{name} takes nothing behind the equals sign" if setting == "=" else told
    known = [field for field in _settings_of(name) if field != main]
    return told, f"its settings: {', '.join(known)}" if known else f"write {name} alone"


def _settings_of(name: str) -> tuple[str, ...]:
    (model,) = (kind for kind in get_args(OptimizationSpec.model_fields[name].annotation) if kind is not type(None))
    return tuple(model.model_fields)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _known() -> str:
    return f"known: {', '.join(NAMES)}; `{NONE}` for no optimization"


def _entry(part: str) -> dict[str, object]:
    """Return an optimization as a spec writes it."""
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
    """Return the value of a setting; a text that is no number stays one, and is told as wrong."""
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


def with_recipe(loaded: LoadedSpec, recipe: Recipe) -> LoadedSpec:
    """Return what is asked for with another recipe in place of its own.

    Raises:
        SpecError: With everything that contradicts the recipe in the spec, placed at the fields.
    """
    written: list[Yaml] = [entry.model_dump(mode="json", exclude_unset=True, exclude_none=True) for entry in recipe]
    document = replace(loaded.document, data={**loaded.document.data, "optimization": written})
    endpoint = EndpointSpec.model_validate_json(json.dumps(document.data), strict=True)
    problems = list(contradictions(document))
    if not problems:
        endpoint = expanded(endpoint)
        problems = list(guard_rail_problems(endpoint, loaded.environment, document, loaded.place))
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return replace(loaded, endpoint=endpoint, document=document)


def expanded(endpoint: EndpointSpec) -> EndpointSpec:
    """Return a spec with what its recipe means in the fields that the planner and the renderer read.

    A spec that was expanded already comes back as it is. Contradictions are told before
    (`recipe_rules.recipe_problems`); where there are some all the same, the recipe's value is taken.
    """
    for entry in endpoint.optimization:
        settings = getattr(entry, entry.name)
        if isinstance(settings, QuantizedWeights):
            endpoint = _with_weights(endpoint, entry.name, settings)
        elif isinstance(settings, DraftModel | NgramDrafts):
            endpoint = _with_overrides(endpoint, speculative_decoding=_speculation(endpoint.model, entry))
        elif isinstance(settings, PrefixCache):
            endpoint = _with_prefix_cache(endpoint, settings)
        elif isinstance(settings, Compilation):
            endpoint = _with_compiler(endpoint, settings)
        else:
            kept = endpoint.serving.overrides.kv_cache_dtype
            endpoint = _with_overrides(endpoint, kv_cache_dtype=kept if kept == "fp8_e5m2" else "fp8_e4m3")
    return endpoint


def quantizes(recipe: Recipe) -> OptimizationSpec | None:
    """Return the optimization of a recipe that quantizes the weights; `None` without one."""
    return next((entry for entry in recipe if entry.name in WEIGHTS), None)


def speculates(recipe: Recipe) -> OptimizationSpec | None:
    """Return the optimization of a recipe that drafts tokens; `None` without one."""
    return next((entry for entry in recipe if entry.name in SPECULATIONS), None)


def compiles(recipe: Recipe) -> Compilation | None:
    """Return the compilation of a recipe; `None` without one."""
    return next((entry.compile for entry in recipe if entry.compile is not None), None)


def is_quantized_at_start(endpoint: EndpointSpec, architecture: Architecture) -> bool:
    """Tell whether the engine itself quantizes the weights when it starts: FP8, and every kind by TensorRT-LLM.

    Args:
        endpoint: The spec, its recipe expanded.
        architecture: The model's shape, with the quantization of its checkpoint.
    """
    asked, entry = endpoint.serving.overrides.quantization, quantizes(endpoint.optimization)
    if entry is not None:
        settings, compiled = getattr(entry, entry.name), compiles(endpoint.optimization)
        if settings.checkpoint or settings.job or (compiled is not None and compiled.when == "ahead_of_time"):
            return False
    own = architecture.checkpoint_quantization
    return asked is not None and own is None and (asked == "fp8" or endpoint.serving.backend == "trtllm")


def fields_of(recipe: Recipe) -> frozenset[str]:
    """Return the fields of `serving.overrides` that a recipe sets."""
    fields = {WEIGHTS: "quantization", SPECULATIONS: "speculative_decoding"}
    own = {"prefix_cache": "prefix_caching", "kv_fp8": "kv_cache_dtype"}
    found = {
        own.get(entry.name) or next((field for kind, field in fields.items() if entry.name in kind), None)
        for entry in recipe
    }
    return frozenset(name for name in found if name is not None)


def _with_overrides(endpoint: EndpointSpec, **fields: object) -> EndpointSpec:
    overrides: ServingOverrides = endpoint.serving.overrides.model_copy(update=fields)
    return _with_serving(endpoint, overrides=overrides)


def _with_serving(endpoint: EndpointSpec, **fields: object) -> EndpointSpec:
    serving: ServingSpec = endpoint.serving.model_copy(update=fields)
    return endpoint.model_copy(update={"serving": serving})


def _with_weights(endpoint: EndpointSpec, name: str, settings: QuantizedWeights) -> EndpointSpec:
    changed = _with_overrides(endpoint, quantization=PRECISIONS[name])
    if settings.checkpoint is None:
        return changed
    return changed.model_copy(
        update={"model": _with_checkpoint(endpoint.model, settings.checkpoint, settings.revision)}
    )


def _with_checkpoint(model: ModelSpec, checkpoint: str, revision: str | None) -> ModelSpec:
    """Return the model with other weights: its shape and its licence stay those of the base model."""
    base = model.hub_id or model.jumpstart_id
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


def _with_prefix_cache(endpoint: EndpointSpec, settings: PrefixCache) -> EndpointSpec:
    changed = _with_overrides(endpoint, prefix_caching=True)
    if settings.hit_rate is None:
        return changed
    workload = endpoint.workload.model_copy(update={"prefix_hit_rate": settings.hit_rate})
    return changed.model_copy(update={"workload": workload})


def _with_compiler(endpoint: EndpointSpec, settings: Compilation) -> EndpointSpec:
    """Fix LMI's backend for TensorRT-LLM; for AWS Neuron the instance types decide between the images."""
    return _with_serving(endpoint, engine="lmi", backend="trtllm") if settings.target == "trtllm" else endpoint
