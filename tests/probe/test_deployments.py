"""What a probe measures, by default and as asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import SaferDeployment
from seatrial.probe.pinned import ProbedHardware, deployments_to_probe, probed_as, read_candidate
from seatrial_base.errors import SpecError
from tests.probe.conftest import CHEAP, DEAR, LEVEL

if TYPE_CHECKING:
    from tests.probe.conftest import Locked

OTHER = ProbedHardware("ml.g6e.2xlarge", 1)


def dearer(hardware: ProbedHardware) -> SaferDeployment:
    """A deployment that more likely meets the SLO than the plan."""
    return SaferDeployment(
        instance_type=hardware.instance_type,
        tensor_parallel_degree=hardware.tensor_parallel_degree,
        copy_count=3,
        instance_count=3,
        usd_per_hour=9.0,
        more_usd_per_hour=3.0,
        concurrency_per_copy=6,
        chance=0.99,
    )


def test_the_plan_names_candidate_and_level(locked: Locked) -> None:
    plan, candidate = deployments_to_probe(locked.plan, None, None)
    probe = locked.plan.probe
    assert probe is not None
    assert (plan.role, plan.hardware) == ("plan", ProbedHardware(DEAR, locked.plan.tensor_parallel_degree.value))
    assert plan.concurrency_per_copy == locked.plan.gate_concurrency_per_copy.value
    assert (candidate.role, candidate.hardware) == ("candidate", ProbedHardware(CHEAP, probe.tensor_parallel_degree))
    assert (candidate.concurrency_per_copy, candidate.copy_count) == (LEVEL, probe.copy_count)


def test_a_plan_that_is_not_in_doubt_has_nothing_to_probe(certain: Locked) -> None:
    assert deployments_to_probe(certain.plan, None, None) == ()


def test_a_level_alone_measures_the_plan(certain: Locked) -> None:
    (only,) = deployments_to_probe(certain.plan, None, 7)
    assert (only.role, only.concurrency_per_copy) == ("plan", 7)


def test_the_plan_as_candidate_is_measured_once(certain: Locked) -> None:
    assert [each.role for each in deployments_to_probe(certain.plan, ProbedHardware.of(certain.plan), None)] == ["plan"]


def test_another_candidate_takes_the_level_and_the_copies_of_the_plan(locked: Locked) -> None:
    probed = probed_as(locked.plan, OTHER, None)
    assert probed.role == "candidate"
    assert probed.concurrency_per_copy == locked.plan.gate_concurrency_per_copy.value
    assert probed.copy_count == locked.plan.copy_count.value


def test_the_dearer_side_has_the_level_and_the_copies_that_the_plan_has_for_it(locked: Locked) -> None:
    probed = probed_as(locked.plan.model_copy(update={"safer": dearer(OTHER)}), OTHER, None)
    assert (probed.copy_count, probed.concurrency_per_copy) == (3, 6)


def test_more_copies_of_the_plan_do_not_change_how_the_plan_is_measured(certain: Locked) -> None:
    planned = ProbedHardware.of(certain.plan)
    probed = probed_as(certain.plan.model_copy(update={"safer": dearer(planned)}), planned, None)
    assert probed.concurrency_per_copy == certain.plan.gate_concurrency_per_copy.value


def test_a_level_that_is_asked_for_is_that_of_both(locked: Locked) -> None:
    assert [each.concurrency_per_copy for each in deployments_to_probe(locked.plan, OTHER, 5)] == [5, 5]


def test_a_candidate_is_an_instance_type_with_its_degree() -> None:
    assert read_candidate("ml.g6e.12xlarge:4") == ProbedHardware("ml.g6e.12xlarge", 4)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "g5.2xlarge:1",
        "ml.g5.2xlarge",
        "ml.g5.2xlarge:",
        "ml.g5.2xlarge:0",
        "ml.g5.2xlarge:-1",
        "ml.g5.2xlarge:1.0",
        "ml.g5.2xlarge:1:2",
        "ml.g5.2xlarge:1025",
        "ml.g5.2xlarge:\u0663",
        "ml.g5.2xlarge:1\n",
        "x" * 9999,
    ],
)
def test_what_is_no_candidate_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_candidate(text)
    (problem,) = refused.value.problems
    assert (problem.rule, problem.field) == ("SEA524", "--candidate")
    assert len(problem.message) < 200
