"""Since Python 3.12 `sum` of floats makes up for what it rounds away: what decides adds with `math.fsum` instead."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.deployment.traffic import choose_traffic
from seatrial.locks.guard_rails import rail_problems
from seatrial.planner.planner import make_plan
from seatrial.planner.tables.steady import product_form
from seatrial.quality.comparison import compare_quality
from seatrial.quality.pairs import pairs_of
from seatrial_load.knee import best_bend
from seatrial_load.measure.curves import Reading
from tests.planner.test_calibrate import calibrated
from tests.quality.conftest import measured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.planner.conftest import Ask

ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("seatrial", "packages/seatrial-base", "packages/seatrial-load"))


@pytest.fixture
def float_sums(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return where our code adds floats with `sum`."""
    found: set[str] = set()
    add = builtins.sum

    def watched(numbers: Iterable[Any], /, start: Any = 0) -> Any:  # noqa: ANN401 (as of the builtin)
        held = list(numbers)
        caller = sys._getframe(1)  # noqa: SLF001 (who calls)
        if caller.f_code.co_filename.startswith(OURS) and any(isinstance(each, float) for each in held):
            found.add(f"{Path(caller.f_code.co_filename).relative_to(ROOT)}:{caller.f_lineno}")
        return add(held, start)

    monkeypatch.setattr(builtins, "sum", watched)
    return found


def test_of_a_plan(ask: Ask, float_sums: set[str]) -> None:
    loaded = ask(
        workload={"input_tokens": 256, "output_tokens": 256, "concurrency": 300},
        serving={"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 4}},
        scaling={"min_copies": 2, "max_copies": 8},
        rails={"usd_per_hour": 1000.0},
    )
    plan = make_plan(loaded)
    assert (plan.tensor_parallel_degree.value, rail_problems(plan, loaded), float_sums) == (4, (), set())


def test_of_instances_that_share_requests_by_chance(float_sums: set[str]) -> None:
    product_form.__wrapped__((10.1, 19.7, 28.3, 36.1), 4, 3)
    assert float_sums == set()


def test_of_a_calibration(ask: Ask, float_sums: set[str]) -> None:
    calibrated(ask(), {16: 0.8, 1: 0.7})
    assert float_sums == set()


def test_of_a_comparison(float_sums: set[str]) -> None:
    a, b = measured("none", 30), measured("awq", 25)
    compare_quality(pairs_of(a.prompts, a.answers, b.answers), 40)
    assert float_sums == set()


def test_of_a_knee(float_sums: set[str]) -> None:
    best_bend([Reading(load=load, value=min(load, 11.5) * 30.1) for load in (1, 2, 4, 8, 16, 32)])
    assert float_sums == set()


def test_of_a_split(float_sums: set[str]) -> None:
    assert (choose_traffic({"a": 0.1, "b": 0.2}, 0.5), float_sums) == ("b", set())
