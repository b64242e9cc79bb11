"""Specs to start from: the presets of the team and the catalog, and a model with its load from the command line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from seatrial.specs.load import ordered, validated
from seatrial.specs.recipe import parse_recipe
from seatrial.specs.yaml_source import merge_environment, read_source, yaml_text
from seatrial_base.catalog.presets import PRESETS, Preset
from seatrial_base.catalog.rows import nearest_names
from seatrial_base.errors import SpecError
from seatrial_base.files import changing, kind_of, write_whole
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


PRESETS_FILE = "presets.yaml"
_HEAD = """\
# Presets of this team: written by `seatrial presets add`, read by `seatrial presets list` and `show`, by no plan.
"""
MOST_COPIES: Final = 8
_LONGEST_NAME: Final = 40  # of an endpoint's spec
_COMMENT_AT: Final = 34
_NUMBER: Final = "{:.15g}"


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
    team, wrong = validated(TeamPresets, document) if not problems else (None, [])
    names = [preset.name for preset in team.presets] if team else []
    for name in sorted({each for each in names if names.count(each) > 1}):
        wrong.append(
            Finding("SEA251", Place.at(path.as_posix(), "presets"), f"{name} is here twice", "remove one of them")
        )
    if problems or wrong or team is None:
        raise SpecError(ordered([*problems, *wrong]))
    return team.presets


def presets_text(rows: Iterable[Preset]) -> str:
    """Return the team's presets as YAML, sorted by name; equal presets give equal text."""
    kept = [row.model_dump(mode="json", exclude_defaults=True) for row in sorted(rows, key=lambda row: row.name)]
    return _HEAD + yaml_text({"schema_version": "1", "presets": kept})


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


def spec_of_preset(preset: Preset, *, name: str | None = None) -> str:
    """Return a preset as the spec of an endpoint, which can be validated and planned."""
    field = "s3_uri" if preset.model.startswith("s3://") else "hub_id" if "/" in preset.model else "jumpstart_id"
    own = "-".join(re.findall(r"[a-z0-9]+", preset.model.rstrip("/").rpartition("/")[2].lower()))
    document: dict[str, object] = {
        "name": name or preset.endpoint or own[:40].strip("-"),
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
    entries = parse_recipe(preset.recipe)
    written = (entry.model_dump(mode="json", exclude_unset=True, exclude_none=True) for entry in entries)
    # As users write them: a bare name where an optimization has no settings.
    if recipe := [fields if any(fields.values()) else next(iter(fields)) for fields in written]:
        document["optimization"] = recipe
    head = f"# Preset {preset.name}: {preset.provenance} ({preset.source}).\n"
    return head + yaml_text(document)


def write_team_preset(path: Path, preset: Preset) -> Literal["added", "replaced", "unchanged"]:
    """Put a preset into the team's file, whole or not at all.

    Returns:
        `unchanged` where the file has it already, byte for byte.

    Raises:
        SpecError: As `read_team_presets`; SEA251 where the file can't be written.
    """
    try:
        with changing(path):
            # Within the lock: between reading and writing another command may add a preset.
            before = read_team_presets(path)
            same = next((each for each in before if each.name == preset.name), None)
            if same == preset:
                return "unchanged"
            kept = [each for each in before if each.name != preset.name]
            write_whole(path, presets_text([*kept, preset]))
            return "added" if same is None else "replaced"
    except OSError as error:
        message = f"the presets can't be written: {error.strerror}"
        raise SpecError.of("SEA251", message, where=path.as_posix()) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    """What a user requests without a file.

    Attributes:
        hub_id: The model; `None` where its weights are in a folder.
        config_file: The `config.json` of that folder, relative to the spec; `None` for a model of the hub.
        input_tokens: Mean prompt length.
        output_tokens: Mean answer length.
        concurrency: Requests in flight at peak; `None` where a rate is given.
        requests_per_second: Requests per second at peak; `None` where those in flight are given.
        ttft_p95_ms: Bound of the time to first token; `None` for none.
        tpot_p95_ms: Bound of the time per output token after the first; `None` for none.
        usd_per_hour: Highest cost; `None` for none.
        headroom: Chance that the rate is carried; `None` for the default.
    """

    hub_id: str | None
    input_tokens: int
    output_tokens: int
    config_file: str | None = None
    concurrency: int | None = None
    requests_per_second: float | None = None
    ttft_p95_ms: float | None = None
    tpot_p95_ms: float | None = None
    usd_per_hour: float | None = None
    headroom: float | None = None


def endpoint_name(hub_id: str) -> str:
    """Return a name for an endpoint of a model: `qwen3-32b` of `Qwen/Qwen3-32B`."""
    words = re.sub(r"[^a-z0-9]+", "-", hub_id.rpartition("/")[2].lower())
    return words.strip("-")[:_LONGEST_NAME].rstrip("-") or "endpoint"


def spec_text(load: ModelLoad, name: str, *, most_copies: int = MOST_COPIES) -> str:
    """Return the spec as YAML, with comments; it is loaded like any other, so that its mistakes are reported alike.

    `most_copies`: up to which autoscaling adds copies.
    """
    return "\n".join((*_lines(load, name, most_copies), ""))


def _lines(load: ModelLoad, name: str, most_copies: int) -> Iterator[str]:
    yield f"name: {name}"
    yield "model:"
    if load.hub_id is not None:
        # What the catalog has needs no quotes.
        is_plain = re.fullmatch(r"[A-Za-z][\w./-]*", load.hub_id)
        hub_id = load.hub_id if is_plain else f'"{load.hub_id}"'
        yield _commented(f"  hub_id: {hub_id}", "add `revision: COMMIT`: a branch can move")
    if load.config_file is not None:
        yield _commented(f"  s3_uri: s3://your-bucket/{name}/", "where `seatrial stage` puts the weights")
        yield _commented(f"  config_file: {json.dumps(load.config_file)}", "of the weights, relative to this file")
    yield "workload:"
    yield _commented(f"  input_tokens: {load.input_tokens}", "mean length of a prompt")
    yield _commented(f"  output_tokens: {load.output_tokens}", "mean length of an answer")
    if load.concurrency is not None:
        yield _commented(f"  concurrency: {load.concurrency}", "requests in flight at peak, over all copies")
    if load.requests_per_second is not None:
        rate = _NUMBER.format(load.requests_per_second)
        yield _commented(f"  requests_per_second: {rate}", "at peak, over all copies")
    objective = "cost" if load.headroom is None else f"{{goal: cost, headroom: {_NUMBER.format(load.headroom)}}}"
    yield _commented(f"objective: {objective}", "or cost_per_token, latency, throughput")
    yield from _slo(load)
    if load.usd_per_hour is not None:
        yield _commented(f"budget: {{usd_per_hour: {_NUMBER.format(load.usd_per_hour)}}}", "highest cost at this load")
    yield "scaling:"
    yield "  min_copies: 1"
    yield _commented(f"  max_copies: {most_copies}", "autoscaling adds copies up to this")


def _slo(load: ModelLoad) -> Iterator[str]:
    bounds = (
        ("ttft_ms", load.ttft_p95_ms, "time to first token, queueing included"),
        ("tpot_ms", load.tpot_p95_ms, "time per token after the first"),
    )
    given = [(name, bound, meaning) for name, bound, meaning in bounds if bound is not None]
    if not given:
        yield "# slo: {ttft_ms: {p95: 2000}, tpot_ms: {p95: 50}}  # without one, only failed requests are judged"
        return
    yield _commented("slo:", "95 % of the requests keep it, in milliseconds")
    for name, bound, meaning in given:
        yield _commented(f"  {name}: {{p95: {_NUMBER.format(bound)}}}", meaning)


def _commented(text: str, comment: str) -> str:
    return f"{text:<{_COMMENT_AT}}# {comment}" if len(text) < _COMMENT_AT else f"{text}  # {comment}"
