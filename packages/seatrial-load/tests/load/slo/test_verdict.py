from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.request import Gate, Objective
from seatrial_load.documents.result import AnswerDoubt, Unmeasured, Verdict
from seatrial_load.metrics.aggregate import distribution_of, sample_of
from seatrial_load.slo.evaluate import checks_of
from seatrial_load.slo.verdict import inconclusive, judged, up_to_gate, verdict_at, with_error_rate
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import DoubtKind, LevelResult

    MakeLevel = Callable[..., LevelResult]
    MakeRequest = Callable[..., TrialRequest]

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
TPOT = Objective(metric="tpot_ms", statistic="mean", bound=20.0, sense="at_most")
ERRORS = Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most")
THROUGHPUT = Objective(metric="output_tok_s", statistic="value", bound=100.0, sense="at_least")


@pytest.mark.parametrize(
    ("ttft_ms", "sentence"),
    [
        (500.0, "ttft_ms p95 500.0 ms is within 500.0 ms at concurrency 4 per copy"),
        (812.0, "ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy"),
        (None, "ttft_ms p95 was not measured at concurrency 4 per copy: no request has a value"),
    ],
)
def test_sentences_of_latency(level: MakeLevel, ttft_ms: float | None, sentence: str) -> None:
    (check,) = checks_of(level(4, ttft_ms=ttft_ms), [TTFT])
    assert (check.sentence, check.measured) == (sentence, ttft_ms)


def test_sentences_of_shares_and_rates(level: MakeLevel) -> None:
    checks = checks_of(level(4, succeeded=6), [ERRORS, THROUGHPUT, TPOT])
    assert [check.sentence for check in checks] == [
        "error_rate 25.00 % exceeds 1.00 % at concurrency 4 per copy",  # (8 - 6) / 8
        "output_tok_s 80.0 tok/s is below 100.0 tok/s at concurrency 4 per copy",
        "tpot_ms mean 20.0 ms is within 20.0 ms at concurrency 4 per copy",
    ]
    assert [check.met for check in checks] == [False, False, True]


def test_a_level_is_judged_by_every_objective(level: MakeLevel) -> None:
    bad = judged(level(4, ttft_ms=812.0), [TTFT, TPOT])
    assert (bad.meets_slo, bad.misses) == (False, ("ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy",))
    assert judged(level(4), [TTFT, TPOT]).meets_slo


def test_an_objective_that_was_not_measured_is_not_met(level: MakeLevel) -> None:
    assert not judged(level(4, ttft_ms=None), [TTFT]).meets_slo


def test_a_level_without_success_misses_even_an_empty_slo(level: MakeLevel) -> None:
    dead = level(4, succeeded=0, errors={"throttled": 8}, first_errors=("throttled: HTTP 429: slow",))
    assert judged(dead, []).misses == (
        "0 of 8 requests succeeded at concurrency 4 per copy: throttled 8 (throttled: HTTP 429: slow)",
    )


def test_pass(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(1), level(4)], [TTFT, TPOT])
    assert verdict.status == "pass"
    assert verdict.because == "all 2 objectives met; 8 of 8 requests succeeded at concurrency 4 per copy"
    assert [check.met for check in verdict.checks] == [True, True]


def test_fail_names_every_missed_objective(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(4, ttft_ms=812.0)], [TTFT, THROUGHPUT, TPOT])
    assert verdict.status == "fail"
    assert verdict.because == (
        "ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy; "
        "output_tok_s 80.0 tok/s is below 100.0 tok/s at concurrency 4 per copy"
    )


def test_nothing_succeeded_fails(level: MakeLevel) -> None:
    dead = level(4, succeeded=0, errors={"not_ready": 6, "timeout": 2}, ttft_ms=None)
    verdict = verdict_at(4, [dead], [TTFT])
    assert verdict.status == "fail"
    assert verdict.because == "0 of 8 requests succeeded at concurrency 4 per copy: not_ready 6, timeout 2"


def test_a_metric_that_nothing_gave_is_inconclusive(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(4, ttft_ms=None)], [TTFT, TPOT])
    assert verdict.status == "inconclusive"
    assert verdict.because == "ttft_ms p95 was not measured at concurrency 4 per copy: no request has a value"


def test_no_objectives_pass_when_requests_succeed(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(4)], [])
    assert (verdict.status, verdict.because) == (
        "pass", "no objective is set; 8 of 8 requests succeeded at concurrency 4 per copy"
    )  # fmt: skip


def test_the_gate_between_levels_passes_by_a_higher_one(level: MakeLevel) -> None:
    verdict = verdict_at(3, [level(2), level(4)], [TTFT])
    assert verdict.status == "pass"
    assert verdict.because == (
        "concurrency 3 per copy was not measured; objective met; 8 of 8 requests succeeded at concurrency 4 per copy"
    )


def test_the_gate_between_levels_fails_by_a_lower_one(level: MakeLevel) -> None:
    bad = level(2, ttft_ms=812.0, meets_slo=False)
    verdict = verdict_at(8, [level(1), bad], [TTFT])
    assert verdict.status == "fail"
    assert verdict.because == (
        "concurrency 8 per copy was not measured; ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 2 per copy"
    )


def test_of_several_levels_the_nearest_one_proves(level: MakeLevel) -> None:
    passed = verdict_at(3, [level(2), level(4), level(8), level(16)], [TTFT])
    assert passed.because.endswith("8 of 8 requests succeeded at concurrency 4 per copy")
    failed = verdict_at(8, [level(1, ttft_ms=900.0), level(2, ttft_ms=812.0)], [TTFT])
    assert failed.because.endswith("ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 2 per copy")


def doubt(kind: DoubtKind, answers: int, of: int = 50) -> AnswerDoubt:
    return AnswerDoubt(kind=kind, answers=answers, of=of, because=f"{answers} of {of} answers")


@pytest.mark.parametrize(
    ("found", "objectives", "status"),
    [
        (doubt("ended_early", 5), [TTFT], "pass"),
        (doubt("ended_early", 6), [TTFT], "inconclusive"),
        (doubt("ended_early", 1), [TTFT, ERRORS], "inconclusive"),
        (doubt("uncounted", 6), [TTFT], "inconclusive"),
        (doubt("burst", 50), [TTFT], "pass"),
        (doubt("burst", 6), [TTFT, TPOT], "inconclusive"),
        (doubt("burst", 5), [TTFT, TPOT], "pass"),
        (doubt("cached", 6), [TTFT], "inconclusive"),
        (doubt("cached", 5), [TTFT], "pass"),
        (doubt("same_text", 50), [TTFT, TPOT], "pass"),
        (doubt("other_model", 50), [TTFT, TPOT], "pass"),
    ],
)
def test_more_doubtful_answers_than_may_fail_prove_nothing(
    level: MakeLevel, found: AnswerDoubt, objectives: list[Objective], status: str
) -> None:
    verdict = verdict_at(4, [level(4, doubts=(found,))], objectives)
    assert verdict.status == status
    assert (f"{found.kind}: {found.because}" in verdict.because) == (status == "inconclusive")


NOTHING_SAID = "answers at concurrency 4 per copy say nothing, more than 1 % with 95 % confidence"


@pytest.mark.parametrize(
    ("blank", "repeated", "answered", "status"),
    [(0, 2, 50, "pass"), (1, 1, 50, "pass"), (0, 3, 50, "fail"), (2, 1, 50, "fail"), (0, 1, 6, "pass"),
     (1, 0, 5, "fail"), (12, 0, 1_000, "pass"), (0, 16, 1_000, "fail"), (0, 0, 50, "pass")],
)  # fmt: skip
@pytest.mark.parametrize("confidence", [0.0, 0.9, 0.999])
def test_answers_that_say_nothing_fail_where_more_than_1_percent_of_them_is_proven(
    level: MakeLevel, confidence: float, blank: int, repeated: int, answered: int, status: str
) -> None:
    found = (doubt("blank", blank, answered), doubt("repeated", repeated, answered))
    seen = level(4, requests=answered, succeeded=answered, doubts=found)
    verdict = verdict_at(4, [seen], [ERRORS], confidence=confidence)
    assert verdict.status == status
    kinds = ", ".join(f"{one.kind} {one.answers}" for one in found if one.answers)
    told = f"{blank + repeated} of {answered} {NOTHING_SAID}: {kinds}"
    assert (verdict.because == told) == (status == "fail")


def test_a_few_answers_that_say_nothing_at_each_of_several_levels_are_many_together(level: MakeLevel) -> None:
    levels = [level(at, requests=50, succeeded=50, doubts=(doubt("repeated", 2),)) for at in (1, 2, 4)]
    assert verdict_at(4, levels[2:], [TTFT]).status == "pass"
    verdict = verdict_at(4, levels, [TTFT])
    told = "6 of 150 answers at all levels say nothing, more than 1 % with 95 % confidence: repeated 6"
    assert (verdict.status, verdict.because) == ("fail", told)


@pytest.mark.parametrize("at", [1, 16])
def test_answers_that_say_nothing_fail_at_whichever_level_and_though_the_client_was_the_limit(
    level: MakeLevel, at: int
) -> None:
    bad = level(at, void=lagging("late"), doubts=(doubt("blank", 8, 8),))
    verdict = verdict_at(4, sorted([bad, level(4)], key=lambda one: one.concurrency), [TTFT])
    assert verdict.status == "fail"
    assert verdict.because.startswith(f"8 of 8 answers at concurrency {at} per copy say nothing")


def test_answers_that_say_nothing_are_told_beside_what_fails_otherwise(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(4, ttft_ms=812.0, doubts=(doubt("blank", 8, 8),))], [TTFT])
    assert verdict.because.startswith(f"8 of 8 {NOTHING_SAID}: blank 8; ttft_ms p95 812.0 ms exceeds")


def test_doubtful_answers_beside_the_gate_prove_nothing_of_it(level: MakeLevel) -> None:
    assert verdict_at(3, [level(4, doubts=(doubt("ended_early", 50),))], [TTFT]).status == "inconclusive"


def test_a_missed_objective_fails_whatever_is_doubtful(level: MakeLevel) -> None:
    doubtful = level(4, ttft_ms=812.0, doubts=(doubt("ended_early", 50),))
    assert verdict_at(4, [doubtful], [TTFT]).status == "fail"


def test_a_higher_level_that_misses_proves_nothing_about_the_gate(level: MakeLevel) -> None:
    bad = level(4, ttft_ms=812.0, meets_slo=False)
    verdict = verdict_at(3, [level(2), bad], [TTFT])
    assert (verdict.status, verdict.checks) == ("inconclusive", ())
    assert verdict.because == "concurrency 3 per copy was not measured; measured levels: 2, 4"


def test_nothing_measured_is_inconclusive() -> None:
    verdict = verdict_at(4, [], [TTFT])
    assert (verdict.status, verdict.because) == (
        "inconclusive", "concurrency 4 per copy was not measured; measured levels: none"
    )  # fmt: skip


LAGGED = "receive lag p99 of 9.0 ms"


def test_a_void_level_proves_nothing(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(2), level(4, void=lagging(LAGGED)), level(8)], [TTFT])
    assert (verdict.status, [check.met for check in verdict.checks]) == ("inconclusive", [None])
    assert verdict.because == f"the level at concurrency 4 per copy is void: {LAGGED}"
    assert verdict.checks[0].measured == 100.0  # what was measured stays readable


def test_no_success_is_no_doubt_though_the_client_was_the_limit(level: MakeLevel) -> None:
    """A client that is late makes latencies doubtful, not that nobody answered."""
    dead = level(
        4,
        succeeded=0,
        errors={"connection": 8},
        ttft_ms=None,
        void=lagging(LAGGED),
    )
    verdict = verdict_at(4, [dead], [TTFT])
    assert (verdict.status, verdict.because) == (
        "fail", "0 of 8 requests succeeded at concurrency 4 per copy: connection 8"
    )  # fmt: skip


def cut(sent: int, errors: dict[str, int], *, concurrency: int = 4, **changes: object) -> Unmeasured:
    fields: dict[str, object] = {
        "occasion": "level",
        "concurrency": concurrency,
        "sent": sent,
        "succeeded": sent - sum(errors.values()),
        "errors": errors,
        "first_errors": tuple(f"{name}: in its words" for name in errors),
        "longest_wait_s": 10.0,
        "because": "the budget of 10 s ended",
        **changes,
    }
    return Unmeasured(**fields)  # type: ignore[arg-type]  # a maker for tests: keywords of any type


def test_a_gate_that_was_cut_without_a_success_fails_and_says_what_was_seen(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(1)], [TTFT], unmeasured=[cut(4, {"unanswered": 3, "timeout": 1})])
    assert (verdict.status, verdict.because) == (
        "fail",
        "concurrency 4 per copy was not measured: the budget of 10 s ended; 0 of 4 requests succeeded, 4 failed "
        "within 10.0 s: unanswered 3, timeout 1 (unanswered: in its words)",
    )


def test_a_gate_that_was_cut_with_successes_is_inconclusive_and_says_what_was_seen(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(1)], [TTFT], unmeasured=[cut(40, {"unanswered": 2})])
    assert (verdict.status, verdict.because) == (
        "inconclusive",
        "concurrency 4 per copy was cut: the budget of 10 s ended; 38 of 40 requests succeeded, 2 failed "
        "within 10.0 s: unanswered 2 (unanswered: in its words); measured levels: 1",
    )


def test_a_gate_that_nothing_was_sent_at_is_inconclusive(level: MakeLevel) -> None:
    """The time was over when its connections were open."""
    assert verdict_at(4, [level(1)], [TTFT], unmeasured=[cut(0, {}, longest_wait_s=None)]).status == "inconclusive"


def test_a_level_that_was_cut_and_then_measured_counts_as_measured(level: MakeLevel) -> None:
    assert verdict_at(4, [level(4)], [TTFT], unmeasured=[cut(4, {"unanswered": 4})]).status == "pass"


def test_a_trial_in_which_nothing_was_answered_fails_wherever_it_ended(level: MakeLevel) -> None:
    first = cut(1, {"timeout": 1}, occasion="first_request", longest_wait_s=2.0, because="")
    warm_up = cut(2, {"timeout": 2}, occasion="warm_up", longest_wait_s=2.0, because="")
    dead = level(
        1,
        requests=2,
        succeeded=0,
        errors={"timeout": 2},
        ttft_ms=None,
        void=lagging(LAGGED),
    )
    verdict = verdict_at(4, [dead], [TTFT], unmeasured=[first, warm_up, cut(1, {"unanswered": 1}, concurrency=2)])
    assert (verdict.status, verdict.because) == (
        "fail",
        "concurrency 4 per copy was not measured; whole trial: 0 of 6 requests succeeded, 6 failed within 10.0 "
        "s: timeout 5, unanswered 1 (timeout: in its words)",
    )


def test_a_first_request_that_failed_does_not_fail_levels_that_were_answered(level: MakeLevel) -> None:
    warm_up = cut(2, {"timeout": 2}, occasion="warm_up")
    assert verdict_at(4, [level(4)], [TTFT], unmeasured=[warm_up]).status == "pass"


def flaky(level: MakeLevel, concurrency: int, **changes: object) -> LevelResult:
    first = ("throttled: slow down",)
    return level(concurrency, succeeded=4, errors={"throttled": 4}, first_errors=first, **changes)


PASSED = Verdict(status="pass", because="no objective is set", checks=())


def test_a_level_with_more_failures_than_allowed_fails_the_trial_as_measured(level: MakeLevel) -> None:
    verdict = with_error_rate(PASSED, [level(1), flaky(level, 8)], Gate(max_error_rate=0.01))
    assert (verdict.status, verdict.because) == (
        "fail",
        "4 of 8 requests failed at concurrency 8 per copy, more than 1 %: throttled 4 (throttled: slow down)",
    )


@pytest.mark.parametrize("gate", [Gate(), Gate(max_error_rate=0.5), Gate(max_error_rate=0.01, max_error_rate_up_to=4)])
def test_failures_that_are_allowed_or_beyond_the_gate_change_nothing(level: MakeLevel, gate: Gate) -> None:
    assert with_error_rate(PASSED, [level(1), flaky(level, 8)], gate) == PASSED


def test_that_nothing_succeeded_is_told_once(level: MakeLevel) -> None:
    """The verdict has said it already, where it fails; a pass by another level has not."""
    dead = level(8, succeeded=0, errors={"throttled": 8})
    gate = Gate(max_error_rate=0.01)
    failed = Verdict(status="fail", because="0 of 8 requests succeeded", checks=())
    assert with_error_rate(failed, [dead], gate) == failed
    both = with_error_rate(failed, [flaky(level, 4), dead], gate)
    assert both.because == (
        "0 of 8 requests succeeded; 4 of 8 requests failed at concurrency 4 per copy, more than 1 %: throttled 4 "
        "(throttled: slow down)"
    )
    passed = with_error_rate(PASSED, [dead], gate)
    assert (passed.status, passed.because) == (
        "fail",
        "8 of 8 requests failed at concurrency 8 per copy, more than 1 %: throttled 8",
    )


def test_a_request_that_failed_has_failed_though_the_client_was_the_limit(level: MakeLevel) -> None:
    assert (
        with_error_rate(
            PASSED,
            [flaky(level, 8, void=lagging(LAGGED))],
            Gate(max_error_rate=0.01),
        ).status
        == "fail"
    )


def test_the_highest_rate_decides_also_where_it_was_cut(level: MakeLevel) -> None:
    """A lower rate that holds says nothing of a higher one."""
    measured = [level(2, arrival="poisson", offered_requests_per_s=1.0)]
    hung = cut(4, {"unanswered": 4}, concurrency=512, offered_requests_per_s=4.0)
    verdict = verdict_at(1, measured, [TTFT], unmeasured=[hung])
    assert (verdict.status, verdict.because) == (
        "fail",
        "4 requests/s was not measured: the budget of 10 s ended; 0 of 4 requests succeeded, 4 failed within 10.0 s: "
        "unanswered 4 (unanswered: in its words)",
    )
    slow = cut(4, {"unanswered": 1}, concurrency=512, offered_requests_per_s=4.0)
    assert verdict_at(1, measured, [TTFT], unmeasured=[slow]).status == "inconclusive"


def at_rate(level: MakeLevel, rate: float, concurrency: int = 2, **changes: object) -> LevelResult:
    return level(concurrency, arrival="poisson", offered_requests_per_s=rate, **changes)


def cut_at_rate(rate: float, errors: int, **changes: object) -> Unmeasured:
    return cut(4, {"unanswered": errors}, concurrency=512, offered_requests_per_s=rate, **changes)


def test_the_highest_rate_decides_though_no_rate_was_measured() -> None:
    verdict = verdict_at(1, [], [TTFT], unmeasured=[cut_at_rate(2.0, 1), cut_at_rate(4.0, 4)])
    assert verdict.status == "fail"
    assert verdict.because.startswith("4 requests/s was not measured")
    verdict = verdict_at(1, [], [TTFT], unmeasured=[cut_at_rate(4.0, 1), cut_at_rate(2.0, 4)])
    assert verdict.status == "inconclusive"
    assert verdict.because.startswith("4 requests/s was cut")


def test_a_rate_that_was_cut_says_nothing_where_it_or_a_higher_one_was_measured(level: MakeLevel) -> None:
    measured = [at_rate(level, 4.0)]
    assert verdict_at(1, measured, [TTFT], unmeasured=[cut_at_rate(4.0, 4)]).status == "pass"
    assert verdict_at(1, measured, [TTFT], unmeasured=[cut_at_rate(2.0, 4)]).status == "pass"
    assert verdict_at(1, measured, [TTFT], unmeasured=[cut_at_rate(8.0, 4), cut_at_rate(4.0, 4)]).status == "fail"


def test_a_lower_rate_that_misses_fails_the_rate_that_was_cut_however_many_it_has_in_flight(level: MakeLevel) -> None:
    slow = at_rate(level, 1.0, concurrency=9, ttft_ms=812.0)
    verdict = verdict_at(4, [slow], [TTFT], unmeasured=[cut_at_rate(4.0, 1)])
    assert verdict.status == "fail"
    assert verdict.because.endswith("ttft_ms p95 812.0 ms exceeds 500.0 ms at 1 requests/s")


def test_only_the_nearest_level_above_lets_the_gate_pass(level: MakeLevel) -> None:
    verdict = verdict_at(3, [level(2), level(4, ttft_ms=812.0), level(8)], [TTFT])
    assert (verdict.status, verdict.because) == (
        "inconclusive", "concurrency 3 per copy was not measured; measured levels: 2, 4, 8"
    )  # fmt: skip


def test_a_lower_level_without_a_success_fails_the_gate(level: MakeLevel) -> None:
    dead = level(2, succeeded=0, errors={"timeout": 8}, ttft_ms=None)
    verdict = verdict_at(8, [level(1), dead], [TTFT])
    assert (verdict.status, verdict.because) == (
        "fail",
        "concurrency 8 per copy was not measured; 0 of 8 requests succeeded at concurrency 2 per copy: timeout 8",
    )


def test_a_lower_level_that_misses_is_told_though_the_gate_was_cut_without_a_success(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(2, ttft_ms=812.0)], [TTFT], unmeasured=[cut(4, {"unanswered": 4})])
    assert verdict.status == "fail"
    assert verdict.because.endswith("ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 2 per copy")


@pytest.mark.parametrize("gate", [0.5, 4.0])
def test_up_to_the_gate_are_the_rates_that_are_no_higher_and_what_has_none(
    level: MakeLevel, trial_request: MakeRequest, gate: float
) -> None:
    load = replace(trial_request().load, gate_rate_per_s=gate)
    warm_up = cut(2, {}, occasion="warm_up")
    levels = [at_rate(level, rate) for rate in (gate / 2, gate, gate * 1.001, gate * 2)]
    assert up_to_gate(levels, load) == tuple(levels[:2])
    assert up_to_gate([warm_up], load) == (warm_up,)


@pytest.mark.parametrize(
    ("concurrency", "rate", "up_to", "status"),
    [(8, None, 8, "fail"), (8, None, 7, "pass"), (8, None, 9, "fail"), (8, 2.0, 4, "fail"), (8, None, None, "fail")],
)
def test_failures_count_up_to_the_gate_and_at_every_rate(
    level: MakeLevel, concurrency: int, rate: float | None, up_to: int | None, status: str
) -> None:
    offered: dict[str, object] = {} if rate is None else {"arrival": "poisson", "offered_requests_per_s": rate}
    gate = Gate(max_error_rate=0.01, max_error_rate_up_to=up_to)
    assert with_error_rate(PASSED, [flaky(level, concurrency, **offered)], gate).status == status


def test_void_levels_beside_the_gate_are_no_evidence(level: MakeLevel) -> None:
    bad = level(2, ttft_ms=812.0, meets_slo=False, void=lagging(LAGGED))
    verdict = verdict_at(3, [bad, level(4, void=lagging(LAGGED))], [TTFT])
    assert (verdict.status, verdict.because) == (
        "inconclusive",
        f"concurrency 3 per copy was not measured; measured levels: 2 (void: {LAGGED}), 4 (void: {LAGGED})",
    )
    assert verdict_at(3, [bad, level(4, void=lagging(LAGGED)), level(8)], [TTFT]).status == "pass"


def test_an_open_loop_is_judged_at_the_highest_rate_offered(level: MakeLevel) -> None:
    levels = [
        level(2, arrival="poisson", offered_requests_per_s=1.0),
        level(9, arrival="poisson", offered_requests_per_s=4.0, ttft_ms=812.0),
    ]
    verdict = verdict_at(2, levels, [TTFT])
    assert (verdict.status, verdict.because) == (
        "fail",
        "ttft_ms p95 812.0 ms exceeds 500.0 ms at 4 requests/s",
    )


@pytest.mark.parametrize(
    ("requests", "latency_ms", "status"),
    [(45, 100.0, "pass"), (44, 100.0, "inconclusive"), (44, 812.0, "fail")],
)
def test_with_a_confidence_a_verdict_takes_proof(
    level: MakeLevel, requests: int, latency_ms: float, status: str
) -> None:
    measured = replace(
        level(4, requests=requests, succeeded=requests), ttft_ms=distribution_of(sample_of([latency_ms] * requests))
    )
    assert verdict_at(4, [measured], [TTFT], confidence=0.9).status == status


def test_a_level_above_that_proves_nothing_lets_nothing_pass(level: MakeLevel) -> None:
    verdict = verdict_at(3, [level(4)], [TTFT], confidence=0.9)  # without a histogram
    assert (verdict.status, verdict.because) == (
        "inconclusive", "concurrency 3 per copy was not measured; measured levels: 4"
    )  # fmt: skip


def test_the_level_itself_is_judged_by_its_measured_values(level: MakeLevel) -> None:
    assert judged(level(4), [TTFT]).meets_slo  # knees need no proof; the verdict does


def test_a_missed_objective_fails_beside_one_that_was_not_measured(level: MakeLevel) -> None:
    verdict = verdict_at(4, [level(4, ttft_ms=None, output_tok_s=80.0)], [TTFT, THROUGHPUT])
    assert verdict.status == "fail"
    assert [check.met for check in verdict.checks] == [None, False]


def test_a_doubt_takes_the_proof_of_a_pass_and_keeps_what_was_measured(level: MakeLevel) -> None:
    passed = verdict_at(4, [level(4)], [TTFT])
    doubted = inconclusive(passed, "the client was the limit")
    assert (passed.status, doubted.status, doubted.checks) == ("pass", "inconclusive", passed.checks)
    assert doubted.because == f"the client was the limit; {passed.because}"


def test_sentences_of_an_open_loop_name_its_rate(level: MakeLevel) -> None:
    offered = {"arrival": "poisson", "offered_requests_per_s": 2.5}
    slow = judged(level(9, ttft_ms=812.0, **offered), [TTFT])
    dead = level(9, succeeded=0, errors={"throttled": 8}, **offered)
    told = [
        verdict_at(4, [slow], [TTFT]).because,
        verdict_at(4, [level(9, **offered)], [TTFT]).because,
        verdict_at(4, [dead], [TTFT]).because,
        verdict_at(4, [replace(slow, void=lagging("slow"))], [TTFT]).because,
        verdict_at(4, [slow], [TTFT], confidence=0.9).because,
        with_error_rate(Verdict(status="pass", because="", checks=()), [dead], Gate(max_error_rate=0.1)).because,
        *slow.misses,
    ]
    assert all("at 2.5 requests/s" in sentence and "concurrency" not in sentence for sentence in told), told
