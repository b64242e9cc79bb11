from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from seatrial_base import findings
from seatrial_base.catalog import (
    engine_options,
    engine_versions,
    engines,
    instances,
    jumpstart,
    models,
    neuron,
    operators,
    optimizations,
    resource_types,
    rows,
)
from seatrial_base.catalog.rows import CatalogTable

if TYPE_CHECKING:
    from pathlib import Path

FOUND_BY_KEY: dict[str, CatalogTable[object]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module, name in (
        (engines, "ENGINE_CANDIDATES"),
        (engine_options, "ENGINE_OPTIONS"),
        (engine_options, "LOADING_OPTIONS"),
        (engine_options, "SPELLING_SOURCES"),
        (engine_versions, "DIALECTS"),
        (engines, "PERFORMANCE"),
        (instances, "ACCELERATORS"),
        (instances, "INSTANCES"),
        (instances, "OFFERS"),
        (jumpstart, "JUMPSTART_MODELS"),
        (models, "MODELS"),
        (neuron, "CHIPS"),
        (neuron, "NEURON_ENGINES"),
        (operators, "OPERATORS"),
        (optimizations, "LOSSES"),
        (engine_options, "PARSER_NAMES"),
        (resource_types, "RESOURCE_SCHEMAS"),
        (resource_types, "AVAILABILITY"),
        (findings, "RULES"),
    )
}


@dataclass(frozen=True)
class Animal:
    name: str
    legs: int
    foods: tuple[str, ...]


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pets.json").write_text(
        '{"rows": [{"name": "cat", "legs": 4, "foods": ["fish", "milk"]}], '
        '"birds": [{"name": "hen", "legs": 2, "foods": ["corn"]}, {"name": "gull", "legs": 2, "foods": ["fish"]}], '
        '"count": 3}'
    )
    monkeypatch.setattr(rows, "_DATA", tmp_path)
    rows._document.cache_clear()  # noqa: SLF001 (it holds files of the catalog)


@pytest.mark.usefixtures("pets")
def test_a_table_has_the_rows_of_its_places_in_order() -> None:
    assert [row.name for row in CatalogTable(Animal, "pets.json", "pets.json#birds").rows] == ["cat", "hen", "gull"]


@pytest.mark.usefixtures("pets")
def test_rows_are_found_by_a_field_by_each_of_its_values_or_by_what_is_made_of_a_row() -> None:
    places = ("pets.json", "pets.json#birds")
    legs, foods = CatalogTable(Animal, *places, key="legs"), CatalogTable(Animal, *places, key="foods")
    assert [row.name for row in legs.having(2)] == ["hen", "gull"]
    assert [row.name for row in foods.having("fish")] == ["cat", "gull"]
    assert CatalogTable(Animal, *places, key=lambda row: (row.name, row.legs))["hen", 2].foods == ("corn",)
    assert legs[2].name == "hen"
    assert (legs.get(3), legs.having(3), 3 in legs, 4 in legs) == (None, (), False, True)
    with pytest.raises(KeyError):
        legs[3]


@pytest.mark.usefixtures("pets")
def test_a_part_that_is_no_list_is_told() -> None:
    with pytest.raises(TypeError, match="no list"):
        _ = CatalogTable(Animal, "pets.json#count").rows


@pytest.mark.parametrize("table", FOUND_BY_KEY.values(), ids=FOUND_BY_KEY)
def test_a_key_by_which_one_row_is_looked_up_has_one_row(table: CatalogTable[object]) -> None:
    assert table.rows
    assert [found for found in table._by_key.values() if len(found) > 1] == []  # noqa: SLF001 (every key)
