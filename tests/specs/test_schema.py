from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.specs.schema import schema_texts
from seatrial_base.findings import RULES

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["endpoint", "environment"])
def test_the_committed_schema_is_current(name: str) -> None:
    committed = (REPOSITORY / "docs" / "schema" / f"{name}.schema.json").read_text()
    assert committed == schema_texts()[name], "run: seatrial schema --write"


def test_overrides_per_environment_are_part_of_the_schema() -> None:
    assert "environments" in json.loads(schema_texts()["endpoint"])["properties"]


def test_every_rule_in_the_sources_is_in_the_table() -> None:
    folders = ("seatrial", "constructs", "stacks", "packages/*/seatrial_*")
    sources = [*REPOSITORY.glob("*.py"), *(file for each in folders for file in REPOSITORY.glob(f"{each}/**/*.py"))]
    used = {word for file in sources for word in _rules(file.read_text())}
    assert used <= {rule.id for rule in RULES.rows}


def _rules(text: str) -> set[str]:
    return {text[i : i + 6] for i in range(len(text)) if text.startswith("SEA", i) and text[i + 3 : i + 6].isdigit()}
