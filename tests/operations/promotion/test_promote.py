"""The lock of prod from the tried plan of staging: what is kept, what is derived, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.lock_file import locked_document, read_locked_plan, write_lock
from seatrial.operations.promotion.evidence import TrialEvidence
from seatrial.operations.promotion.promote import check_order, source_of
from seatrial.planner.planner import make_plan
from seatrial.planner.promote import tried_fields
from seatrial.specs.environment import EnvironmentSpec
from seatrial_base.errors import SpecError
from seatrial_load.documents.result import Verdict
from tests.constructs.conftest import level
from tests.operations.promotion.conftest import NOW, URI, evidence_of

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from tests.operations.promotion.conftest import Staged


def bare(plan: Plan, name: str) -> object:
    field = getattr(plan, name)
    return getattr(field, "value", field)


def test_a_copy_serves_as_it_was_tried_and_the_size_is_prods(staged: Staged) -> None:
    tried = staged.lock()
    promoted = staged.promote(evidence_of(staged.result(tried))).plan
    assert {name: bare(promoted, name) for name in tried_fields()} == {
        name: bare(tried, name) for name in tried_fields()
    }
    assert (tried.copy_count.value, tried.gate_concurrency_per_copy.value) == (1, 16)
    assert (promoted.copy_count.value, promoted.gate_concurrency_per_copy.value) == (3, 14)  # 40 over copies of 16
    assert (promoted.instance_count.value, promoted.max_copies) == (3, 4)
    assert promoted.spec_digest == staged.load("prod").digest
    assert promoted.cost.usd_per_hour == pytest.approx(3 * (tried.cost.usd_per_hour or 0))


def test_the_lock_says_where_the_plan_comes_from(staged: Staged) -> None:
    tried = staged.lock()
    lock = staged.promote(evidence_of(staged.result(tried)))
    assert lock.lines == ("no plan is locked yet",)
    write_lock(lock.plan, lock.loaded.path)
    document = locked_document(lock.loaded) or {}
    assert document["promoted"] == {
        "source": "staging",
        "plan_digest": tried.digest,
        "spec_digest": tried.spec_digest,
        "result_uri": URI,
        "report_uri": URI.replace(".json", ".md"),
        "request_id": "request-1",
        "verdict": "pass",
        "ended_at": "2026-11-21T01:01:01+00:00",
        "knee_concurrency_per_copy": 16.0,
    }
    assert read_locked_plan(lock.loaded) == lock.plan
    assert lock.plan.model_copy(update={"promoted": None}).digest == lock.plan.digest


def test_a_second_promotion_of_the_same_plan_changes_nothing(staged: Staged) -> None:
    evidence = evidence_of(staged.result(staged.lock()))
    lock = staged.promote(evidence)
    path = write_lock(lock.plan, lock.loaded.path)
    before = path.read_bytes()
    again = staged.promote(evidence)
    write_lock(again.plan, again.loaded.path)
    assert (again.lines, path.read_bytes()) == (("unchanged",), before)


@pytest.mark.parametrize(
    ("status", "outcome"), [("fail", "the trial failed: too slow"), ("inconclusive", "the trial was inconclusive: too")]
)
def test_a_trial_that_was_not_passed_is_refused(staged: Staged, status: str, outcome: str) -> None:
    verdict = Verdict(status=status, because="too slow", checks=())  # type: ignore[arg-type]  # a column
    found = staged.refused(evidence_of(staged.result(staged.lock(), verdict=verdict)))
    assert list(found) == ["SEA472"]
    assert found["SEA472"].startswith(outcome)


@pytest.mark.parametrize("because", ["trial.mode is off", "it ended with an error: SEA504"])
def test_a_plan_that_was_not_tried_is_refused(staged: Staged, because: str) -> None:
    staged.lock()
    found = staged.refused(TrialEvidence(result=None, missing_because=because))
    assert found == {"SEA471": f"there is no result of a trial in staging: {because}"}


def test_a_verified_deployment_and_one_that_was_not_proven_were_not_tried(staged: Staged) -> None:
    result = staged.result(staged.lock())
    verified = replace(result, request=replace(result.request, manner="verify"))
    assert list(staged.refused(evidence_of(verified))) == ["SEA471"]
    unproven = replace(result, live=replace(result.live, proven=False, because="nothing was asked"))
    assert "nothing was asked" in staged.refused(evidence_of(unproven))["SEA471"]


def test_everything_is_told_at_once(staged: Staged) -> None:
    """A stale lock, another plan deployed and tried, a failed and old trial on a laptop, a guard rail of prod."""
    result = staged.result(staged.lock())
    staged.write(
        slo={"ttft_ms": {"p95": 1500}}, prod={"guard_rails": {"usd_per_hour": 2}, "promotion": {"source": "staging"}}
    )
    changed = replace(
        result,
        request=replace(result.request, plan_digest="other"),
        started_at="2026-01-01T00:00:00+00:00",
        engine_note="local-cpu-random-llama",
        verdict=Verdict(status="fail", because="too slow", checks=()),
    )
    found = staged.refused(evidence_of(changed))
    assert set(found) == {"SEA402", "SEA472", "SEA473", "SEA474", "SEA477", "SEA413"}
    assert found["SEA474"] == "the trial ended 325 days ago; promotion.max_age_days is 30"


def test_other_requests_than_the_trials_are_refused(staged: Staged) -> None:
    staged.write(environments={"prod": {"workload": {"input_tokens": 300, "concurrency": 40}}})
    found = staged.refused(evidence_of(staged.result(staged.lock())))
    assert found == {"SEA475": "workload.input_tokens is 300, the trial's was 256"}


def test_a_stricter_slo_is_held_against_the_measured_levels(staged: Staged) -> None:
    def stricter(bound_ms: float) -> None:
        staged.write(environments={"prod": {"slo": {"ttft_ms": {"p95": bound_ms}}, "scaling": {"max_copies": 4}}})

    stricter(800)
    found = staged.refused(evidence_of(staged.result(staged.lock())))
    assert found["SEA475"].startswith("no measured level meets the SLO of prod: ttft_ms p95 812")
    stricter(900)
    assert staged.promote(evidence_of(staged.result(staged.lock()))).plan.gate_concurrency_per_copy.value == 16


def test_a_rate_beyond_the_planned_one_that_misses_takes_no_proof_away(staged: Staged) -> None:
    """Of an open loop each rate is proof of its own: the planned one, with 16 in flight, held."""
    rate = {"input_tokens": 256, "output_tokens": 256, "requests_per_second": 1, "arrivals": "poisson"}
    staged.write(workload=rate, environments={})
    plan = staged.lock()
    planned = replace(level(16, 410.5), arrival="poisson", offered_requests_per_s=1.0)
    slow = replace(level(40, 420.0), arrival="poisson", offered_requests_per_s=1.25, succeeded=0, errors={"timeout": 9})
    gate = plan.gate_concurrency_per_copy.value
    result = staged.result(plan, levels=(planned, slow))
    assert result.request.load.gate_rate_per_s == 1.0
    assert staged.promote(evidence_of(result)).plan.gate_concurrency_per_copy.value <= gate
    missed = replace(slow, offered_requests_per_s=1.0)
    assert "SEA475" in staged.refused(evidence_of(replace(result, levels=(missed,))))


def test_throughput_is_that_of_as_many_copies(staged: Staged) -> None:
    """One copy was measured at 410.5 tok/s: three give 1231."""
    here = {"workload": {"concurrency": 40}, "scaling": {"max_copies": 3}, "slo": {"output_tok_s": 1200}}
    staged.write(environments={"prod": here})
    evidence = evidence_of(staged.result(staged.lock()))
    assert staged.promote(evidence).plan.copy_count.value == 3
    staged.write(environments={"prod": {**here, "slo": {"output_tok_s": 1300}}})
    assert "output_tok_s" in staged.refused(evidence)["SEA475"]


def test_too_few_copies_are_refused(staged: Staged) -> None:
    staged.write(environments={"prod": {"workload": {"concurrency": 40}, "scaling": {"max_copies": 2}}})
    message = staged.refused(evidence_of(staged.result(staged.lock())))["SEA475"]
    assert message.endswith("up to 16 concurrent requests; the workload needs 3 copies, max_copies is 2")


def test_another_model_or_option_is_refused(staged: Staged) -> None:
    here = {"model": {"revision": "abc"}, "serving": {"overrides": {"enforce_eager": True}}}
    staged.write(environments={"prod": here})
    with pytest.raises(SpecError) as caught:
        staged.promote(evidence_of(staged.result(staged.lock())))
    found = [each.message for each in caught.value.problems]
    assert {each.rule for each in caught.value.problems} == {"SEA476"}
    hint = "give both environments the same model and serving options, and try them in staging"
    assert {each.hint for each in caught.value.problems} == {hint}
    assert "model.revision: None in staging, abc in prod" in found
    assert "serving.properties: option.enforce_eager: absent in staging, true in prod" in found


def test_simulated_hardware_is_accepted_only_when_asked_for_and_recorded(staged: Staged) -> None:
    evidence = evidence_of(staged.result(staged.lock(), engine_note="local-cpu-random-llama"))
    assert list(staged.refused(evidence)) == ["SEA477"]
    promoted = staged.promote(evidence, accept_simulated=True).plan.promoted
    assert promoted is not None
    assert promoted.engine_note == "local-cpu-random-llama"


def test_the_image_comes_from_the_regions_own_registry(staged: Staged) -> None:
    staged.write(prod={"region": "eu-west-1"})
    tried = staged.lock()
    image = staged.promote(evidence_of(staged.result(tried))).plan.image.value
    assert image.tag == tried.image.value.tag
    assert ".ecr.eu-west-1." in image.uri
    assert ".ecr.us-east-1." in tried.image.value.uri


def test_a_newer_release_than_the_planners_choice_changes_nothing(staged: Staged) -> None:
    """What the planner would choose today does not count: the tried values do."""
    tried = staged.lock().model_copy(deep=True)
    older = tried.model_copy(
        update={"max_num_seqs": tried.max_num_seqs.model_copy(update={"value": tried.max_num_seqs.value - 3})}
    )
    write_lock(older, staged.load("staging").path)
    promoted = staged.promote(evidence_of(staged.result(older))).plan
    assert promoted.max_num_seqs.value == tried.max_num_seqs.value - 3


def test_synthesis_refuses_a_plan_without_provenance_where_it_is_required(staged: Staged) -> None:
    target = staged.load("prod")
    write_lock(make_plan(target), target.path)
    with pytest.raises(SpecError) as caught:
        read_locked_plan(target)
    assert [each.rule for each in caught.value.problems] == ["SEA478"]


def test_a_plan_that_was_promoted_from_elsewhere_is_none_of_its_source(staged: Staged) -> None:
    lock = staged.promote(evidence_of(staged.result(staged.lock())))
    assert lock.plan.promoted is not None
    elsewhere = lock.plan.promoted.model_copy(update={"source": "dev"})
    write_lock(lock.plan.model_copy(update={"promoted": elsewhere}), lock.loaded.path)
    with pytest.raises(SpecError) as caught:
        read_locked_plan(lock.loaded)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field) == ("SEA478", "prod.promoted")
    assert problem.message.startswith("the plan was promoted from dev; promotion.required")


def test_a_plan_that_is_deployed_no_more_is_refused_though_its_trial_passed(staged: Staged) -> None:
    evidence = evidence_of(staged.result(staged.lock()))
    found = staged.refused(replace(evidence, deployed_digest="another"))
    assert list(found) == ["SEA473"]
    assert found["SEA473"].startswith("staging runs the plan another, and its lock is ")
    assert staged.promote(replace(evidence, deployed_digest=None)).plan.promoted is not None  # it is not known


@pytest.mark.parametrize("field", ["endpoint", "environment", "plan_digest"])
def test_a_trial_of_something_else_is_no_proof(staged: Staged, field: str) -> None:
    result = staged.result(staged.lock())
    request = replace(result.request, **{field: "another"})  # type: ignore[arg-type]  # a field of text
    evidence = replace(evidence_of(result), result=replace(result, request=request))
    assert list(staged.refused(evidence)) == ["SEA473"]


def place(name: str, source: str | None) -> EnvironmentSpec:
    return EnvironmentSpec.model_validate({"name": name, "region": "us-east-1", "promotion": {"source": source}})


DEV, STAGING, PROD = place("dev", None), place("staging", "dev"), place("prod", "staging")


def test_the_source_is_the_environment_before() -> None:
    assert (source_of(PROD, None), source_of(PROD, "staging"), source_of(DEV, "test")) == ("staging", "staging", "test")


@pytest.mark.parametrize(("target", "given"), [(DEV, None), (PROD, "dev"), (PROD, "prod"), (DEV, "dev")])
def test_another_order_is_refused(target: EnvironmentSpec, given: str | None) -> None:
    with pytest.raises(SpecError, match="SEA470"):
        source_of(target, given)


def test_no_plan_goes_back(staged: Staged) -> None:
    del staged
    with pytest.raises(SpecError, match="SEA470: dev comes before prod"):
        check_order(PROD, DEV, (DEV, STAGING, PROD))
    check_order(STAGING, PROD, (DEV, STAGING, PROD))
    assert NOW.tzinfo is not None
