"""What would be created of a plan, and each rail that it breaks: a plan within a rail passes, one beyond it never."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Image
from seatrial.locks.guard_rails import Beside, broken_rails, created_fleets, created_problems, limit_problems
from tests.sample_plan import COST, decided, image_of, sample_plan

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference"
TAG = "0.36.0-lmi27.0.0-cu130"
DIGEST = f"sha256:{64 * '0'}"
OTHER = Beside(guest_copies=1)


def small(**fields: object) -> dict[str, object]:
    """Return the fields of a plan of one copy on one instance."""
    return {"max_copies": 1, "max_instances": 1, **fields}


@pytest.mark.parametrize(
    ("fields", "spec_most", "copies", "instances"),
    [
        pytest.param({}, 1, 1, 1, id="one copy on one instance"),
        pytest.param({"max_copies": 3}, 1, 3, 3, id="the plan's most copies"),
        pytest.param({"copy_count": decided(3)}, 1, 3, 3, id="the plan's copies"),
        pytest.param({}, 3, 3, 3, id="the spec's most copies"),
        pytest.param({"max_copies": 9, "copies_per_instance": decided(4)}, 1, 9, 3, id="four copies on an instance"),
        pytest.param({"max_instances": 5}, 1, 1, 5, id="the plan's most instances"),
        pytest.param({"instance_count": decided(5)}, 1, 1, 5, id="the plan's instances"),
        pytest.param({"copies_per_instance": decided(0)}, 2, 2, 2, id="a lock that says no copy fits"),
    ],
)
def test_as_many_are_created_as_plan_or_spec_allow_and_more_in_an_update(
    ask: Ask, fields: dict[str, object], spec_most: int, copies: int, instances: int
) -> None:
    loaded = ask(scaling={"max_copies": spec_most})
    (fleet,) = created_fleets(sample_plan(**small(**fields)), loaded)
    assert (fleet.copies, fleet.instances, fleet.updating) == (copies, instances, instances + 1)


def test_further_models_stand_on_instances_of_their_own_count(ask: Ask) -> None:
    (fleet,) = created_fleets(sample_plan(), ask(), Beside(instances=6))
    assert (fleet.instances, fleet.updating) == (6, 6)


def test_a_plan_within_every_rail_breaks_none(ask: Ask) -> None:
    rails = {
        "engines": ["vllm", "lmi"],
        "instance_types": ["ml.g6.2xlarge", "ml.g5.2xlarge"],
        "max_copies": 1,
        "usd_per_hour": 3.03,
        "usd_per_million_output_tokens": 1.2,
        "blended_usd_per_million_tokens": 0.3,
    }
    loaded = ask(rails=rails, serving={})
    assert list(broken_rails(sample_plan(**small()), loaded)) == []


@pytest.mark.parametrize(
    ("rails", "rail", "path", "field"),
    [
        ({"engines": ["vllm"]}, "engines", ("serving", "engine"), "engine"),
        ({"instance_types": ["ml.g6.2xlarge"]}, "instance_types", ("scaling", "max_copies"), "instance_type"),
        ({"usd_per_hour": 3.02}, "usd_per_hour", ("scaling", "max_copies"), "cost.usd_per_hour"),
        (
            {"usd_per_million_output_tokens": 1.19},
            "usd_per_million_output_tokens",
            ("budget", "usd_per_million_output_tokens"),
            "cost.usd_per_million_output_tokens",
        ),
        (
            {"blended_usd_per_million_tokens": 0.29},
            "blended_usd_per_million_tokens",
            ("budget", "blended_usd_per_million_tokens"),
            "cost.blended_usd_per_million_tokens",
        ),
    ],
)
def test_each_broken_rail_is_told_with_the_fields_of_spec_and_plan(
    ask: Ask, rails: dict[str, object], rail: str, path: tuple[str, ...], field: str
) -> None:
    loaded = ask(rails=rails, serving={})
    (broken,) = broken_rails(sample_plan(**small()), loaded)
    assert (broken.rail, broken.path, broken.field) == (rail, path, field)
    (problem,) = created_problems(sample_plan(**small()), loaded)
    assert (problem.rule, problem.field, bool(problem.hint)) == ("SEA111", ".".join(path), True)
    (locked,) = limit_problems(sample_plan(**small()), loaded)
    assert (locked.rule, locked.field) == ("SEA413", f"dev.{field}")


@pytest.mark.parametrize(
    ("fields", "beside", "path", "field", "message"),
    [
        ({"max_copies": 3}, Beside(), ("scaling", "max_copies"), "max_copies", "3 copies exceed 2"),
        ({"copy_count": decided(3)}, Beside(), ("scaling", "max_copies"), "copy_count", "3 copies exceed 2"),
        (
            {"max_copies": 2},
            OTHER,
            ("hosting", "more_models"),
            "max_copies",
            "3 copies of all models and variants exceed 2",
        ),
        (
            {"copy_count": decided(2)},
            OTHER,
            ("hosting", "more_models"),
            "max_copies",
            "3 copies of all models and variants exceed 2",
        ),
    ],
)
def test_copies_beyond_the_rail_are_told_where_they_are_asked_for(
    ask: Ask, fields: dict[str, object], beside: Beside, path: tuple[str, ...], field: str, message: str
) -> None:
    loaded = ask(rails={"max_copies": 2}, scaling={"max_copies": 1}, serving={})
    (broken,) = broken_rails(sample_plan(**small(**fields)), loaded, beside)
    assert (broken.rail, broken.path, broken.field, broken.message) == ("max_copies", path, field, message)


@pytest.mark.parametrize(("bound", "broken"), [(1.19, ["usd_per_million_output_tokens"]), (1.2, [])])
def test_the_price_of_tokens_is_that_at_list_prices_of_all_instances(ask: Ask, bound: float, broken: list[str]) -> None:
    """Two instances cost $3.03; the plan says half of it, and half of $1.20 for a million tokens."""
    half = COST.model_copy(update={"usd_per_hour": 1.515, "usd_per_million_output_tokens": 0.6})
    plan = sample_plan(**small(cost=half, instance_count=decided(2)))
    loaded = ask(rails={"usd_per_million_output_tokens": bound}, serving={})
    assert [each.rail for each in broken_rails(plan, loaded)] == broken


@pytest.mark.parametrize(("more", "is_beyond"), [(0.5e-4, False), (2e-4, True)])
def test_a_price_is_beyond_its_bound_by_more_than_locks_round(ask: Ask, more: float, *, is_beyond: bool) -> None:
    cost = COST.model_copy(update={"usd_per_million_output_tokens": 1.2 + more})
    loaded = ask(budget={"usd_per_million_output_tokens": 1.2})
    found = [each.field for each in limit_problems(sample_plan(**small(cost=cost)), loaded)]
    assert found == (["dev.cost.usd_per_million_output_tokens"] if is_beyond else [])


@pytest.mark.parametrize(
    ("image", "is_known"),
    [
        pytest.param(image_of(f"{LMI}:{TAG}"), True, id="the tag"),
        pytest.param(Image(uri=f"{LMI}@{DIGEST}", repository="djl-inference", tag=TAG), True, id="the digest"),
        pytest.param(Image(uri=f"{LMI}:{TAG}@{DIGEST}", repository="djl-inference", tag=TAG), True, id="both"),
        pytest.param(Image(uri=f"{LMI}:other@{DIGEST}", repository="djl-inference", tag=TAG), False, id="another tag"),
        pytest.param(Image(uri=f"{LMI}:{TAG}", repository="other", tag=TAG), False, id="another repository"),
    ],
)
def test_an_image_is_named_the_same_in_all_its_parts(ask: Ask, image: Image, *, is_known: bool) -> None:
    found = limit_problems(sample_plan(**small(image=decided(image))), ask())
    assert [(each.rule, each.field) for each in found] == ([] if is_known else [("SEA415", "dev.image")])


def test_copies_of_several_variants_count_together_where_the_most_are_asked_for(ask: Ask) -> None:
    variants = [{"name": "a"}, {"name": "b", "instance_count": 3, "image": f"{LMI}:a"}]
    loaded = ask(
        rails={"max_copies": 4},
        scaling={"max_copies": 1},
        hosting={"kind": "single_model", "variants": variants},
        trial={"mode": "off"},
        serving={},
    )
    plan = sample_plan(**small(instance_count=decided(2), copy_count=decided(2)))
    (broken,) = broken_rails(plan, loaded)
    assert (broken.path, broken.field) == (("hosting", "variants", 1), "max_copies")
    assert broken.message == "5 copies of all models and variants exceed 4"


def test_where_plan_and_most_copies_agree_the_most_are_named(ask: Ask) -> None:
    loaded = ask(rails={"max_copies": 2}, scaling={"max_copies": 1}, serving={})
    (broken,) = broken_rails(sample_plan(**small(copy_count=decided(3), max_copies=3)), loaded)
    assert broken.field == "max_copies"


def test_beside_a_shadow_an_update_starts_a_second_fleet_of_both(ask: Ask) -> None:
    loaded = ask(
        scaling={"max_copies": 3},
        hosting={"kind": "single_model", "shadow": {"image": f"{LMI}:a", "instance_count": 2}},
        trial={"mode": "off"},
        serving={},
    )
    own, shadow = created_fleets(sample_plan(**small(max_copies=3)), loaded)
    assert (own.path, own.instances, own.updating) == (("scaling", "max_copies"), 3, 6)
    assert (shadow.path, shadow.instances, shadow.updating) == (("hosting", "shadow"), 2, 4)


def test_a_fleet_without_a_price_is_the_dearest(ask: Ask) -> None:
    variants = [{"name": "a", "instance_count": 9}, {"name": "b", "spec": "other"}, {"name": "c", "image": f"{LMI}:a"}]
    loaded = ask(
        rails={"usd_per_hour": 1e9},
        scaling={"max_copies": 1},
        hosting={"kind": "single_model", "variants": variants},
        trial={"mode": "off"},
        serving={},
    )
    unpriced = sample_plan(**small(instance_type=decided("ml.p5e.48xlarge")))
    beside = Beside(variants={"other": (loaded.endpoint, unpriced)})
    (broken,) = broken_rails(sample_plan(**small()), loaded, beside)
    assert (broken.path, broken.message.startswith("an unknown price")) == (("hosting", "variants", 1), True)


@pytest.mark.parametrize(("bound", "broken"), [(18.18, []), (18.17, [("hosting", "variants", 1)])])
def test_the_dearest_fleet_breaks_the_rail_and_instances_are_told_by_type(
    ask: Ask, bound: float, broken: list[tuple[object, ...]]
) -> None:
    """Six instances of a variant and six of its update: 12 x $1.515."""
    variants = [{"name": "a", "instance_count": 1}, {"name": "b", "instance_count": 5, "image": f"{LMI}:a"}]
    loaded = ask(
        rails={"usd_per_hour": bound},
        scaling={"max_copies": 1},
        hosting={"kind": "single_model", "variants": variants},
        trial={"mode": "off"},
        serving={},
    )
    found = list(broken_rails(sample_plan(**small()), loaded))
    assert [each.path for each in found] == broken
    for each in found:
        assert each.message == (
            "$18.18 per hour at list prices for 6 x ml.g5.2xlarge and 6 more in an update exceeds $18.17"
        )
