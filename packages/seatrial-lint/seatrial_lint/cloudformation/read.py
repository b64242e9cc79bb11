"""Templates read from texts and files: JSON or YAML, one by one or as a folder that `cdk synth` wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place
from seatrial_lint.cloudformation.template import check_depth, not_a_template, template_of
from seatrial_lint.text_nodes import plain_value, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from seatrial_lint.cloudformation.template import Template

MOST_BYTES = 64 * 2**20
"""CloudFormation takes at most 1 MiB; more is read, so that a template that is too long is checked all the same."""
MANIFEST = "manifest.json"
_STACK = "aws:cloudformation:stack"


@dataclass(frozen=True, slots=True)
class TemplateGroup:
    """Templates of one account and region.

    Attributes:
        templates: The templates, by their paths.
        region: Their region; `None` when it is not known.
    """

    templates: Mapping[str, Template]
    region: str | None


@dataclass(frozen=True, slots=True)
class _TemplateFile:
    path: Path
    # `aws://ACCOUNT/REGION` of a manifest; empty when it is not known.
    environment: str

    @property
    def region(self) -> str | None:
        region = self.environment.rpartition("/")[2]
        return region if region and not region.startswith("unknown-") else None

    @property
    def account(self) -> str | None:
        account = self.environment.removeprefix("aws://").partition("/")[0]
        return account if account.isdecimal() else None


def read_template(text: str, *, name: str, region: str = "", account: str | None = None) -> Template:
    """Read a template from a text.

    Args:
        region: Stands for the pseudo parameter AWS::Region, and tells AWS::Partition; empty leaves both as they are.
        account: Stands for AWS::AccountId, likewise.

    Raises:
        SpecError: SEA451 when it is neither JSON nor YAML, or no template.
    """
    try:
        document = _read_document(text)
    except (ValueError, RecursionError) as error:
        raise not_a_template(_why(error), name) from error
    return template_of(document, name=name, region=region, account=account, text=text)


def read_template_file(path: Path, *, name: str = "", region: str = "", account: str | None = None) -> Template:
    """Read a template from a file.

    Raises:
        SpecError: SEA101 when it can't be read, SEA451 when it is no template.
    """
    where = name or path.as_posix()
    return read_template(_read_text(path, where), name=where, region=region, account=account)


def read_templates(paths: Iterable[Path], region: str | None = None) -> tuple[TemplateGroup, ...]:
    """Read templates, grouped by account and region.

    Args:
        paths: Files, or folders: of `cdk synth`, with a manifest, or others with `*.template.json` below.
        region: The region of templates whose folder names none.

    Raises:
        SpecError: SEA101 for what can't be read, SEA451 for what is no template; all of them at once.
    """
    problems: list[Finding] = []
    groups: dict[str, tuple[dict[str, Template], str | None]] = {}
    for file in _files(paths, problems):
        of = file.region or region
        try:
            template = read_template_file(file.path, region=of or "", account=file.account)
        except SpecError as error:
            problems += error.problems
        else:
            templates, _ = groups.setdefault(file.environment, ({}, of))
            templates[file.path.as_posix()] = template
    if problems:
        raise SpecError(problems)
    return tuple(TemplateGroup(templates, of) for templates, of in groups.values())


def _files(paths: Iterable[Path], problems: list[Finding]) -> Iterator[_TemplateFile]:
    for path in paths:
        if not path.is_dir():
            yield _TemplateFile(path, "")
            continue
        files = list(_folder_files(path, problems))
        if not files and not problems:
            hint = "give a CloudFormation template (JSON or YAML), or the folder that `cdk synth` writes"
            problems.append(Finding("SEA101", Place.at(path.as_posix()), "the folder has no template", hint))
        yield from files


def _folder_files(folder: Path, problems: list[Finding]) -> Iterator[_TemplateFile]:
    manifests = sorted(folder.rglob(MANIFEST)) if (folder / MANIFEST).is_file() else []
    if not manifests:
        yield from (_TemplateFile(file, "") for file in sorted(folder.rglob("*.template.json")))
    for manifest in manifests:
        for artifact in _artifacts(manifest, problems):
            match artifact:
                case {"type": str(kind), "environment": str(environment), "properties": {"templateFile": str(name)}}:
                    if kind == _STACK:
                        yield _TemplateFile(manifest.parent / name, environment)


def _why(error: ValueError | RecursionError) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}".partition("\n")[0]


def _artifacts(manifest: Path, problems: list[Finding]) -> Iterable[JsonValue]:
    where = manifest.as_posix()
    try:
        artifacts = _read_document(_read_text(manifest, where)).get("artifacts")
    except SpecError as error:
        problems += error.problems
    except (ValueError, RecursionError) as error:
        problems += not_a_template(_why(error), where).problems
    else:
        if isinstance(artifacts, dict):
            return artifacts.values()
        problems += not_a_template("no artifacts", where).problems
    return ()


def _read_text(path: Path, where: str) -> str:
    try:
        return read_text(path, most_bytes=MOST_BYTES)
    except OSError as error:
        raise SpecError.of(
            "SEA101", f"it can't be read: {error.strerror}", where=where, hint="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise not_a_template("it is not UTF-8 text", where) from error
    except ValueError as error:
        raise not_a_template(f"{error}", where) from error


def _read_document(text: str) -> dict[str, JsonValue]:
    if text.lstrip().startswith("{"):
        document: JsonValue = json.loads(text)
        check_depth(document)
    else:
        document = next((plain_value(node) for node in read_yaml(text, takes_aliases=False)), None)
    if not isinstance(document, dict):
        raise ValueError("it is no mapping")  # noqa: TRY004 (of the text, not of a type)
    return document
