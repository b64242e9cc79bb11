"""Templates read from files: JSON or YAML, one by one or as a folder that `cdk synth` wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml
from pydantic import JsonValue, TypeAdapter, ValidationError

from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seatrial_lint.template_rules.template_value import Json

MOST_BYTES = 16 * 2**20
"""CloudFormation takes at most 1 MiB; more is read, so that a template that is too long is checked all the same."""
MANIFEST = "manifest.json"
_MOST_DEPTH = 100
_HINT = "give a CloudFormation template (JSON or YAML), or the folder that `cdk synth` writes"
_OBJECT = TypeAdapter(dict[str, JsonValue])
_STACK = "aws:cloudformation:stack"


@dataclass(frozen=True, slots=True)
class TemplateGroup:
    """Templates of one account and region.

    Attributes:
        templates: The templates, by their paths.
        region: Their region; `None` when it is not known.
    """

    templates: Mapping[str, Mapping[str, Json]]
    region: str | None


@dataclass(frozen=True, slots=True)
class _TemplateFile:
    path: Path
    place: str  # `aws://ACCOUNT/REGION` of a manifest; empty when it is not known

    @property
    def region(self) -> str | None:
        region = self.place.rpartition("/")[2]
        return region if region and not region.startswith("unknown-") else None


def read_templates(paths: Iterable[Path], region: str | None = None) -> tuple[TemplateGroup, ...]:
    """Read templates, grouped by account and region.

    Args:
        paths: Files, or folders: of `cdk synth`, with a manifest, or others with `*.template.json` below.
        region: The region of templates whose folder names none.

    Raises:
        SpecError: SEA101 for what can't be read, SEA451 for what is no template; all of them at once.
    """
    problems: list[Finding] = []
    groups: dict[str, tuple[dict[str, Mapping[str, Json]], str | None]] = {}
    for file in _files(paths, problems):
        if template := _template(file.path, problems):
            templates, _ = groups.setdefault(file.place, ({}, file.region or region))
            templates[file.path.as_posix()] = template
    if problems:
        raise SpecError(problems)
    return tuple(TemplateGroup(templates, of) for templates, of in groups.values())


def _files(paths: Iterable[Path], problems: list[Finding]) -> Iterator[_TemplateFile]:
    for path in paths:
        if not path.is_dir():
            yield _TemplateFile(path, "")
            continue
        found = list(_in_folder(path, problems))
        if not found and not problems:
            problems.append(Finding("SEA101", Place.at(path.as_posix()), "the folder has no template", _HINT))
        yield from found


def _in_folder(folder: Path, problems: list[Finding]) -> Iterator[_TemplateFile]:
    manifests = sorted(folder.rglob(MANIFEST)) if (folder / MANIFEST).is_file() else []
    if not manifests:
        yield from (_TemplateFile(file, "") for file in sorted(folder.rglob("*.template.json")))
    for manifest in manifests:
        artifacts = (_template(manifest, problems, key="artifacts") or {}).get("artifacts")
        for artifact in artifacts.values() if isinstance(artifacts, dict) else ():
            match artifact:
                case {"type": str(kind), "environment": str(place), "properties": {"templateFile": str(name)}}:
                    if kind == _STACK:
                        yield _TemplateFile(manifest.parent / name, place)


def _template(path: Path, problems: list[Finding], key: str = "Resources") -> dict[str, Json] | None:
    """Return a document; what is wrong with it is told, and nothing is returned."""
    where = path.as_posix()
    try:
        document: dict[str, Json] = _OBJECT.validate_python(_parsed(read_text(path, most_bytes=MOST_BYTES)))
    except OSError as error:
        problems.append(Finding("SEA101", Place.at(where), f"it can't be read: {error.strerror}", "check the path"))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        problems.append(Finding("SEA451", Place.at(where), f"not a CloudFormation template: {_why(error)}", _HINT))
    else:
        if isinstance(document.get(key), dict):
            return document
        problems.append(Finding("SEA451", Place.at(where), f"not a CloudFormation template: no {key}", _HINT))
    return None


def _why(error: Exception) -> str:
    match error:
        case ValidationError():
            return "it is no mapping"
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return "it is not UTF-8 text"
    return f"{error}".partition("\n")[0]


def _parsed(text: str) -> object:
    if text.lstrip().startswith("{"):
        return json.loads(text)
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("CloudFormation takes no YAML aliases")  # noqa: TRY004 (of the text, not of a type)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader)


class _Loader(yaml.SafeLoader):
    """CloudFormation's YAML: the short forms of intrinsic functions, and dates as text."""


def _function(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, object]:
    """Return `!Name value` in its long form."""
    value: object
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None
    if suffix in {"Ref", "Condition"}:
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


def _as_text(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_Loader.add_multi_constructor("!", _function)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_text)
