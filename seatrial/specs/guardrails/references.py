"""References to artifacts: all that a container loads, runs or reads, as guard rails judge it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.engine_options import LOADING_OPTIONS, every_known_name
from seatrial_base.catalog.jumpstart import find_jumpstart_model
from seatrial_base.catalog.models import licence_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.endpoint import EndpointSpec, ModelSpec
    from seatrial.specs.yaml_source import FieldPath
    from seatrial_lint.engines.engine_options import OptionValue


MOUNT = "/opt/ml/model"
"""Where the model's own files are in a container."""
EXTRA = ("serving", "overrides", "extra")
_WORDS = frozenset({"", "auto", "vllm", "none", "true", "false"})  # values that name nothing
_TEMPLATES = ("chat_template", "completion_template")  # with braces it is the template itself, else its file
_NAMES_FILES = frozenset({"a model", "a file, folder or repository", "code"})
_METHODS = frozenset({"method", "quant_method", "rope_type", "type"})  # of JSON options: words, no names of models
# Options and members that name code, whatever the engine calls the rest of them.
_OF_CODE = re.compile(
    r"(^|_)(plugins?|modules?|cls|class(es)?|handlers?|scripts?|entrypoint|middlewares?|hooks?|callbacks?|factory)(_|$)"
)
_LONGEST = 8_192  # characters of a value that is judged: each of its words is held against each pattern
_LISTED = re.compile(r"[\s,;|]+")
_MODULE = re.compile(r"[A-Za-z_]\w*([.:][A-Za-z_]\w*)+")  # `package.Class`, `package:function`, `file.py`


@dataclass(frozen=True, slots=True)
class LoadedThing:
    """Something that a container loads.

    Attributes:
        kind: What it is; `option` is what an option of `serving.overrides.extra` names.
        name: Hub id, URI, ARN or JumpStart id; of a revision, `REPOSITORY@REVISION`; `None` where it is unknown what
            is loaded.
        because: Why it is unknown; empty with a name.
        licence: Id of its licence on the hub; `None` when it is unknown.
    """

    path: FieldPath
    kind: Literal["model", "draft", "adapter", "data", "option", "code", "revision"]
    name: str | None
    because: str = ""
    licence: str | None = None


def loaded_things(endpoint: EndpointSpec, region: str, folder: Path) -> Iterator[LoadedThing]:
    """Yield everything that is loaded, each with its field.

    A path in the container is left out: what is there came with the model's own weights, or with the image.

    `region`: the environment's region, whose bucket has what JumpStart's metadata names.
    """
    yield from _model(endpoint.model, region, folder)
    yield from _recipe(endpoint)
    draft = endpoint.serving.overrides.speculative_decoding
    if draft is not None and draft.model is not None and not draft.model.startswith("/"):
        path = ("serving", "overrides", "speculative_decoding", "model")
        yield LoadedThing(path, "draft", draft.model, licence=licence_of(draft.model))
    lora = endpoint.serving.overrides.lora
    for index, adapter in enumerate((lora.adapters if lora is not None else None) or ()):
        if not adapter.path.startswith("/"):
            yield LoadedThing(("serving", "overrides", "lora", "adapters", index, "path"), "adapter", adapter.path)
    for index, component in enumerate(endpoint.serving.adapters):
        yield LoadedThing(("serving", "adapters", index, "s3_uri"), "adapter", component.s3_uri)
    if endpoint.serving.code is not None:
        yield LoadedThing(("serving", "code"), "code", None, "code loads what it likes")
    for name, value in endpoint.serving.overrides.extra.items():
        for thing in option_things(name, value, endpoint.model.hub_id):
            yield replace(thing, path=(*EXTRA, name))


def _model(model: ModelSpec, region: str, folder: Path) -> Iterator[LoadedThing]:
    for field in ("hub_id", "s3_uri", "jumpstart_id", "model_package_arn", "hub_content_arn"):
        name = getattr(model, field)
        if name is not None:
            yield LoadedThing(("model", field), "model", name, licence=licence_of(name) or model.licence)
    if model.hub_id is not None and model.revision is not None:
        yield LoadedThing(("model", "revision"), "revision", f"{model.hub_id}@{model.revision}")
    if model.jumpstart_metadata is None or model.jumpstart_id is None:
        return
    known, path = find_jumpstart_model(model.jumpstart_id), ("model", "jumpstart_metadata")
    try:
        artifact = jumpstart.read_metadata(folder / model.jumpstart_metadata, model.jumpstart_id)
    except jumpstart.MetadataError as error:
        yield LoadedThing(path, "model", None, str(error))
        return
    if known is None or known.key != artifact.key:
        yield LoadedThing(path, "model", artifact.s3_uri(region), licence=model.licence)


def _recipe(endpoint: EndpointSpec) -> Iterator[LoadedThing]:
    """Yield what the jobs and compilers of a recipe read; its checkpoints and drafts are in the expanded spec."""
    for index, entry in enumerate(endpoint.optimization):
        path: FieldPath = ("optimization", index, entry.name)
        if entry.compile is not None and entry.compile.artifacts is not None:
            yield LoadedThing((*path, "artifacts"), "model", entry.compile.artifacts, licence=endpoint.model.licence)
        if entry.job is not None and entry.job.training_data_s3_uri is not None:
            yield LoadedThing((*path, "job", "training_data_s3_uri"), "data", entry.job.training_data_s3_uri)


def option_things(name: str, value: OptionValue, hub_id: str | None) -> Iterator[LoadedThing]:
    """Yield what an option of an engine loads; nothing where it is known to load nothing, or is a number.

    What an option names is known of some, by the table; of every other one its texts tell it, and those of its members
    where it is JSON: a path, a repository, a module. So a new option, or a new member of an old one, is judged too. An
    option that no container's sources know may load anything, so its text can't be judged.

    `hub_id`: the model's repository, which the option's revision is of; `None` where it has none.
    """
    if not isinstance(value, str):
        return
    what = _what(name)
    is_configuration = what == "a configuration that may name a model"
    members: object = value
    # Any option may be given JSON: an engine that reads it would load what a text of it names.
    if is_configuration or value.lstrip()[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):  # a text all the same, such as a template
            members = json.loads(value)
    if because := _unjudged(name, value, what) or (
        f"the option {name} is no JSON object" if is_configuration and not isinstance(members, dict) else ""
    ):
        yield LoadedThing((name,), "option", None, because)
        return
    for member, text, repository in _texts(members, name, hub_id or ""):
        if _is_revision(member):
            yield LoadedThing((name,), "revision", f"{repository}@{text}")
        else:
            # A member of an unknown name is what its option names.
            whole = "a model" if is_configuration and member not in _METHODS else None
            yield from _text(name, member, text, _what(member) or (what if what in _NAMES_FILES else whole))


def _unjudged(name: str, value: str, what: str | None) -> str:
    """Return why the text of an option can't be judged; empty when it can."""
    if what is None and not _is_revision(name) and name.lower() not in every_known_name():
        return f"the option {name} is unknown, so it may load anything"
    if len(value) > _LONGEST and not (what == "nothing" or _is_template(name, value)):
        return f"the option {name} has more than {_LONGEST:,} characters, so what it loads is unknown"
    return ""


def _what(name: str) -> str | None:
    """Return what is known that an option, or a member of one, names; `None` where its texts must tell it."""
    row = LOADING_OPTIONS.get(name.lower())
    return row.what if row is not None else "code" if _OF_CODE.search(name.lower()) else None


def _is_revision(name: str) -> bool:
    return name.lower().endswith("revision")


def _texts(members: object, name: str, repository: str) -> Iterator[tuple[str, str, str]]:
    """Yield each text of an option with the member that it is at and the repository that is named next to it."""
    waiting = [(name, members, repository)]  # no recursion: JSON nests deeper than calls do
    while waiting:
        member, node, beside = waiting.pop()
        if isinstance(node, str):
            yield member, node, beside
        elif isinstance(node, dict):
            named = node.get("model")
            inner = named if isinstance(named, str) else beside
            waiting += [(key, value, inner) for key, value in reversed(node.items())]
        elif isinstance(node, list):
            waiting += [(member, value, beside) for value in reversed(node)]


def _text(option: str, member: str, text: str, what: str | None) -> Iterator[LoadedThing]:
    """Yield what a text names: each of several that are listed, and the revision behind an at sign."""
    if what == "nothing" or _is_template(member, text):
        return
    if what == "code":
        of = "" if member == option else f" with {member}"
        yield LoadedThing((option,), "option", None, f"the option {option}{of} names code")
        return
    for part in _LISTED.split(text):
        # `sql=org/sql`, `org/sql@main`; quotes go, since an engine that reads JSON takes them off.
        named, _, revision = part.rpartition("=")[2].strip("\"'").partition("@")
        is_named = what is not None or "/" in named
        if _MODULE.fullmatch(named) and what is None:
            yield LoadedThing((option,), "option", None, f"the option {option} names {named}, which may be code")
        elif not (named in _WORDS or _is_mounted(named)) and (is_named or "\\" in named):
            yield LoadedThing((option,), "option", named, licence=licence_of(named))
        if revision and is_named:
            yield LoadedThing((option,), "revision", f"{named}@{revision}")


def _is_template(name: str, text: str) -> bool:
    return name.lower() in _TEMPLATES and "{" in text


def _is_mounted(value: str) -> bool:
    return value == MOUNT or (value.startswith(f"{MOUNT}/") and ".." not in value)
