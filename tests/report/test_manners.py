"""The report and the terminal of a trial that spares users."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from seatrial.planner.calibration import points_of_trial
from seatrial.report.document.levels import protocol_table
from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import page_of
from seatrial.report.terminal.trial import conclusion_view
from seatrial_cdk.trials.runtime.report import evidence, short_report
from seatrial_load.cli.show import knee_line, result_lines
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.result import AnswerDoubt, Knee, LiveProof, TrialResult, Unmeasured, UsersLoad
from seatrial_load.documents.stop import Stop
from seatrial_load.slo.verdict import compare_with_baseline, doubt_texts
from seatrial_load.trial.budget import next_sparing
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.finalize import conclude_trial
from tests.report.samples import sample_level, sample_request

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_load.documents.request import Manner
    from seatrial_load.documents.result import LevelResult

VERIFIED = Unmeasured(occasion="verification", sent=5, succeeded=5, errors={}, first_errors=(), longest_wait_s=None)


def sparing(plan: Plan, manner: Manner, *levels: LevelResult, users: UsersLoad | None = None) -> TrialResult:
    request = replace(sample_request(plan), manner=manner, gate_concurrency=16, expected=None)
    live = LiveProof(
        proven=False, endpoint_config_name=None, model_name=None, copy_count=request.copy_count, because="not asked",
        planned_copy_count=1,
    )  # fmt: skip
    progress = TrialProgress(
        started_at="2026-11-21T01:02:03+00:00", elapsed_s=12.0, sent=6, live=live, levels=levels, users=users,
        unmeasured=() if levels else (VERIFIED,),
    )  # fmt: skip
    stop = next_sparing(request, progress)
    assert isinstance(stop, Stop)
    return conclude_trial(request, replace(progress, stopped=stop), Tools(asks_cloudwatch=False))


@pytest.fixture(scope="module")
def verified(plan: Plan) -> TrialResult:
    return sparing(plan, "verify")


@pytest.fixture(scope="module")
def beside(plan: Plan) -> TrialResult:
    users = UsersLoad(concurrency_per_copy=8.0, because="CloudWatch told")
    return sparing(plan, "in_place", sample_level(4), sample_level(8), users=users)


def test_a_verification_reads_as_one(verified: TrialResult, plan: Plan) -> None:
    page = page_of(verified, plan)
    assert page.status == "pass"
    assert page.because == "Verified: 5 of 5 requests succeeded, no load."
    facts = {fact.name: (fact.value.text, fact.aside) for fact in page.facts}
    assert facts["Load"] == ("none", "single requests; no knee was sought")
    assert facts["Copies"] == ("2", "the plan has 1")
    assert "knee" not in {section.anchor for section in (*page.sections, *page.details)}
    levels = next(section for section in page.sections if section.anchor == "levels")
    assert levels.paragraphs == ("No load was requested: verified by 5 requests; no load.",)


EARLY = AnswerDoubt(kind="ended_early", answers=9, of=9, because="9 of 9 answers are short")
CANNED = AnswerDoubt(kind="same_text", answers=9, of=9, because="9 of 9 answers have the same text")


def test_doubtful_answers_stand_at_the_head_of_report_and_terminal(beside: TrialResult, plan: Plan) -> None:
    first, second = beside.levels
    half = replace(EARLY, answers=5, because="5 of 9 answers are short")
    levels = (replace(first, doubts=(half, CANNED)), replace(second, doubts=(EARLY,)))
    doubtful = replace(beside, levels=levels)
    early = "ended_early: 9 of 9 answers are short (concurrency 4, 8)"
    canned = "same_text: 9 of 9 answers have the same text (concurrency 4)"
    assert {f"Doubtful answers: {told}." for told in (early, canned)} <= set(page_of(doubtful, plan).cautions)
    assert f"Doubtful answers: {early}." in render_markdown(doubtful, plan)
    shown = io.StringIO()
    Console(file=shown, width=200).print(conclusion_view(doubtful))
    assert shown.getvalue().splitlines()[1:3] == [f"doubt: {early}", f"doubt: {canned}"]
    assert list(result_lines(doubtful)).count(f"doubt: {early}") == 1
    assert f"- doubt: {early}" in short_report(doubtful, "s3://b/r")
    assert f"doubt: {early}" in list(evidence(doubtful))


def test_how_much_of_the_prompts_came_from_a_cache_is_told_beside_what_was_planned(
    beside: TrialResult, plan: Plan
) -> None:
    first, second = beside.levels
    shared = replace(beside.request, workload=replace(beside.request.workload, shared_prefix_tokens=64))
    told = replace(beside, request=shared, levels=(first, replace(second, cached_share=0.975)))
    line = "cache: 98 % of the prompt tokens came from it at concurrency 8 per copy; the workload shares 25 %"
    shown = io.StringIO()
    Console(file=shown, width=200).print(conclusion_view(told))
    assert line in shown.getvalue().splitlines()
    assert line in list(result_lines(told))
    assert f"- {line}" in short_report(told, "s3://b/r")
    table = protocol_table(told)
    (at,) = [number for number, column in enumerate(table.columns) if column.label == "from a cache"]
    assert table.columns[at].unit == "planned 25.0 %"
    assert [row[at].text for row in table.rows] == ["–", "97.5 %"]
    assert "from a cache" not in {column.label for column in protocol_table(beside).columns}
    assert not any("cache:" in each for each in result_lines(beside))
    assert page_of(told, plan).status == beside.verdict.status


def test_what_random_weights_say_is_no_doubt_of_a_local_engine(beside: TrialResult) -> None:
    first, second = beside.levels
    local = replace(beside, engine_note="local", levels=(replace(first, doubts=(EARLY, CANNED)), second))
    assert list(doubt_texts(local)) == ["ended_early: 9 of 9 answers are short (concurrency 4)"]


def test_load_beside_users_reads_as_such(beside: TrialResult, plan: Plan) -> None:
    page = page_of(beside, plan)
    told = "8 requests per copy alongside about 8 of users; no knee was sought; "
    assert page.because.startswith(told)
    facts = {fact.name: (fact.value.text, fact.aside) for fact in page.facts}
    assert facts["Load"] == ("closed loop, common start", "alongside users' requests; no knee was sought")
    assert facts["Users"] == ("8", "requests in flight per copy, before the trial")
    figures = {fact.name: fact.aside for fact in page.key_figures}
    assert figures["Throughput"] == "with users' load, at concurrency 8"
    sections = {section.anchor: section for section in (*page.sections, *page.details)}
    assert "knee" not in sections
    assert "the load was alongside users' requests" in sections["prediction"].paragraphs[0]


def test_the_first_line_on_a_terminal_tells_the_manner(verified: TrialResult, beside: TrialResult) -> None:
    def lines(result: TrialResult) -> list[str]:
        console = Console(file=io.StringIO(), width=200)
        console.print(conclusion_view(result))
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue().splitlines()

    assert lines(verified)[0] == "verdict: pass: verified: 5 of 5 requests succeeded, no load"
    assert lines(beside)[0].startswith(
        "verdict: pass: 8 requests per copy alongside about 8 of users; no knee was sought; all 3 objectives met; "
    )
    assert "users: CloudWatch told" in lines(beside)
    assert knee_line(verified) == knee_line(beside) == "knee: none was sought"


def test_no_calibration_and_no_comparison_comes_from_load_beside_users(beside: TrialResult, real: TrialResult) -> None:
    assert points_of_trial(real)
    assert points_of_trial(beside) == ()
    comparison = compare_with_baseline(real, beside)
    assert (comparison.status, comparison.changes) == ("incomparable", ())
    assert "manner" in comparison.because


def test_a_knee_of_an_objective_that_nobody_set_is_not_told(verified: TrialResult) -> None:
    """Levels with failed requests meet no objectives, and all of them."""
    request = replace(verified.request, manner="load", objectives=())
    found = Knee(detector="slo", concurrency=2.0, because="every level meets the SLO")
    assert knee_line(replace(verified, request=request, knees=(found,))) == "knee: none found"
