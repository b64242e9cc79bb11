"""Where a promoted plan comes from, and whether an environment that requires it has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Promoted
from seatrial.locks.locked_plan import provenance_lines, provenance_problems, unpromoted_problem
from seatrial.specs.environment import PromotionSpec
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

PROMOTED = Promoted(
    source="staging",
    plan_digest="0123456789abcdef",
    spec_digest="fedcba9876543210",
    result_uri="s3://results/passed/chat.json",
    report_uri="s3://results/passed/chat.md",
    request_id="request-1",
    verdict="pass",
    ended_at="2026-11-21T01:01:01+00:00",
    knee_concurrency_per_copy=16.0,
)
COMMAND = "seatrial promote chat.yaml --from staging --to dev --write"


def requiring(ask: Ask, *, required: bool = True) -> LoadedSpec:
    loaded = ask()
    promotion = PromotionSpec(source="staging", required=required)
    return replace(loaded, environment=loaded.environment.model_copy(update={"promotion": promotion}))


@pytest.mark.parametrize(
    ("promoted", "told"), [(None, "was not promoted"), ("test", "was promoted from test"), ("staging", None)]
)
def test_a_plan_of_another_place_than_the_required_one_is_refused(
    ask: Ask, promoted: str | None, told: str | None
) -> None:
    provenance = None if promoted is None else PROMOTED.model_copy(update={"source": promoted})
    problems = provenance_problems(sample_plan(promoted=provenance), requiring(ask))
    assert [(each.rule, each.where, each.field) for each in problems] == (
        [] if told is None else [("SEA478", "chat.lock.json", "dev.promoted")]
    )
    assert all(each.message.startswith(f"the plan {told}; promotion.required") for each in problems)
    assert all(COMMAND in each.hint for each in problems)


def test_where_it_is_not_required_any_plan_is_taken(ask: Ask) -> None:
    loaded = requiring(ask, required=False)
    assert provenance_problems(sample_plan(), loaded) == ()
    assert unpromoted_problem(loaded) is None


def test_no_other_plan_than_a_promoted_one_is_written_where_it_is_required(ask: Ask) -> None:
    problem = unpromoted_problem(requiring(ask))
    assert problem is not None
    assert (problem.rule, problem.where, problem.field) == ("SEA478", "chat.yaml", "dev")
    assert problem.message.startswith("dev takes promoted plans alone (promotion.required")


def test_where_a_promotion_is_required_is_told_with_its_line(ask: Ask) -> None:
    loaded = requiring(ask)
    place = replace(loaded.place, path="environments/dev.yaml", lines={("promotion",): 7, ("promotion", "required"): 9})
    problem = unpromoted_problem(replace(loaded, place=place))
    assert problem is not None
    assert "(promotion.required, environments/dev.yaml:9)" in problem.message
    assert problem.hint == f"deploy the plan to staging, then run `{COMMAND}`"


def test_people_read_which_trial_a_plan_was_promoted_after() -> None:
    assert provenance_lines(None) == ()
    assert provenance_lines(PROMOTED) == (
        "promoted from staging: trial passed, ended 2026-11-21T01:01:01+00:00, knee 16 concurrent requests per copy",
        "plan 0123456789abcdef of spec fedcba9876543210, request request-1",
        "result s3://results/passed/chat.json",
    )
    update = {"knee_concurrency_per_copy": None, "engine_note": "local-cpu", "request_id": None}
    first, second, _ = provenance_lines(PROMOTED.model_copy(update=update))
    assert first.endswith("no knee; simulated hardware: local-cpu")
    assert second.endswith("request unknown")
