"""The team's own presets: `presets.yaml` beside the folder of environments; and a preset as a spec to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import yaml
from pydantic import Field

from seatrial.specs.load import ordered, validated
from seatrial.specs.recipe import parse_recipe
from seatrial.specs.yaml_source import merge_environment, read_source
from seatrial_base.catalog.presets import PRESETS, Preset
from seatrial_base.catalog.rows import nearest_names
from seatrial_base.errors import SpecError
from seatrial_base.files import changing, kind_of, write_whole
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PRESETS_FILE = "presets.yaml"
_HEAD = """\
# Presets of this team: written by `seatrial presets add`, read by `seatrial presets list` and `show`, by no plan.
"""


class TeamPresets(FrozenModel):
    """The team's presets file."""

    schema_version: Literal["1"] = Field(description="Version of the file's format.")
    presets: tuple[Preset, ...] = Field((), description="The presets, sorted by name.")


def presets_path(environments: Path) -> Path:
    """Return where the team's presets lie: beside the folder of environments."""
    return environments.parent / PRESETS_FILE


def read_team_presets(path: Path) -> tuple[Preset, ...]:
    """Read the team's presets; none where there is no file.

    Raises:
        SpecError: With every problem of the file; SEA251 where two presets have one name.
    """
    if not kind_of(path):
        return ()
    source = read_source(path)
    document = merge_environment(source, None)
    problems = list(source.problems)
    found, wrong = validated(TeamPresets, document) if not problems else (None, [])
    names = [preset.name for preset in found.presets] if found else []
    for name in sorted({each for each in names if names.count(each) > 1}):
        wrong.append(
            Finding("SEA251", Place.at(path.as_posix(), "presets"), f"{name} stands here twice", "remove one of them")
        )
    if problems or wrong or found is None:
        raise SpecError(ordered([*problems, *wrong]))
    return found.presets


def presets_text(rows: Iterable[Preset]) -> str:
    """Return the team's presets as YAML, sorted by name; equal presets give equal text."""
    kept = [row.model_dump(mode="json", exclude_defaults=True) for row in sorted(rows, key=lambda row: row.name)]
    return _HEAD + yaml.safe_dump(
        {"schema_version": "1", "presets": kept}, sort_keys=False, allow_unicode=True, width=200
    )


def known_presets(environments: Path) -> tuple[Preset, ...]:
    """Return the presets of the team, then those of the catalog that it has none of the same name of.

    Raises:
        SpecError: As `read_team_presets`.
    """
    own = read_team_presets(presets_path(environments))
    names = {preset.name for preset in own}
    return (*own, *(preset for preset in PRESETS.rows if preset.name not in names))


def preset_named(name: str, among: Iterable[Preset]) -> Preset:
    """Return a preset by its name.

    Raises:
        SpecError: SEA250, there is none of that name.
    """
    known = {preset.name: preset for preset in among}
    if name not in known:
        similar = ", ".join(nearest_names(name, known))
        hint = f"similar: {similar}" if similar else "`seatrial presets list` shows them"
        raise SpecError.of("SEA250", f"there is no preset {name}", hint=hint, where="presets")
    return known[name]


def spec_text(preset: Preset, *, name: str | None = None) -> str:
    """Return a preset as the spec of an endpoint, which can be validated and planned.

    Args:
        preset: The preset.
        name: The endpoint's name. Default: made of the model's.
    """
    field = "s3_uri" if preset.model.startswith("s3://") else "hub_id" if "/" in preset.model else "jumpstart_id"
    document: dict[str, object] = {
        "name": name or _endpoint_name(preset),
        "model": {field: preset.model},
        "workload": {
            "input_tokens": preset.input_tokens,
            "output_tokens": preset.output_tokens,
            "concurrency": preset.concurrency,
        },
        "serving": {
            "instance_types": [preset.instance_type],
            "overrides": {"tensor_parallel_degree": preset.tensor_parallel_degree},
        },
    }
    recipe = [_entry(entry.model_dump(mode="json", exclude_unset=True, exclude_none=True)) for entry in _recipe(preset)]
    document |= {"optimization": recipe} if recipe else {}
    head = f"# Preset {preset.name}: {preset.provenance} ({preset.source}).\n"
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=200)


def _recipe(preset: Preset) -> tuple[FrozenModel, ...]:
    return parse_recipe(preset.recipe)


def _entry(written: dict[str, object]) -> object:
    """Return an optimization as people write it: a bare name where it has no settings."""
    (name, settings), *_ = written.items()
    return written if settings else name


def _endpoint_name(preset: Preset) -> str:
    short = preset.model.rstrip("/").rpartition("/")[2].lower()
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in short)
    parts = [part for part in plain.split("-") if part]
    return preset.endpoint or "-".join(parts)[:40].strip("-")


def write_team_preset(path: Path, preset: Preset) -> Literal["added", "replaced", "unchanged"]:
    """Put a preset into the team's file, whole or not at all.

    Returns:
        `unchanged` where the file has it already, byte for byte.

    Raises:
        SpecError: As `read_team_presets`; SEA251 where the file can't be written.
    """
    try:
        with changing(path):
            return _put(path, preset)
    except OSError as error:
        message = f"the presets can't be written: {error.strerror}"
        raise SpecError.of("SEA251", message, where=path.as_posix()) from error


def _put(path: Path, preset: Preset) -> Literal["added", "replaced", "unchanged"]:
    before = read_team_presets(path)
    same = next((each for each in before if each.name == preset.name), None)
    if same == preset:
        return "unchanged"
    kept = [each for each in before if each.name != preset.name]
    write_whole(path, presets_text([*kept, preset]))
    return "added" if same is None else "replaced"
