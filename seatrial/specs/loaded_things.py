"""Everything that a container of a spec loads, runs or reads by name: models, drafts, adapters, code, options."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.engine_options import LOADING_OPTIONS, every_known_name
from seatrial_base.catalog.jumpstart import find_jumpstart_model
from seatrial_base.catalog.model_names import licence_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.endpoint import EndpointSpec, ModelSpec
    from seatrial.specs.yaml_source import FieldPath
    from seatrial_lint.engines.engine_options import OptionValue

MOUNT = "/opt/ml/model"
"""Where the model's own files lie in a container."""
EXTRA = ("serving", "overrides", "extra")
_WORDS = frozenset({"", "auto", "vllm", "none", "true", "false"})  # values that name nothing
_TEMPLATES = ("chat_template", "completion_template")  # with braces it is the template itself, else its file
_METHODS = frozenset({"method", "quant_method", "rope_type", "type"})  # of JSON options: words, no names of models


@dataclass(frozen=True, slots=True)
class LoadedThing:
    """Something that a container loads.

    Attributes:
        path: The field of the spec that names it.
        kind: What it is; `option` is what an option of `serving.overrides.extra` names.
        name: Hub id, URI, ARN or JumpStart id; `None` where it can't be told what is loaded.
        because: Why it can't be told; empty with a name.
        licence: Id of its licence on the hub; `None` when it is unknown.
    """

    path: FieldPath
    kind: Literal["model", "draft", "adapter", "data", "option", "code"]
    name: str | None
    because: str = ""
    licence: str | None = None


def loaded_things(endpoint: EndpointSpec, region: str, folder: Path) -> Iterator[LoadedThing]:
    """Yield everything that is loaded, each with its field.

    A path in the container is left out: what lies there came with the model's own weights, or with the image.

    Args:
        endpoint: The spec, its recipe expanded.
        region: The environment's region, whose bucket has what JumpStart's metadata names.
        folder: The spec's folder.
    """
    yield from _model(endpoint.model, region, folder)
    yield from _recipe(endpoint)
    draft = endpoint.serving.overrides.speculative_decoding
    if draft is not None and draft.model is not None and not draft.model.startswith("/"):
        path = ("serving", "overrides", "speculative_decoding", "model")
        yield LoadedThing(path, "draft", draft.model, licence=licence_of(draft.model))
    yield from _adapters(endpoint)
    if endpoint.serving.code is not None:
        yield LoadedThing(("serving", "code"), "code", None, "code loads what it likes")
    for name, value in endpoint.serving.overrides.extra.items():
        for found in option_things(name, value):
            yield replace(found, path=(*EXTRA, name))


def _model(model: ModelSpec, region: str, folder: Path) -> Iterator[LoadedThing]:
    for field in ("hub_id", "s3_uri", "jumpstart_id", "model_package_arn", "hub_content_arn"):
        name = getattr(model, field)
        if name is not None:
            yield LoadedThing(("model", field), "model", name, licence=licence_of(name) or model.licence)
    if model.jumpstart_metadata is None or model.jumpstart_id is None:
        return
    known, path = find_jumpstart_model(model.jumpstart_id), ("model", "jumpstart_metadata")
    try:
        told = jumpstart.read_metadata(folder / model.jumpstart_metadata, model.jumpstart_id)
    except jumpstart.MetadataError as error:
        yield LoadedThing(path, "model", None, str(error))
        return
    if known is None or known.key != told.key:
        yield LoadedThing(path, "model", told.s3_uri(region), licence=model.licence)


def _recipe(endpoint: EndpointSpec) -> Iterator[LoadedThing]:
    """Yield what the jobs and compilers of a recipe read; its checkpoints and drafts stand in the expanded spec."""
    for index, entry in enumerate(endpoint.optimization):
        path: FieldPath = ("optimization", index, entry.name)
        if entry.compile is not None and entry.compile.artifacts is not None:
            yield LoadedThing((*path, "artifacts"), "model", entry.compile.artifacts, licence=endpoint.model.licence)
        if entry.job is not None and entry.job.training_data_s3_uri is not None:
            yield LoadedThing((*path, "job", "training_data_s3_uri"), "data", entry.job.training_data_s3_uri)


def _adapters(endpoint: EndpointSpec) -> Iterator[LoadedThing]:
    lora = endpoint.serving.overrides.lora
    for index, adapter in enumerate((lora.adapters if lora is not None else None) or ()):
        if not adapter.path.startswith("/"):
            yield LoadedThing(("serving", "overrides", "lora", "adapters", index, "path"), "adapter", adapter.path)
    for index, component in enumerate(endpoint.serving.adapters):
        yield LoadedThing(("serving", "adapters", index, "s3_uri"), "adapter", component.s3_uri)


def option_things(name: str, value: OptionValue) -> Iterator[LoadedThing]:
    """Yield what an option of an engine loads; nothing where it is known to load nothing, or is a number.

    An option that no container's sources know may load anything, so its text can't be judged.

    Args:
        name: The option's name, without prefix.
        value: Its value.
    """
    row = LOADING_OPTIONS.get(name.lower())
    if not isinstance(value, str):
        return
    if row is None:
        if name.lower() not in every_known_name():
            yield LoadedThing((name,), "option", None, f"the option {name} is unknown, so it may load anything")
    elif row.what == "code":
        yield LoadedThing((name,), "option", None, f"the option {name} names code")
    elif row.what == "a configuration that may name a model":
        yield from _configured(name, value)
    else:
        yield from _named(name, value)


def _named(name: str, value: str) -> Iterator[LoadedThing]:
    if not (_is_mounted(value) or value in _WORDS or (name in _TEMPLATES and "{" in value)):
        yield LoadedThing((name,), "option", value, licence=licence_of(value))


def _is_mounted(value: str) -> bool:
    return value == MOUNT or (value.startswith(f"{MOUNT}/") and ".." not in value)


def _configured(name: str, value: str) -> Iterator[LoadedThing]:
    """Yield every text of a configuration in JSON as the name of a model, but for those that say a method."""
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        yield LoadedThing((name,), "option", None, f"the option {name} is no JSON")
        return
    if not isinstance(document, dict):
        yield LoadedThing((name,), "option", None, f"the option {name} is no JSON object")
        return
    for inner, text in _texts(document):
        if inner not in _METHODS:
            yield from _named(name, text)


def _texts(node: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, str):
        yield name, node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _texts(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value, name)
