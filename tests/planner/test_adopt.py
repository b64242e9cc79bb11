"""`seatrial plan --adopt`: hand edits of a lock, validated and taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Adopted
from seatrial.locks.lock_file import write_lock
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.planner.existing import Adoption, adopt
from seatrial.planner.planner import make_plan
from seatrial_base.errors import SpecError
from tests.locks.test_hand_edit import FOREIGN, edit, locked

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

SCALED = {"scaling": {"min_copies": 1, "max_copies": 4}}
TWO_TYPES = {"serving": {"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"]}}


def adopted(loaded: LoadedSpec) -> Adoption:
    adoption = adopt(loaded)
    assert adoption is not None
    write_lock(adoption.plan, loaded.path)
    assert read_locked_plan(loaded) == adoption.plan
    return adoption


def refused(loaded: LoadedSpec) -> list[str]:
    with pytest.raises(SpecError) as caught:
        adopt(loaded)
    return [f"{each.field}: {each.rule}: {each.message}" for each in caught.value.problems]


def test_nothing_was_edited(ask: Ask) -> None:
    assert adopt(locked(ask)) is None


def test_what_depends_on_nothing_leaves_every_other_decision_as_it_was(ask: Ask) -> None:
    loaded = locked(ask)
    planned = make_plan(loaded)
    edit("startup_timeout_s", "value", value=1800)
    adoption = adopted(loaded)
    changed = {name for name in type(planned).model_fields if getattr(planned, name) != getattr(adoption.plan, name)}
    assert changed == {"startup_timeout_s", "warnings", "adopted"}
    assert adoption.recomputed == ()


def test_so_it_is_where_a_missed_slo_was_accepted(ask: Ask) -> None:
    loaded = ask(slo={"tpot_ms": {"p95": 1}})
    planned = make_plan(loaded, accept_slo_miss=True)
    write_lock(planned, loaded.path)
    edit("startup_timeout_s", "value", value=1800)
    adoption = adopted(loaded)
    assert (adoption.recomputed, adoption.plan.curve) == ((), planned.curve)


def test_more_copies_are_priced_and_recorded(ask: Ask) -> None:
    loaded = locked(ask, **SCALED)
    planned = make_plan(loaded)
    edit("copy_count", "value", value=3)
    adoption = adopted(loaded)
    assert dict(adoption.overruled) == {"copy_count": Adopted(planned=planned.copy_count.value, adopted=3)}
    assert adoption.plan.adopted == adoption.overruled
    assert adoption.plan.copy_count.because == "Set by hand in the lock; the planner chose 1."
    assert (adoption.plan.instance_count.value, adoption.plan.gate_concurrency_per_copy.value) == (3, 6)
    assert adoption.plan.cost.usd_per_hour == pytest.approx(3 * (planned.cost.usd_per_hour or 0))
    assert "instance_count: 1 -> 3" in adoption.recomputed
    assert "copy_count was set by hand to 3; the planner chose 1." in adoption.plan.warnings
    assert adoption.plan.digest != planned.digest


def test_another_instance_type_gets_its_own_prediction(ask: Ask) -> None:
    loaded = locked(ask, **TWO_TYPES)
    planned = make_plan(loaded)
    assert planned.instance_type.value == "ml.g5.2xlarge"
    edit("instance_type", "value", value="ml.g5.12xlarge")
    edit("tensor_parallel_degree", "value", value=4)
    plan = adopted(loaded).plan
    alone = make_plan(ask(serving={"instance_types": ["ml.g5.12xlarge"], "overrides": {"tensor_parallel_degree": 4}}))
    assert (plan.accelerators_per_instance, plan.copies_per_instance.value) == (4, 1)
    assert (plan.memory, plan.curve, plan.cost) == (alone.memory, alone.curve, alone.cost)


def test_the_planners_value_put_back_is_no_longer_by_hand(ask: Ask) -> None:
    loaded = locked(ask, **SCALED)
    edit("copy_count", "value", value=3)
    adopted(loaded)
    edit("max_num_seqs", "value", value=8)
    assert set(adopted(loaded).plan.adopted) == {"copy_count", "max_num_seqs"}
    edit("copy_count", "value", value=1)
    edit("max_num_seqs", "value", value=make_plan(loaded).max_num_seqs.value)
    assert adopted(loaded).plan == make_plan(loaded)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        (
            "tensor_parallel_degree",
            3,
            "SEA204: tensor_parallel_degree 3 does not divide the 32 attention heads and 32 KV",
        ),
        ("tensor_parallel_degree", 8, "SEA416: ml.g5.2xlarge: 1 accelerator, too few for degree 8."),
        ("copy_count", 500, "SEA414: 500 exceeds 4, which scaling.max_copies allows (chat.yaml:"),
        ("copy_count", 0, "SEA416: 0 is not between 1 and 1000"),
        ("copies_per_instance", 2, "SEA416: 1 accelerators fit 1 copies of degree 1, not 2"),
        ("max_num_seqs", 100_000, "SEA416: Input should be less than or equal to 65536, not 100000"),
        ("max_model_len", 9000, "SEA208: max_model_len 9,000 exceeds the context of"),
        ("instance_type", "ml.p5.48xlarge", "SEA414: ml.p5.48xlarge is not among ml.g5.2xlarge, which"),
        ("instance_type", "ml.g99.large", "SEA110: not in the catalog: ml.g99.large"),
        ("startup_timeout_s", 7200, "SEA416: 7200 is not between 60 and 3600"),
        ("inference_ami_version", "mine", "SEA416: mine is unknown"),
        ("gate_concurrency_per_copy", 2, "SEA412: can't be set by hand: it comes from the spec"),
    ],
)
def test_what_can_not_hold_is_refused(ask: Ask, field: str, value: object, problem: str) -> None:
    loaded = locked(ask, **SCALED)
    edit(field, "value", value=value)
    assert any(problem in line for line in refused(loaded)), refused(loaded)


def test_every_problem_is_told_at_once(ask: Ask) -> None:
    loaded = locked(ask)
    edit("max_copies", value=9)
    edit("curve", value=[])
    edit("memory_min_mb", "value", value=1)
    assert [line.split(": ")[:2] for line in refused(loaded)] == [
        ["dev.curve", "SEA412"],
        ["dev.max_copies", "SEA412"],
        ["dev.memory_min_mb", "SEA416"],
    ]


def test_an_image_of_another_account_is_refused(ask: Ask) -> None:
    loaded = locked(ask)
    edit("image", "value", "uri", value=FOREIGN)
    assert any("SEA415" in line for line in refused(loaded))


def test_a_stale_lock_must_be_planned_again_first(ask: Ask) -> None:
    locked(ask)
    edit("copy_count", "value", value=2)
    assert any("SEA402" in line for line in refused(ask(**SCALED)))
