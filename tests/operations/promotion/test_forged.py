"""Evidence that was made up, taken from elsewhere, or swapped: each kind is told, before and in a lock."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.deployment.evidence import fingerprint, with_evidence
from seatrial.deployment.load import deployment_of, load_deployments
from seatrial.locks.lock_file import lock_text, read_lock, seal_of, write_lock
from seatrial.locks.locked_plan import freshness_of, read_locked_plan
from seatrial.operations.promotion import evidence_of_result
from seatrial.operations.review.changes import findings
from seatrial.operations.review.side import EndpointState
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import SpecError
from seatrial_load.documents.result import TrialResult, Verdict
from tests.constructs.conftest import EvidenceKey, level
from tests.operations.promotion.conftest import KEY, NOW, REQUIRED, SPEC, evidence_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from seatrial.operations.promotion import TrialEvidence
    from seatrial_base.findings import Finding
    from tests.operations.promotion.conftest import Staged

    Edit = Callable[[dict[str, Any]], object]

OTHER_KEY = EvidenceKey()


def edited(evidence: TrialEvidence, edit: Edit) -> TrialEvidence:
    """Return the result as a text editor leaves it."""
    document = json.loads(evidence.text)
    edit(document)
    text = json.dumps(document)
    return evidence_of_result(TrialResult.from_json(text), "result.json", text)


def set_verdict(document: dict[str, Any]) -> None:
    document["verdict"] = {"status": "pass", "because": "all objectives met", "checks": []}


def missed(result: TrialResult) -> TrialResult:
    verdict = Verdict(status="fail", because="ttft_ms p95 812.2 ms exceeds 500.0 ms", checks=())
    objectives = tuple(replace(each, bound=500.0) for each in result.request.objectives)
    return of(replace(result, verdict=verdict), objectives=objectives)


def of(result: TrialResult, **changes: object) -> TrialResult:
    return replace(result, request=replace(result.request, **changes))  # type: ignore[arg-type]  # of the dataclass


EDITS: dict[str, Edit] = {
    "levels": lambda document: document["levels"][1]["ttft_ms"].update(p95=100.0),
    "gate": lambda document: document["request"].update(gate_concurrency=8),
    "knee": lambda document: document["knees"][0].update(concurrency=8),
    "plan": lambda document: document["request"].update(plan_digest="0123456789abcdef"),
    "time": lambda document: document.update(started_at="2026-11-20T01:00:00+00:00"),
    "actor": lambda document: document["seal"].update(actor="arn:aws:states:::execution:x:y"),
    "signature": lambda document: document["seal"].update(signature="bm9uZQ=="),
    "no base64": lambda document: document["seal"].update(signature="-"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_result_that_was_edited_is_not_what_was_signed(staged: Staged, edit: Edit) -> None:
    assert "SEA581" in staged.refused(edited(evidence_of(staged.result(staged.lock())), edit))


def test_a_failed_trial_whose_verdict_is_edited_is_told_twice(staged: Staged) -> None:
    evidence = edited(evidence_of(missed(staged.result(staged.lock()))), set_verdict)
    found = staged.refused(evidence)
    assert set(found) == {"SEA581", "SEA583"}
    assert found["SEA583"].startswith("the result says pass, and its own levels say fail: ttft_ms p95 812.2 ms exceeds")


def test_a_signature_that_was_stripped_or_is_of_another_environment_is_none(staged: Staged) -> None:
    result = staged.result(staged.lock())
    stripped = edited(evidence_of(result), lambda document: document.update(seal=None))
    assert list(staged.refused(stripped)) == ["SEA580"]
    assert list(staged.refused(evidence_of(result, OTHER_KEY))) == ["SEA581"]
    staged.write(prod={"promotion": {**REQUIRED, "public_keys": [OTHER_KEY.public, KEY.public]}})
    for key in (KEY, OTHER_KEY):  # while a key is replaced
        assert staged.promote(evidence_of(result, key)).plan.promoted is not None
    staged.write(prod={"promotion": {**REQUIRED, "public_keys": []}})
    assert "promotion.public_keys of prod are empty" in staged.refused(evidence_of(result))["SEA580"]


def test_unsigned_evidence_is_taken_where_no_proof_is_asked_for(staged: Staged) -> None:
    staged.write(prod={"promotion": {"source": "staging"}})
    unsigned = evidence_of_result(staged.result(staged.lock()), "result.json", "")
    lock = staged.promote(unsigned)
    write_lock(lock.plan, lock.loaded.path, lock.evidence)
    assert deployment_of(lock.loaded).plan == lock.plan
    staged.write(prod={"promotion": {"source": "staging", "public_keys": [KEY.public]}})
    assert list(staged.refused(unsigned)) == ["SEA580"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda result: replace(result, started_at="2026-01-01T00:00:00+00:00"), "SEA474"),
        (lambda result: replace(result, verdict=replace(result.verdict, status="fail")), "SEA472"),
        (lambda result: replace(missed(result), verdict=result.verdict), "SEA583"),
        (lambda result: of(result, endpoint="talk"), "SEA473"),
        (lambda result: of(result, environment="dev"), "SEA473"),
        (lambda result: of(result, plan_digest="older"), "SEA473"),
        (lambda result: of(result, configuration_digest="other"), "SEA582"),
        (lambda result: of(result, configuration_digest=""), "SEA582"),
    ],
)
def test_a_signature_makes_no_proof_of_what_is_none(
    staged: Staged, change: Callable[[TrialResult], TrialResult], rule: str
) -> None:
    """Old, failed, contradicting itself, of another endpoint, environment, plan or configuration."""
    assert rule in staged.refused(evidence_of(change(staged.result(staged.lock()))))


def promoted(staged: Staged) -> Staged:
    lock = staged.promote(evidence_of(staged.result(staged.lock())))
    write_lock(lock.plan, lock.loaded.path, lock.evidence)
    return staged


def rewrite(staged: Staged, edit: Edit) -> None:
    """Edit prod's plan and the evidence of the lock, and seal it anew, as a script of 20 lines does."""
    path = lock_path(staged.load("prod").path)
    whole = json.loads(path.read_text(encoding="utf-8"))
    edit({"plan": whole["environments"]["prod"], "evidence": whole["evidence"]})
    whole["digests"]["prod"] = seal_of(whole["environments"]["prod"]).model_dump()
    path.write_text(lock_text(whole), encoding="utf-8")


def told(staged: Staged) -> dict[str, str]:
    """Return what synthesis says of prod's lock, by rule; `plan --check` says the same."""
    loaded = staged.load("prod")
    try:
        deployment_of(loaded)
        problems: dict[str, str] = {}
    except SpecError as error:
        problems = {each.rule: each.message for each in error.problems}
    checked = with_evidence(freshness_of(loaded), now=NOW)
    assert {each.rule for each in checked.problems} == problems.keys()
    assert (checked.state == "fresh") == (not problems)
    return problems


def test_a_promoted_lock_proves_itself_without_an_account(staged: Staged) -> None:
    assert told(promoted(staged)) == {}
    plan = read_locked_plan(staged.load("prod"))
    write_lock(plan, staged.load("prod").path)  # as calibrations do
    assert told(staged) == {}
    write_lock(plan.model_copy(update={"promoted": None}), staged.load("prod").path)
    assert read_lock(lock_path(staged.load("prod").path)).evidence == {}


LOCK_EDITS: dict[str, tuple[Edit, str]] = {
    "no evidence": (lambda lock: lock["evidence"].pop("prod"), "SEA580"),
    "evidence": (
        lambda lock: lock["evidence"].update(prod=lock["evidence"]["prod"].replace("812.25", "512.25")),
        "SEA581",
    ),
    "no start": (
        lambda lock: lock["evidence"].update(prod=lock["evidence"]["prod"].replace("2026-11-21T01:00:00", "soon")),
        "SEA581",
    ),
    "no result": (lambda lock: lock["evidence"].update(prod="{}"), "SEA581"),
    "source": (lambda lock: lock["plan"]["promoted"].update(plan_digest="0123456789abcdef"), "SEA582"),
    "ended": (lambda lock: lock["plan"]["promoted"].update(ended_at="2026-11-22T00:00:00+00:00"), "SEA582"),
    "knee": (lambda lock: lock["plan"]["promoted"].update(knee_concurrency_per_copy=64.0), "SEA582"),
    "hardware": (lambda lock: lock["plan"]["promoted"].update(engine_note="none"), "SEA582"),
    "request": (lambda lock: lock["plan"]["promoted"].update(request_id="another"), "SEA582"),
    "option": (lambda lock: lock["plan"]["max_num_seqs"].update(value=40), "SEA582"),
    "memory": (lambda lock: lock["plan"]["memory_min_mb"].update(value=9999), "SEA582"),
    "gate": (lambda lock: lock["plan"]["gate_concurrency_per_copy"].update(value=2), "SEA414"),
    "load": (lambda lock: lock["plan"]["gate_concurrency_per_copy"].update(value=64), "SEA475"),
    "target": (lambda lock: lock["plan"]["target_concurrency_per_copy"].update(value=64.0), "SEA475"),
    "time": (lambda lock: lock["plan"]["promoted"].update(promoted_at="2026-01-01T00:00:00+00:00"), "SEA474"),
    "age": (lambda lock: lock["plan"]["promoted"].update(promoted_at="2027-02-01T00:00:00+00:00"), "SEA474"),
    "endless": (lambda lock: lock["plan"]["promoted"].update(promoted_at="0001-01-01T00:00:00+14:00"), "SEA474"),
    "no time": (lambda lock: lock["plan"]["promoted"].pop("promoted_at"), "SEA474"),
}


@pytest.mark.parametrize(("edit", "rule"), LOCK_EDITS.values(), ids=LOCK_EDITS)
def test_a_lock_that_was_edited_and_sealed_anew_is_refused(staged: Staged, edit: Edit, rule: str) -> None:
    rewrite(promoted(staged), edit)
    assert list(told(staged)) == [rule]


IN_S3 = {"s3_uri": "s3://good/weights/", "architecture": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True}
ELSEWHERE: dict[str, tuple[dict[str, object], dict[str, object], dict[str, object], list[str]]] = {
    "image": ({}, {"serving": {"image": "999999999999.dkr.ecr.us-east-1.amazonaws.com/evil:any"}}, {}, ["SEA582"]),
    "weights": ({"model": IN_S3}, {"model": {"s3_uri": "s3://evil/weights/"}}, {}, ["SEA582"]),
    "archive": ({"model": IN_S3}, {"model": {"s3_uri": "s3://evil/w.tar.gz"}}, {"models": ["s3://evil/*"]}, ["SEA582"]),
    "bucket of its own": ({"model": IN_S3}, {"model": {"s3_uri": "s3://ours/w/"}}, {"models": ["s3://ours/*"]}, []),
}


@pytest.mark.parametrize(("spec", "prod", "rails", "rules"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_another_image_or_other_weights_are_not_what_was_tried(
    staged: Staged, spec: dict[str, object], prod: dict[str, object], rails: dict[str, object], rules: list[str]
) -> None:
    """The owners of an environment name the places of its weights; a spec's author can't."""
    overlay = {**SPEC["environments"]["prod"], **prod}  # type: ignore[index]  # of a mapping
    staged.write(prod={"guard_rails": rails} if rails else None, environments={"prod": overlay}, **spec)
    evidence = evidence_of(staged.result(staged.lock()))
    if rules:
        assert set(rules) <= staged.refused(evidence).keys()
    else:
        assert staged.promote(evidence).plan.promoted is not None


@pytest.mark.parametrize(
    ("change", "key", "rule"),
    [
        (lambda result: of(result, endpoint="talk"), KEY, "SEA582"),
        (lambda result: of(result, configuration_digest="older"), KEY, "SEA582"),
        (lambda result: of(result, plan_digest="older"), KEY, "SEA582"),
        (lambda result: replace(missed(result), verdict=result.verdict), KEY, "SEA583"),
        (lambda result: replace(result, live=replace(result.live, proven=False)), KEY, "SEA471"),
        (lambda result: of(result, manner="verify"), KEY, "SEA471"),
        (lambda result: replace(result, levels=(level(8, 250.0),)), KEY, "SEA583"),
        (lambda result: result, OTHER_KEY, "SEA581"),
    ],
)
def test_a_signed_result_of_something_else_proves_no_lock(
    staged: Staged, change: Callable[[TrialResult], TrialResult], key: EvidenceKey, rule: str
) -> None:
    """Of another endpoint, configuration, plan or environment's key; or one that contradicts itself."""
    promoted(staged)
    text = evidence_of(change(staged.result(read_locked_plan(staged.load("staging")))), key).text
    rewrite(staged, lambda lock: lock["evidence"].update(prod=text))
    assert rule in told(staged)


def test_a_plan_without_proof_waits_for_its_promotion_and_a_forged_one_stops_the_synthesis(staged: Staged) -> None:
    folders = staged.folder, staged.folder / "environments", "prod"
    rewrite(promoted(staged), lambda lock: lock["evidence"].pop("prod"))
    assert with_evidence(freshness_of(staged.load("prod")), now=NOW).state == "awaiting promotion"
    waiting = load_deployments(*folders)
    assert (waiting.deployments, len(waiting.left_out)) == ((), 1)
    promoted(staged)
    rewrite(staged, lambda lock: lock["plan"]["promoted"].update(ended_at="2026-11-22T00:00:00+00:00"))
    assert with_evidence(freshness_of(staged.load("prod")), now=NOW).state == "unproven"
    with pytest.raises(SpecError, match="SEA582"):
        load_deployments(*folders)


def test_a_promotion_in_the_future_is_told_where_the_time_is_known(staged: Staged) -> None:
    promoted(staged)
    state = freshness_of(staged.load("prod"))
    assert with_evidence(state, now=NOW).state == "fresh"
    early = with_evidence(state, now=NOW - timedelta(days=1))
    assert [each.rule for each in early.problems] == ["SEA474"]


def commented(old: EndpointState, new: EndpointState, now: datetime = NOW) -> list[Finding]:
    """Return what the comment tells of a promotion, beside what lint and the plan say."""
    rules = {"SEA474", "SEA585"}
    return [each for each in findings(old, new, now)[0] if each.rule in rules or "promoted from" in each.message]


def test_the_comment_tells_a_new_promotion_and_a_key_that_comes_with_it(staged: Staged) -> None:
    def state() -> EndpointState:
        loaded = staged.load("prod")
        return EndpointState(loaded=loaded, plan=read_locked_plan(loaded), deployment=deployment_of(loaded))

    before, later = EndpointState(loaded=staged.load("prod")), NOW + timedelta(days=60)
    promoted(staged)
    after = state()
    (note,) = commented(before, after)
    assert (note.rule, note.severity) == ("", "note")
    assert note.message.startswith("promoted from staging: trial passed, ended 2026-11-21T01:01:01+00:00")
    assert note.message.endswith("; proven by a signed result")
    assert [each.rule for each in commented(before, after, later)] == ["", "SEA474"]
    assert commented(after, after, later) == []
    staged.write(prod={"promotion": {**REQUIRED, "public_keys": [KEY.public, OTHER_KEY.public]}})
    swapped, noted = commented(before, state())
    assert (swapped.rule, swapped.severity, noted.rule) == ("SEA585", "warning", "")
    assert fingerprint(OTHER_KEY.public) in swapped.message
    assert swapped.message.endswith("counts as a trial in staging; the same change promotes a plan")
    assert not commented(after, state())[0].message.endswith("promotes a plan")
