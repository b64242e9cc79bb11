from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.catalog import engines

if TYPE_CHECKING:
    from seatrial.catalog.engines import Family


@pytest.mark.parametrize(
    ("family", "version", "row", "fitted"),
    [
        ("tgi", "1.1.0", "tgi-1.x", True),
        ("tgi", "3.3.6", "tgi", False),
        ("lmi", "0.36.0-lmi27.0.0", "lmi", False),
        ("lmi", "any-tag", "lmi", False),
    ],
)
def test_a_version_takes_the_row_of_its_longest_prefix(family: Family, version: str, row: str, *, fitted: bool) -> None:
    found = engines.find(family, version)

    assert (found.id, found.fitted) == (row, fitted)


def test_an_unfitted_engine_borrows_the_fitted_constants() -> None:
    assert engines.find("lmi", "27").performance == engines.find("tgi", "1.1.0").performance


def test_the_constants_say_where_they_come_from() -> None:
    constants = engines.find("tgi", "1.1.0").performance

    assert constants.source.startswith("fitted on 40 published cells")
    assert constants.reserve_bytes == 2_840_000_000
