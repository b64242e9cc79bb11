"""The lock of prod from the tried plan of staging: what is kept, what is derived, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.evidence import with_evidence
from seatrial.documents.plan import tried_fields
from seatrial.locks.lock_file import locked_document, read_lock, write_lock
from seatrial.locks.locked_plan import freshness_of, read_locked_plan
from seatrial.operations import promotion
from seatrial.operations.promotion import TrialEvidence, check_order, source_of
from seatrial.planner.planner import make_plan
from seatrial.specs.environment import EMBEDDED_ACCOUNT, EnvironmentSpec
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import PlanError, RenderError, SpecError
from seatrial_load.documents.result import Verdict
from tests.constructs.conftest import level
from tests.operations.promotion.conftest import NOW, REQUIRED, URI, evidence_of

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_base.errors import SeatrialError
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
        "promoted_at": NOW.isoformat(),
    }
    assert read_lock(lock_path(lock.loaded.path)).evidence == {}
    write_lock(lock.plan, lock.loaded.path, lock.evidence)
    assert read_lock(lock_path(lock.loaded.path)).evidence == {"prod": lock.evidence}
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


def test_without_a_lock_that_can_be_read_there_is_nothing_to_promote(staged: Staged) -> None:
    evidence = evidence_of(staged.result(staged.lock()))
    (path,) = staged.folder.glob("*.lock.json")
    path.write_text("{}", encoding="utf-8")
    assert list(staged.refused(evidence)) == ["SEA403"]
    path.unlink()
    assert list(staged.refused(evidence)) == ["SEA401"]


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


@pytest.mark.parametrize(
    ("field", "here", "was"),
    [
        ("input_tokens", 300, 256),
        ("output_tokens", 300, 256),
        ("input_tokens_stddev", 9.0, 0.0),
        ("output_tokens_stddev", 9.0, 0.0),
        ("shared_prefix_tokens", 64, 0),
    ],
)
def test_each_length_of_the_requests_is_compared(staged: Staged, field: str, here: float, was: float) -> None:
    evidence = evidence_of(staged.result(staged.lock()))
    staged.write(environments={"prod": {"workload": {field: here, "concurrency": 40}}})
    assert staged.refused(evidence) == {"SEA475": f"workload.{field} is {here}, the trial's was {was}"}


def test_other_conversations_and_times_of_the_requests_are_refused(staged: Staged) -> None:
    result = staged.result(staged.lock())
    for field, value, told in (
        ("turns", 3, "workload has other conversations than the trial's"),
        ("turn_delay_s", 2.0, "workload has other conversations than the trial's"),
        ("lengths", ((8, 9),), "workload.dataset has other lengths than the trial's"),
        ("times_s", (1.0, 2.0), "workload.dataset has other times than the trial's"),
    ):
        workload = replace(result.request.workload, **{field: value})  # type: ignore[arg-type]  # a field
        other = replace(result, request=replace(result.request, workload=workload))
        assert staged.refused(evidence_of(other)) == {"SEA475": told}


@pytest.mark.parametrize(("days", "rules"), [(30, []), (31, ["SEA474"])])
def test_a_trial_is_too_old_on_the_day_after_its_last(staged: Staged, days: int, rules: list[str]) -> None:
    ended = NOW - timedelta(days=days)
    result = replace(staged.result(staged.lock()), started_at=ended.isoformat(), duration_s=0.0)
    if rules:
        assert list(staged.refused(evidence_of(result))) == rules
    else:
        assert staged.promote(evidence_of(result)).plan.promoted is not None


def test_a_stricter_slo_is_held_against_the_measured_levels(staged: Staged) -> None:
    def stricter(bound_ms: float) -> None:
        staged.write(environments={"prod": {"slo": {"ttft_ms": {"p95": bound_ms}}, "scaling": {"max_copies": 4}}})

    stricter(800)
    found = staged.refused(evidence_of(staged.result(staged.lock())))
    assert found["SEA475"].startswith("no measured level meets the SLO of prod: ttft_ms p95 812")
    stricter(900)
    assert staged.promote(evidence_of(staged.result(staged.lock()))).plan.gate_concurrency_per_copy.value == 16


def test_where_no_level_meets_the_slo_the_lowest_tells_by_how_much(staged: Staged) -> None:
    staged.write(environments={"prod": {"slo": {"ttft_ms": {"p95": 800}}, "scaling": {"max_copies": 4}}})
    slow = level(8, 250.0)
    assert slow.ttft_ms is not None
    slower = replace(level(16, 250.0), ttft_ms=replace(slow.ttft_ms, p95=950.0))
    result = staged.result(staged.lock(), levels=(slower, slow))
    assert staged.refused(evidence_of(result))["SEA475"].endswith("812.2 ms exceeds 800.0 ms at concurrency 8 per copy")
    rates = (replace(slow, offered_requests_per_s=0.5), replace(slower, offered_requests_per_s=1.0))
    message = staged.refused(evidence_of(replace(result, levels=rates)))["SEA475"]
    assert "812.2 ms exceeds 800.0 ms" in message
    assert "950.0 ms" not in message
    assert staged.refused(evidence_of(replace(result, levels=())))["SEA475"].endswith("measured levels: none")


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


@pytest.mark.parametrize(("live", "tok_s"), [(None, 410.5), (1, 410.5), (3, 410.5 / 3)])
def test_throughput_is_of_the_copies_that_were_live(staged: Staged, live: int | None, tok_s: float) -> None:
    """Those of the request, where it is not known how many were."""

    def refusals(bound_tok_s: float) -> list[str]:
        here = {"workload": {"concurrency": 40}, "scaling": {"max_copies": 3}, "slo": {"output_tok_s": bound_tok_s}}
        staged.write(environments={"prod": here})
        result = staged.result(staged.lock())
        evidence = evidence_of(replace(result, live=replace(result.live, copy_count=live)))
        try:
            staged.promote(evidence)
        except SpecError as refused:
            return [each.message for each in refused.problems if "output_tok_s" in each.message]
        return []

    assert refusals(3 * tok_s - 1) == []
    assert refusals(3 * tok_s + 1) != []


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


@pytest.mark.parametrize(
    ("engine", "messages"), [("auto", []), ("lmi", []), ("tgi", ["serving.engine: lmi in staging, tgi in prod"])]
)
def test_another_engine_than_the_tried_one_is_refused(staged: Staged, engine: str, messages: list[str]) -> None:
    staged.write(environments={"prod": {"serving": {"engine": engine}}})
    evidence = evidence_of(staged.result(staged.lock()))
    if not messages:
        staged.promote(evidence)
        return
    assert [staged.refused(evidence)["SEA476"]] == messages


@pytest.mark.parametrize(
    ("field", "here", "told"),
    [
        ("hub_id", "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-chat-hf in staging, meta-llama/Llama-2-7b-hf"),
        ("revision", "abc", "None in staging, abc"),
        ("trust_remote_code", True, "False in staging, True"),
    ],
)
def test_what_tells_the_model_is_compared_field_by_field(staged: Staged, field: str, here: object, told: str) -> None:
    evidence = evidence_of(staged.result(staged.lock()))
    staged.write(environments={"prod": {"model": {field: here}}})
    staged.lock()
    with pytest.raises(SpecError) as caught:
        staged.promote(evidence)
    assert f"model.{field}: {told} in prod" in [each.message for each in caught.value.problems]


def test_an_option_that_is_absent_where_it_goes_is_another_container(staged: Staged) -> None:
    staged.write(serving={"overrides": {"enforce_eager": True}}, environments={})
    evidence = evidence_of(staged.result(staged.lock()))
    staged.write(
        environments={
            "staging": {"serving": {"overrides": {"enforce_eager": True}}},
            "prod": {"workload": {"concurrency": 40}, "scaling": {"max_copies": 4}},
        }
    )
    found = staged.refused(replace(evidence, deployed_digest=None))
    assert "serving.properties: option.enforce_eager: true in staging, absent in prod" in found["SEA476"]


def test_simulated_hardware_is_accepted_only_when_asked_for_and_recorded(staged: Staged) -> None:
    staged.write(prod={"promotion": {"source": "staging"}})
    evidence = evidence_of(staged.result(staged.lock(), engine_note="local-cpu-random-llama"))
    assert list(staged.refused(evidence)) == ["SEA477"]
    promoted = staged.promote(evidence, accept_simulated=True).plan.promoted
    assert promoted is not None
    assert promoted.engine_note == "local-cpu-random-llama"


def test_where_a_proof_is_needed_only_the_environment_accepts_simulated_hardware(staged: Staged) -> None:
    """A lock is written by whoever has the option; the file of the environment has owners."""
    evidence = evidence_of(staged.result(staged.lock(), engine_note="local-cpu-random-llama"))
    with pytest.raises(SpecError, match=r"SEA477.*\n.*promotion.accept_simulated: true in prod"):
        staged.promote(evidence, accept_simulated=True)
    staged.write(prod={"promotion": {**REQUIRED, "accept_simulated": True}})
    lock = staged.promote(evidence)
    write_lock(lock.plan, lock.loaded.path, lock.evidence)
    state = with_evidence(freshness_of(staged.load("prod")), now=NOW)
    assert (state.state, state.problems) == ("fresh", ())
    staged.write()
    state = with_evidence(freshness_of(staged.load("prod")), now=NOW)
    assert (state.state, [each.rule for each in state.problems]) == ("unproven", ["SEA477"])


def test_the_embedded_aws_takes_simulated_hardware(staged: Staged) -> None:
    staged.write(prod={"account": EMBEDDED_ACCOUNT, "promotion": {"source": "staging"}})
    evidence = evidence_of(staged.result(staged.lock(), engine_note="local-cpu-random-llama"))
    assert list(staged.refused(evidence)) == ["SEA475"], "its requests are shorter, and no more is wrong"


def test_a_plan_of_another_source_than_the_environments_own_is_refused(staged: Staged) -> None:
    """Whoever names another environment with --from gets no lock that synthesis refuses."""
    staged.write(prod={"promotion": {**REQUIRED, "source": "dev"}})
    (staged.folder / "environments" / "dev.yaml").write_text("{name: dev, region: us-east-1}", encoding="utf-8")
    found = staged.refused(evidence_of(staged.result(staged.lock())))
    assert found == {
        "SEA478": "the plan was promoted from staging; promotion.required "
        f"({staged.folder / 'environments' / 'prod.yaml'}:5) asks for a passed trial in dev"
    }


def test_another_instance_type_than_the_locked_one_makes_another_endpoint_and_says_so(staged: Staged) -> None:
    evidence = evidence_of(staged.result(staged.lock()))
    first = staged.promote(evidence).plan
    other = first.instance_type.model_copy(update={"value": "ml.g6.2xlarge"})
    write_lock(first.model_copy(update={"instance_type": other}), staged.load("prod").path)
    lock = staged.promote(evidence)
    assert lock.plan.generation == 2
    assert lock.lines[0] == (
        "instance type changes from ml.g6.2xlarge to ml.g5.2xlarge: "
        "a second endpoint is made, tried, and then takes the traffic"
    )


@pytest.mark.parametrize("refusal", [SpecError, PlanError, RenderError])
def test_a_copy_that_the_environment_cannot_have_is_told_beside_what_the_trial_does_not_prove(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, refusal: type[SeatrialError]
) -> None:
    def refuse(*_: object) -> None:
        raise refusal.of("SEA476", "no such copy here")

    monkeypatch.setattr(promotion, "promoted_plan", refuse)
    verdict = Verdict(status="fail", because="too slow", checks=())
    found = staged.refused(evidence_of(staged.result(staged.lock(), verdict=verdict)))
    assert found == {"SEA472": "the trial failed: too slow", "SEA476": "no such copy here"}


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
    assert list(staged.refused(evidence_of(replace(result, request=request)))) == ["SEA473"]


def place(name: str, source: str | None) -> EnvironmentSpec:
    return EnvironmentSpec.model_validate({"name": name, "region": "us-east-1", "promotion": {"source": source}})


DEV, STAGING, PROD = place("dev", None), place("staging", "dev"), place("prod", "staging")


def test_the_source_is_the_environment_before() -> None:
    assert (source_of(PROD, None), source_of(PROD, "staging"), source_of(DEV, "test")) == ("staging", "staging", "test")


@pytest.mark.parametrize(("target", "given"), [(DEV, None), (PROD, "dev"), (PROD, "prod"), (DEV, "dev")])
def test_another_order_is_refused(target: EnvironmentSpec, given: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        source_of(target, given)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.where, problem.field) == ("SEA470", target.name, "promotion.source")
    assert problem.hint


def test_no_plan_goes_back(staged: Staged) -> None:
    del staged
    for source, target in ((PROD, DEV), (PROD, STAGING), (STAGING, DEV)):
        with pytest.raises(SpecError, match=f"SEA470: {target.name} comes before {source.name}"):
            check_order(source, target, (DEV, STAGING, PROD))
    check_order(STAGING, PROD, (DEV, STAGING, PROD))
    check_order(DEV, PROD, (DEV, STAGING, PROD))
    assert NOW.tzinfo is not None
