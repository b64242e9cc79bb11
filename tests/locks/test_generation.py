"""What an endpoint in service can't change makes another endpoint, and no digest changes for the first one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Plan
from seatrial.locks.changes import count_generation, generation_of
from seatrial.locks.lock_file import write_lock
from seatrial.locks.locked_plan import freshness_of
from seatrial.planner.existing import adopt
from seatrial.planner.planner import make_plan
from tests.locks.test_hand_edit import edit, locked
from tests.sample_plan import decided, sample_plan

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d"
LATER = "a second endpoint is made, tried, and then takes the traffic"


def written(plan: Plan) -> dict[str, object]:
    document: dict[str, object] = json.loads(plan.model_dump_json())
    return document


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("instance_type", decided("ml.g6.2xlarge"), "instance type changes from ml.g5.2xlarge to ml.g6.2xlarge"),
        ("tensor_parallel_degree", decided(4), "tensor parallel degree changes from 1 to 4"),
        ("inference_ami_version", decided("al2023"), "inference AMI changes from none to al2023"),
        ("volume_size_gb", decided(60), "volume size changes from none to 60"),
        ("hosting_kind", decided("single_model"), "kind of endpoint changes from inference_component to single_model"),
        ("volume_kms_key_arn", KEY, f"volume key changes from none to {KEY}"),
    ],
)
@pytest.mark.parametrize("before", [1, 7])
def test_what_is_not_changed_in_place_is_another_generation(field: str, value: object, line: str, before: int) -> None:
    old = sample_plan(inference_ami_version=decided(None), tensor_parallel_degree=decided(1), generation=before)
    new, said = count_generation(written(old), old.model_copy(update={field: value, "generation": 1}))
    assert (new.generation, said) == (before + 1, (f"{line}: {LATER}",))


def test_several_changes_are_one_generation() -> None:
    old = sample_plan()
    update = {"instance_type": decided("ml.g6.12xlarge"), "tensor_parallel_degree": decided(8)}
    new, (line,) = count_generation(written(old), old.model_copy(update=update))
    assert new.generation == 2
    assert line.count(" changes from ") == 2


def test_any_other_change_keeps_the_generation() -> None:
    old = sample_plan(generation=3)
    new, said = count_generation(written(old), sample_plan(copy_count=decided(9), max_copies=9))
    assert (new.generation, said) == (3, ())


def test_the_first_lock_is_the_first_generation() -> None:
    assert count_generation(None, sample_plan()) == (sample_plan(), ())


@pytest.mark.parametrize("wrong", [0, -1, "2", None, 1.5, []])
def test_a_generation_that_is_no_count_is_the_first(wrong: object) -> None:
    assert generation_of({"generation": wrong}) == 1
    assert generation_of(None) == 1


def test_the_first_generation_is_not_written_so_that_no_digest_changes() -> None:
    plain = sample_plan()
    assert {"generation", "volume_size_gb", "volume_kms_key_arn"}.isdisjoint(written(plain))
    assert Plan.model_validate(written(plain)) == plain
    second = plain.model_copy(update={"generation": 2})
    assert written(second)["generation"] == 2
    assert second.digest != plain.digest
    assert Plan.model_validate(written(second)) == second


def test_a_hand_edit_counts_too(ask: Ask) -> None:
    loaded = locked(ask, serving={"instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"]}, scaling={"max_copies": 4})
    edit("instance_type", "value", value="ml.g5.12xlarge")
    adoption = adopt(loaded)
    assert adoption is not None
    assert adoption.plan.generation == 2
    assert "generation: 1 -> 2" in adoption.recomputed
    write_lock(adoption.plan, loaded.path)
    edit("startup_timeout_s", "value", value=1800)
    again = adopt(loaded)
    assert again is not None
    assert again.plan.generation == 2


def test_another_kind_makes_the_lock_stale_and_is_another_generation(ask: Ask) -> None:
    said: list[object] = []
    kinds: list[dict[str, object]] = [{}, {}, {"asynchronous": {"output_s3_uri": "s3://answers/a/"}}, {}]
    before: dict[str, object] | None = None
    for index, more in enumerate(kinds):
        hosting = {"kind": "single_model", **more} if index else {}
        loaded = ask(hosting=hosting, trial={"mode": "off"})
        assert freshness_of(loaded).state == ("stale" if index else "missing")
        plan, lines = count_generation(before, make_plan(loaded))
        write_lock(plan, loaded.path)
        before = written(plan)
        said.append((plan.generation, plan.hosting_kind and plan.hosting_kind.value, len(lines)))
    assert said == [(1, None, 0), (2, "single_model", 1), (3, "asynchronous", 1), (4, "single_model", 1)]


def test_the_generation_itself_is_not_set_by_hand(ask: Ask) -> None:
    loaded = locked(ask)
    edit("generation", value=5)
    assert freshness_of(loaded).state == "edited"


def test_another_key_makes_the_lock_of_a_volume_stale(ask: Ask) -> None:
    loaded = ask(kms_key_arn=KEY)
    sized = make_plan(loaded).model_copy(update={"volume_size_gb": decided(60), "volume_kms_key_arn": KEY})
    write_lock(sized, loaded.path)
    assert freshness_of(loaded).state == "fresh"
    for other in (KEY.replace("0a", "0b"), None):
        found = freshness_of(ask(kms_key_arn=other))
        (problem,) = found.problems
        assert (found.state, problem.rule, problem.field) == ("stale", "SEA402", "dev.volume_kms_key_arn")


def test_another_key_changes_nothing_for_local_nvme(ask: Ask) -> None:
    locked(ask)
    assert freshness_of(ask(kms_key_arn=KEY)).state == "fresh"
