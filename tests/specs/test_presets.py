"""Presets: the catalog's, the team's file, and a preset as a spec."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial.specs.presets import known_presets, presets_path, presets_text, read_team_presets, spec_of_preset
from seatrial.specs.presets import write_team_preset as write
from seatrial.specs.recipe import parse_recipe, recipe_name
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import resolve_model
from seatrial_base.catalog.presets import PRESETS, Preset, presets_document
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

OWN = Preset(
    name="chat.qwen3-32b.g5.12xlarge.fp8",
    model="Qwen/Qwen3-32B",
    instance_type="ml.g5.12xlarge",
    tensor_parallel_degree=4,
    recipe="fp8",
    input_tokens=512,
    output_tokens=128,
    concurrency=8,
    output_tok_s=150.0,
    provenance="measured here",
    source="trial of 2026-11-22 in dev",
    endpoint="chat",
    verdict="pass",
)
CATALOG = PRESETS.rows


def test_the_catalog_is_sorted_small_and_names_what_is_known() -> None:
    assert len(CATALOG) > 150
    file = files("seatrial_base.catalog") / "data" / "presets.json"
    assert len(file.read_bytes()) < 300_000  # its size is part of the contract
    assert file.read_text(encoding="utf-8") == presets_document(CATALOG)
    assert len({preset.name for preset in CATALOG}) == len(CATALOG)
    for preset in CATALOG:
        instance = find_instance(preset.instance_type)
        assert resolve_model(preset.model) is not None
        assert instance is not None
        assert preset.tensor_parallel_degree <= instance.accelerator_count
        assert recipe_name(parse_recipe(preset.recipe)) == preset.recipe
        assert preset.provenance in {"predicted", "published"}
        assert (preset.band is None) == (preset.provenance == "published")


def test_published_presets_are_those_of_the_suite() -> None:
    published = {preset.recipe.partition("=")[0]: preset for preset in CATALOG if preset.provenance == "published"}
    named = [preset.name for preset in CATALOG if preset.provenance == "published"]

    assert named == sorted(named)
    assert len(named) == 7
    assert published["eagle3"].output_tok_s == pytest.approx(8 * 512 / 21.4839, rel=0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text("name: dev\nregion: us-east-1\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("preset", [*CATALOG[:: len(CATALOG) // 4], OWN], ids=lambda preset: preset.name)
def test_a_preset_is_a_spec_that_is_valid_and_plans_as_it_says(preset: Preset, folder: Path) -> None:
    spec = folder / "shown.yaml"
    spec.write_text(spec_of_preset(preset), encoding="utf-8")

    plan = make_plan(load_spec(spec, "dev", environments=folder / "environments"), accept_slo_miss=True)

    assert plan.instance_type.value == preset.instance_type
    assert plan.tensor_parallel_degree.value == preset.tensor_parallel_degree
    if preset.provenance == "predicted":
        usd = plan.cost.usd_per_million_output_tokens
        assert usd == pytest.approx(preset.usd_per_million_output_tokens, rel=0.01)


def test_the_teams_file_is_written_whole_and_only_when_something_changes(tmp_path: Path) -> None:
    path = presets_path(tmp_path / "environments")
    newer = OWN.model_copy(update={"output_tok_s": 151.0})

    assert path == tmp_path / "presets.yaml"
    assert write(path, OWN) == "added"
    before = path.read_bytes()
    assert write(path, OWN) == "unchanged"
    assert path.read_bytes() == before
    assert write(path, newer) == "replaced"
    assert read_team_presets(path) == (newer,)
    assert presets_text([newer]) == path.read_text(encoding="utf-8")
    assert known_presets(tmp_path / "environments")[0] == newer


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("schema_version: '2'\n", ["SEA107"]),
        ("presets: [{name: UPPER}]\n", ["SEA106"]),
        ("[]\n", ["SEA102"]),
        ("a: [\n", ["SEA102"]),
    ],
)
def test_a_broken_file_is_told_and_kept(text: str, rules: list[str], tmp_path: Path) -> None:
    path = tmp_path / "presets.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(SpecError) as raised:
        write(path, OWN)
    assert set(rules) & {problem.rule for problem in raised.value.problems}
    assert path.read_text(encoding="utf-8") == text


def test_two_presets_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "presets.yaml"
    path.write_text(presets_text([OWN, OWN]), encoding="utf-8")

    with pytest.raises(SpecError) as raised:
        read_team_presets(path)
    assert [problem.rule for problem in raised.value.problems] == ["SEA251"]


def test_presets_change_no_plan(folder: Path) -> None:
    spec = folder / "chat.yaml"
    spec.write_text(spec_of_preset(OWN), encoding="utf-8")

    def planned() -> str:
        return make_plan(load_spec(spec, "dev", environments=folder / "environments")).digest

    before = planned()
    write(presets_path(folder / "environments"), OWN)
    assert planned() == before
