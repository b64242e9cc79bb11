from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.report.terminal.plan import SECTIONS, plan_view

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from tests.report.terminal.conftest import Shown

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("width", "encoding", "golden"), [(80, "utf-8", "plan.80.txt"), (120, "ascii", "plan.120.ascii.txt")]
)
def test_the_whole_plan_is_the_golden_file(
    width: int, encoding: str, golden: str, plan: Plan, loaded: LoadedSpec, shown: Shown
) -> None:
    path, text = GOLDEN / golden, shown(plan_view(plan, loaded, SECTIONS), width=width, encoding=encoding)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text.replace(plan.digest, "DIGEST"), encoding="utf-8")
    assert text == path.read_text(encoding="utf-8").replace("DIGEST", plan.digest)


@pytest.mark.parametrize("width", [20, 39, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int, plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    lines = shown(plan_view(plan, loaded, SECTIONS), width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_a_plan_without_levels_alternatives_or_price_says_so(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    cost = plan.cost.model_copy(update={"usd_per_hour": None})
    bare = plan.model_copy(update={"curve": (), "pareto": (), "rejected": (), "warnings": (), "cost": cost})
    text = shown(plan_view(bare, loaded, SECTIONS))
    assert "The plan has no levels.\n" in text
    assert "Cost unknown: this instance type has no known price.\n" in text
    assert "Pareto" not in text
    assert "rejected" not in text
    assert "warning" not in text


def test_where_the_band_comes_from_is_told_once(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    repeated = plan.model_copy(update={"warnings": (plan.band.because, "Something else.")})
    text = shown(plan_view(repeated, loaded, SECTIONS), width=120)
    assert text.count(plan.band.because) == 1
    assert text.endswith("\nwarning: Something else.\n")


def test_brackets_and_colons_in_a_reason_are_no_markup(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    engine = plan.engine.model_copy(update={"because": "It [/bold] reads :smile: as it is [red]."})
    text = shown(plan_view(plan.model_copy(update={"engine": engine}), loaded, SECTIONS), width=120)
    assert "It [/bold] reads :smile: as it is [red].\n" in text
