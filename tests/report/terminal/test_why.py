from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.comparison import DegreeVerdict
from seatrial.report.terminal.plan import why_view

if TYPE_CHECKING:
    from tests.report.terminal.conftest import Shown


def verdict(degree: int, stage: str, because: str, *, price: float | None = None, won: bool = False) -> DegreeVerdict:
    return DegreeVerdict(
        instance_type="ml.g5.12xlarge",
        tensor_parallel_degree=degree,
        won=won,
        stage=stage,
        because=because,
        usd_per_hour=price,
        output_tok_s=None if price is None else 1234.5,
    )


MEMORY = verdict(1, "memory", "Each of its accelerators holds 22.4 GiB, and one sequence needs 1.2 GiB more.")
COST = verdict(4, "ranking", "It keeps every objective and costs $7.09 per hour.", price=7.09)


def test_every_degree_of_a_type_that_lost_has_its_reason(shown: Shown) -> None:
    assert (
        shown(why_view("ml.g5.12xlarge", (MEMORY, COST)))
        == """\
ml.g5.12xlarge is not the plan
degree    $/h  tok/s  verdict        because
     1                fails: memory  Each of its accelerators holds 22.4 GiB,
                                     and one sequence needs 1.2 GiB more.
     4  $7.09  1,234  outdone        It keeps every objective and costs $7.09
                                     per hour.
"""
    )


def test_the_chosen_type_is_named_with_its_degree(shown: Shown) -> None:
    won = verdict(2, "chosen", "It has the lowest cost.", price=7.09, won=True)
    lines = shown(why_view("ml.g5.12xlarge", (MEMORY, won))).splitlines()
    assert lines[0] == "ml.g5.12xlarge is the plan, with degree 2"
    assert "chosen" in lines[-1]
