"""A level that ends early keeps what it had measured: with whose numbers, which intervals, and what they may prove."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.client.worker_pool import PoolResult
from seatrial_load.documents.progress import NextLevel, TrialProgress
from seatrial_load.documents.result import ClientEvidence
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.measure.interval import BOTH_TAILS, percentile_interval
from seatrial_load.metrics.level import LevelSize
from seatrial_load.trial.finalize import conclude_trial
from seatrial_load.trial.steps import LoadedLevel, add_level, tallied
from tests.load.conftest import make_record, make_request

if TYPE_CHECKING:
    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.result import LevelResult

STREAMS, ROUNDS, CUT_S = 8, 7, 6.9
"""Eight streams, a request a second each, begun an eighth of a second apart: at 6.9 s 48 of 56 requests have ended."""
OVER = Stop(reason=StopReason.BUDGET, because="the budget of 7 s ended (48 of 56 requests had ended)")
EVIDENCE = ClientEvidence(
    workers=1, streams=STREAMS, receive_lag_p99_ms=None, delivered_concurrency=None, cpu_share=None
)
REQUEST = replace(make_request(gate_concurrency=STREAMS), expected=None)
PROGRESS = TrialProgress(started_at="2026-11-27T10:00:00+00:00", elapsed_s=7.0, sent=0, live=not_proven())


def sent(index: int, sent_s: float, *, ended: bool) -> RequestRecord:
    times_s = tuple(sent_s + 0.2 + 0.01 * index / 56 + 0.25 * token for token in range(4))
    first_s, last_s = times_s[0], times_s[-1]
    times: dict[str, object] = {"first_token_s": first_s, "token_times_s": times_s, "last_token_s": last_s}
    if ended:
        return make_record(index=index, sent_s=sent_s, ended_s=sent_s + 1.0, **times)
    return make_record(index=index, sent_s=sent_s, ended_s=CUT_S, error="unanswered", output_tokens=None, **times)


def records(*, hangs: int | None = None) -> list[RequestRecord]:
    """The requests until the cut, where that with a number may hang: its stream sends no more."""
    numbers = [n for n in range(STREAMS * ROUNDS) if hangs is None or n % STREAMS != hangs % STREAMS or n <= hangs]
    begun = [(n, n % STREAMS / 8 + n // STREAMS) for n in numbers]
    return [sent(n, at_s, ended=at_s + 1.0 <= CUT_S and n != hangs) for n, at_s in begun]


def loaded_level(each: list[RequestRecord], cut: Stop | None = OVER) -> LoadedLevel:
    pool = PoolResult(
        records=tuple(each), cut=bool(cut), started_s=0.0, ended_s=CUT_S, enough_because=None, evidence=EVIDENCE
    )
    size = LevelSize(streams=STREAMS, ramp=STREAMS, least=40, most=48)
    return LoadedLevel(pool=pool, size=size, sent=len(each), offered_per_s=None, cut=cut)


def added(loaded: LoadedLevel) -> TrialProgress:
    step = NextLevel(concurrency=STREAMS, because="")
    return add_level(REQUEST, PROGRESS, step, tallied(REQUEST, step, loaded))


def cut_level(each: list[RequestRecord], cut: Stop = OVER) -> LevelResult:
    progress = added(loaded_level(each, cut))
    assert progress.levels == ()
    (level,) = progress.cut
    assert (level.cut, level.valid) == (cut.because, False)
    return level


def test_a_cut_level_has_the_numbers_of_a_whole_one_of_the_requests_that_had_ended() -> None:
    each = records()
    assert loaded_level(each).measured == 40
    level = cut_level(each)
    (whole,) = added(loaded_level([record for record in each if record.succeeded], cut=None)).levels
    assert (whole.requests, whole.window, whole.valid) == (40, "steady", True)
    assert replace(level, cut="", enough_because=whole.enough_because) == whole


def test_one_that_others_overtook_leaves_the_upper_ends_open() -> None:
    level = cut_level(records(hangs=9))
    assert (level.requests, level.succeeded) == (35, 35)
    assert level.ttft_ms is not None
    assert level.ttft_ms.intervals["mean"].high is None
    ttft_ms = [200 + 10 * n / 56 for n in range(8, 48) if n % STREAMS != 1]
    bounds = percentile_interval([*ttft_ms, math.inf], 50, tail=BOTH_TAILS)
    assert level.ttft_ms.intervals["p50"].high == pytest.approx(bounds.high, abs=0.05)
    assert bounds.high != percentile_interval(ttft_ms, 50, tail=BOTH_TAILS).high
    assert level.ttft_ms.intervals["p95"].high is None
    reach, rate = level.output_tok_s_interval, level.output_tok_s
    assert reach is not None
    assert rate is not None
    assert (reach.high or 0.0) - rate == pytest.approx(rate - (reach.low or 0.0) + 4 / level.window_s)


def test_a_cut_level_at_the_gate_proves_nothing_and_shows_what_it_measured() -> None:
    ended = replace(added(loaded_level(records())), stopped=OVER)
    result = conclude_trial(REQUEST, ended)
    assert [(level.concurrency, level.mark) for level in result.levels] == [(STREAMS, "cut")]
    assert result.verdict.status == "inconclusive"
    (check,) = result.verdict.checks
    assert check.measured == pytest.approx(209, abs=1.0)
    assert check.met is None
    assert all(knee.concurrency is None for knee in result.knees)


def test_a_level_whose_processes_failed_is_void_and_keeps_its_numbers() -> None:
    lost = Stop(reason=StopReason.LOAD_FAILED, because="process 2 of 2 was killed by signal 9")
    level = cut_level(records(), lost)
    assert (level.mark, level.invalid_because, level.succeeded) == ("void", lost.because, 40)
