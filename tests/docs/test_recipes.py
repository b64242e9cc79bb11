"""Each recipe of CONTRIBUTING.md lists the files that one change of its kind touched, no more and no fewer."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
RECIPES: Final = dict(
    re.findall(
        r"^### (A new [^\n]+)\n(.*?)(?=^##)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
)
SOURCES: Final = ("seatrial", "constructs", "stacks", "packages", "scripts")
OF_EXAMPLES: Final = {
    "A new field of a spec": r"\bscale_in_cooldown_s\b",
    "A new option of a trial": r"\bturn_delay_s\b",
    "A new engine option": r"\benforce_eager\b",
    "A new instance type": r"\bml\.p5e\.48xlarge\b",
    "A new property of SageMaker": r"\bdata_cache\b",
    "A new rule": r"\bSEA326\b",
    "A new command": r"\bteams_command\b",
    "A new kind of arrivals": r"\"gamma\"",
}
MOST_FILES_OF_AN_ENGINE: Final = 40


@cache
def sources() -> dict[str, str]:
    """Return the text of every source, code and data alike, by its path."""
    files = (file for folder in SOURCES for kind in ("py", "json") for file in (ROOT / folder).rglob(f"*.{kind}"))
    named = {file.relative_to(ROOT).as_posix(): file for file in files}
    return {name: file.read_text("utf-8") for name, file in named.items() if "/tests/" not in name}


def naming(example: str) -> set[str]:
    pattern = re.compile(example)
    return {name for name, text in sources().items() if pattern.search(text)}


def listed(recipe: str) -> set[str]:
    """Return the paths that a recipe names, whole ones alone."""
    return set(re.findall(r"`((?:" + "|".join(SOURCES) + r")/[\w./-]+)`", RECIPES[recipe]))


def test_every_recipe_has_an_example() -> None:
    assert set(RECIPES) == {*OF_EXAMPLES, "A new engine"}


@pytest.mark.parametrize(("recipe", "example"), OF_EXAMPLES.items())
def test_a_recipe_lists_the_files_of_its_example(recipe: str, example: str) -> None:
    files = {name for name in listed(recipe) if name.endswith((".py", ".json"))}
    others = {name for name in files if name in sources() and not re.search(example, sources()[name])}
    assert naming(example) == files - others
    assert not {name for name in listed(recipe) if not (ROOT / name).exists()}
    assert len(files - others) <= 6


def test_an_engine_is_in_the_folders_of_its_recipe() -> None:
    folders = tuple(name for name in listed("A new engine") if (ROOT / name).exists())
    files = {name for name in naming(r"(?i)sglang") if name.endswith(".py") and not name.startswith("scripts/")}
    assert {name for name in files if not name.startswith(folders)} == set()
    assert len(files) <= MOST_FILES_OF_AN_ENGINE


def test_a_recipe_is_short() -> None:
    assert {recipe: len(text.split()) for recipe, text in RECIPES.items() if len(text.split()) > 200} == {}
