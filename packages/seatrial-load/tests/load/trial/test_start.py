"""The start of a closed loop's level: spread, its time to first token is that of users who come at random.

The engine here is simulated: a front end that takes requests one after the other, steps that decode the whole batch,
and prompts that make a step longer. Nothing is measured.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.arrivals import REST_SHARE, rest_s, spread_starts
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.result import LiveProof
from seatrial_load.measure.curves import Reading, saturation
from seatrial_load.metrics.counts import unmeasured_of
from seatrial_load.metrics.level import level_of_records
from seatrial_load.metrics.sent import convoy_lines
from seatrial_load.trial.steps import first_starts, plan_shares
from tests.load.conftest import flat, make_level, make_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

FRONT_END_S, STEP_S, PROMPT_S, PROMPTS_PER_STEP, TOKENS = 0.0012, 0.009, 0.025, 8, 200  # near those of an H200
LEVELS = {8: 2.0, 16: 2.2, 32: 2.6, 64: 3.3, 128: 4.9}  # in flight: seconds of a request
SEEDS = range(3)


def served(sent_s: list[float], total: int, follow: Callable[[int, float, float], float] | None) -> list[RequestRecord]:
    """Serve requests, and after each one the next of its client: `follow` says when, by number, sending and end.

    The front end is one process that takes turns among its requests: those that come while it is busy get through
    together. So 8 requests of a step, which it needs 9.6 ms for, meet those of the next step, 9 ms later.
    """
    heapq.heapify(sent_s)
    issued, free_s, now_s = len(sent_s), 0.0, 0.0
    held: list[float] = []
    waiting: list[float] = []
    running: list[tuple[float, float, int]] = []
    records: list[RequestRecord] = []
    while len(records) < total:
        while sent_s and sent_s[0] <= now_s:
            if held and sent_s[0] > free_s:
                waiting, held = waiting + held, []
            free_s = max(sent_s[0], free_s) + FRONT_END_S
            held.append(heapq.heappop(sent_s))
        if held and free_s <= now_s:
            waiting, held = waiting + held, []
        if not waiting and not running:
            now_s = free_s if held else sent_s[0]
            continue
        admitted, waiting = waiting[:PROMPTS_PER_STEP], waiting[PROMPTS_PER_STEP:]
        now_s += STEP_S + PROMPT_S * len(admitted)
        still: list[tuple[float, float, int]] = []
        for sent, first, left in running:
            if left > 1:
                still.append((sent, first, left - 1))
                continue
            times = {"first_token_s": first, "token_times_s": (first, now_s), "last_token_s": now_s, "ended_s": now_s}
            records.append(make_record(sent_s=sent, output_tokens=TOKENS, output_tokens_from="reported", **times))
            if follow is not None and issued < total:
                heapq.heappush(sent_s, follow(issued, sent, now_s))
                issued += 1
        running = still + [(sent, now_s, TOKENS - 1) for sent in admitted]
    return sorted(records, key=lambda record: record.sent_s)


def level(records: Sequence[RequestRecord], ramp: int) -> LevelResult:
    numbered = [replace(record, index=number) for number, record in enumerate(records)]
    return level_of_records(1, numbered, (), ramp=ramp)


def closed(in_flight: int, seed: int, *, spread: bool) -> LevelResult:
    starts = spread_starts(in_flight, LEVELS[in_flight], f"{seed}") if spread else [0.0] * in_flight
    share = REST_SHARE if spread else 0.0

    def follow(number: int, sent: float, ended: float) -> float:
        return ended + rest_s(share, 1_000 * seed + number, ended - sent)

    return level(served(list(starts), 5 * in_flight, follow), in_flight)


def at_random(per_s: float, in_flight: int, seed: int) -> LevelResult:
    chance, at_s, sent = random.Random(seed), 0.0, []  # noqa: S311 (times, no secret)
    for _ in range(40 * in_flight):
        at_s += chance.expovariate(per_s)
        sent.append(at_s)
    return level(served(sent, len(sent), None), 10 * in_flight)


def ttft(one: LevelResult, name: str) -> float:
    return float(getattr(one.ttft_ms, name))


@pytest.mark.parametrize("in_flight", LEVELS)
def test_a_spread_start_has_the_first_tokens_of_random_arrivals(in_flight: int) -> None:
    spread = [closed(in_flight, seed, spread=True) for seed in SEEDS]
    together = closed(in_flight, 0, spread=False)
    per_s = fmean(one.requests_per_s or 0.0 for one in spread)
    at_any_time = [at_random(per_s, in_flight, seed) for seed in SEEDS]
    mean_ms, p95_ms = (fmean(ttft(one, name) for one in at_any_time) for name in ("mean", "p95"))
    assert fmean(ttft(one, "mean") for one in spread) == pytest.approx(mean_ms, rel=0.15)
    assert fmean(ttft(one, "p95") for one in spread) == pytest.approx(p95_ms, rel=0.25)
    assert ttft(together, "mean") > 3 * mean_ms
    assert (together.convoy_share or 0.0) > 0.8
    assert max(one.convoy_share or 0.0 for one in spread) < 0.2


@pytest.mark.parametrize(("in_flight", "mean_ms", "p95_ms"), [(16, 263, 376), (64, 830, 1_529), (128, 1_557, 2_960)])
def test_a_common_start_has_the_convoys_of_an_h200(in_flight: int, mean_ms: float, p95_ms: float) -> None:
    """Measured of Llama-3.1-8B on vLLM 0.20.2, 1,000 + 200 tokens, all started together."""
    together = closed(in_flight, 0, spread=False)
    assert ttft(together, "mean") == pytest.approx(mean_ms, rel=0.25)
    assert ttft(together, "p95") == pytest.approx(p95_ms, rel=0.25)


def test_the_time_of_a_level_its_throughput_and_the_knee_stay() -> None:
    """Over many rounds: the first of a common start begin with an idle engine, the last of a spread one drain."""
    throughputs: list[list[Reading]] = [[], []]
    for in_flight, span_s in LEVELS.items():
        starts = spread_starts(in_flight, span_s, "0")
        together, spread = (
            served(list(first), 20 * in_flight, lambda _, sent, ended: ended + share * (ended - sent) / 2)  # noqa: B023
            for first, share in (([0.0] * in_flight, 0.0), (starts, REST_SHARE))
        )
        for readings, records in zip(throughputs, (together, spread), strict=True):
            value = level(records, in_flight).output_tok_s or 0.0
            readings.append(Reading(load=in_flight, value=value))
        assert throughputs[1][-1].value == pytest.approx(throughputs[0][-1].value, rel=0.05)
        assert spread[5 * in_flight - 1].ended_s < 1.3 * together[5 * in_flight - 1].ended_s
    common, spread_knee = map(saturation, throughputs)
    assert common is not None
    assert spread_knee is not None
    assert (spread_knee.load, spread_knee.filling) == pytest.approx((common.load, common.filling), rel=0.05)


@pytest.fixture
def progress() -> TrialProgress:
    warm = [make_record(sent_s=0.0, ended_s=2.0), make_record(sent_s=0.0, ended_s=4.0)]
    live = LiveProof(proven=False, endpoint_config_name=None, model_name=None, copy_count=None, because="not proven")
    return TrialProgress(
        started_at="2026-11-27T00:00:00+00:00",
        elapsed_s=0.0,
        sent=2,
        live=live,
        unmeasured=(unmeasured_of(warm, "warm_up"),),
    )


def starting(request: TrialRequest, **changes: object) -> TrialRequest:
    return replace(request, load=replace(request.load, **{"budget_s": 600.0, **changes}))  # type: ignore[arg-type]


def test_starts_are_spread_over_the_time_of_one_request(
    trial_request: Callable[..., TrialRequest], progress: TrialProgress
) -> None:
    request = starting(trial_request(copy_count=2), start="spread")
    starts = first_starts(request, progress, 32)
    assert len(starts) == 64
    assert list(starts) == sorted(starts)
    assert starts[0] == 0
    assert 2.7 < starts[-1] < 3.0 * (1 + 1 / 64)  # the warm-up took 3 s on average
    # By a level before, and no longer than its requests took: with more in flight they take no less.
    levels = (make_level(8, e2e_latency_ms=flat(10_000.0)), make_level(64, e2e_latency_ms=flat(90_000.0)))
    slower = replace(progress, levels=levels)
    assert 9.0 < first_starts(request, slower, 32)[-1] < 10.5
    assert first_starts(request, progress, 32) == starts


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"start": "together"}, 0.0),
        ({"start": "spread", "request_timeout_s": 1.0}, 1.0),  # no longer than a request may take
        ({"start": "spread", "budget_s": 4.0}, 1.0),  # nor than a quarter of what is left
    ],
)
def test_the_spread_is_bounded(
    trial_request: Callable[..., TrialRequest], progress: TrialProgress, changes: dict[str, object], expected: float
) -> None:
    starts = first_starts(starting(trial_request(), **changes), progress, 32)
    assert max(starts, default=0.0) <= expected * (1 + 1 / 32)
    assert bool(starts) == bool(expected)


def test_workers_part_the_starts(trial_request: Callable[..., TrialRequest], progress: TrialProgress) -> None:
    request = starting(trial_request(), start="spread")
    shares = plan_shares(request, progress, 9, 2, 0.0)
    assert [len(share.starts_s) for share in shares] == [share.streams for share in shares] == [5, 4]
    assert sorted(start for share in shares for start in share.starts_s) == list(first_starts(request, progress, 9))


def test_a_convoy_is_named_from_a_quarter_of_the_requests_on() -> None:
    few, many = make_level(8, convoy_share=0.24), make_level(64, convoy_share=0.83)
    assert list(convoy_lines([few])) == []
    (line,) = convoy_lines([few, many])
    assert line.startswith("convoy: 83 % of the requests at concurrency 64 per copy were sent within one step ")
