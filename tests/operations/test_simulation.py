"""Traffic over time and its simulation, beside closed forms and beside what AWS documents."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice, repeat
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from ministack.services import eventbridge

from benchmarks.embedded_days import DAYS, both
from seatrial.deployment.starts import start_parts
from seatrial.documents.simulation import Traffic
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.fleet import CopyFleet, CopyService, simulate_days
from seatrial.operations.traffic import DRAWS, TrafficSource, endpoint_traffic, read_traffic
from seatrial.specs.hosting import HostingSpec
from seatrial.specs.load import load_spec
from seatrial.specs.scaling import InstanceScaleInSpec, ScalingScheduleSpec, ScalingSpec, fire_times
from seatrial_base.errors import SeatrialError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial.documents.simulation import Simulation

ROOT = Path(__file__).parents[2]
EXPONENTIAL = tuple(-math.log(1 - (place + 0.5) / DRAWS) for place in range(DRAWS))
TWO_KINDS = (*repeat(0.25, DRAWS * 3 // 4), *repeat(3.25, DRAWS // 4))


def served(services_s: tuple[float, ...], *, slots: int, queue: int, load: float, copies: int = 1) -> CopyFleet:
    """Return a fleet after random arrivals; `load` is the share of its slots that they need. Two copies are random."""
    mean_s, count = sum(services_s) / DRAWS / copies, 300_000
    chance = None if copies == 1 else random.Random(3).random  # noqa: S311 (repeated)
    fleet = CopyFleet(CopyService(slots, queue, lambda _: [(each, 0, 0.0) for each in services_s]), chance)
    for _ in range(copies):
        fleet.open()
    draw, at_s = random.Random(7), 0.0  # noqa: S311 (repeated)
    times = [at_s := at_s + draw.expovariate(load * slots / mean_s) for _ in range(count)]
    fleet.serve(times, [draw.randrange(DRAWS) for _ in times])
    fleet.settle(math.inf)
    return fleet


def erlang_b(slots: int, offered: float) -> float:
    blocked = 1.0
    for number in range(1, slots + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return blocked


@pytest.mark.parametrize(("slots", "load"), [(1, 0.5), (4, 0.7), (16, 0.8)])
def test_many_slots_wait_as_erlang_c_says(slots: int, load: float) -> None:
    blocked = erlang_b(slots, slots * load)
    waits = blocked / (1 - load * (1 - blocked))
    fleet, mean_s = served(EXPONENTIAL, slots=slots, queue=10**9, load=load), sum(EXPONENTIAL) / DRAWS
    answered = sum(fleet.missed)
    assert answered == 300_000
    assert fleet.waited / answered == pytest.approx(waits, rel=0.03)
    assert fleet.wait_s / answered == pytest.approx(waits * mean_s / (slots * (1 - load)), rel=0.03)


# A router that draws a copy splits a Poisson process into one for each.
@pytest.mark.parametrize(("services_s", "copies"), [(tuple(repeat(1.0, DRAWS)), 1), (TWO_KINDS, 1), (TWO_KINDS, 2)])
def test_one_slot_waits_as_pollaczek_and_khinchine_say(services_s: tuple[float, ...], copies: int) -> None:
    fleet, mean_s = served(services_s, slots=1, queue=10**9, load=0.6, copies=copies), sum(services_s) / DRAWS
    square = sum(each**2 for each in services_s) / DRAWS
    wait_s = (0.6 / mean_s) * square / (2 * (1 - 0.6))
    assert fleet.wait_s / sum(fleet.missed) == pytest.approx(wait_s, rel=0.03)


def test_without_a_queue_as_many_are_refused_as_erlang_b_says() -> None:
    fleet = served(TWO_KINDS, slots=8, queue=0, load=0.9)
    assert fleet.refused_full / 300_000 == pytest.approx(erlang_b(8, 7.2), rel=0.03)
    assert (fleet.refused_without_copy, fleet.waited) == (0, 0)


def test_the_router_takes_the_copy_with_the_fewest_and_a_closed_one_ends_what_it_has() -> None:
    fleet = CopyFleet(CopyService(2, 1, lambda _: [(100.0, 0, 0.0)] * DRAWS))
    fleet.serve([0.0], [0])
    assert fleet.refused_without_copy == 1
    first, second = fleet.open(), fleet.open()
    fleet.serve([1.0, 2.0, 3.0], [0, 0, 0])
    assert (fleet.loads[first], fleet.loads[second]) == (2, 1)
    fleet.close(second)
    fleet.serve([4.0, 5.0], [0, 0])
    assert (fleet.outstanding, fleet.refused_full) == (3, 1)
    assert fleet.open() not in {first, second}
    fleet.settle(150.0)
    assert fleet.open() == second


def traffic_of(folder: Path, text: str, name: str = "traffic.yaml") -> TrafficSource:
    (folder / name).write_text(text, encoding="utf-8")
    return read_traffic(folder / name, lambda tokens: tokens / 10)


def test_a_profile_has_its_rates_in_its_time_zone(tmp_path: Path) -> None:
    profile = "hours: {'08-18': 1, '18-22': 0.5}, weekend_share: 0.2, weekdays: {sun: 0}, ramp_minutes: 0"
    text = f"{{start: '2026-03-27', timezone: Europe/Berlin, profile: {{peak_requests_per_second: 5, {profile}}}}}"
    counts = [len(times) for times, _ in traffic_of(tmp_path, text).minutes(4, 3)]
    hours = [sum(counts[first : first + 60]) for first in range(0, len(counts), 60)]
    assert sum(hours[8:18]) == pytest.approx(10 * 3600 * 5, rel=0.01)
    assert sum(hours[18:22]) == pytest.approx(4 * 3600 * 2.5, rel=0.02)
    assert sum(hours[24 + 8 : 24 + 18]) == pytest.approx(10 * 3600, rel=0.03)
    assert sum(hours[:8]) == sum(hours[48:72]) == 0
    # On Sunday the clock skipped an hour: Monday's traffic begins an hour earlier after the start.
    assert (hours[72 + 6], hours[72 + 7] > 0) == (0, True)


def test_a_profile_ramps_grows_and_draws_alike_for_a_seed(tmp_path: Path) -> None:
    profile = "hours: {'12-24': 1}, growth_per_month: 1.0"
    source = traffic_of(tmp_path, f"profile: {{peak_requests_per_second: 10, {profile}}}")
    minutes = list(source.minutes(1, 5))
    assert list(source.minutes(1, 5)) == minutes != list(source.minutes(1, 6))
    counts = [len(times) for times, _ in minutes]
    # The evening before goes on into the first half hour.
    assert sum(counts[30:690]) == 0 < sum(counts[690:700]) < sum(counts[740:750]) / 2
    assert sum(counts[705:735]) == pytest.approx(30 * 60 * 5, rel=0.05)
    rare = traffic_of(tmp_path, f"profile: {{peak_requests_per_second: 0.5, {profile}}}")
    late = islice(rare.minutes(31, 5), 30 * 1440 + 780, 30 * 1440 + 900)
    assert sum(len(times) for times, _ in late) == pytest.approx(2 * 2 * 1_800, rel=0.05)
    assert all(60 * place <= at < 60 * place + 60 for place, (times, _) in enumerate(minutes) for at in times)


def test_counts_are_repeated_and_a_recording_keeps_times_lengths_and_sessions(tmp_path: Path) -> None:
    source = traffic_of(tmp_path, "counts: {period_s: 43200, requests: [43200, 0]}")
    counts = [len(times) for times, _ in source.minutes(2, 1)]
    halves = [sum(counts[first : first + 720]) for first in range(0, 2880, 720)]
    assert (source.days, halves[1], halves[3]) == (1, 0, 0)
    assert [halves[0], halves[2]] == pytest.approx([43_200] * 2, rel=0.02)

    lines = '{"timestamp": 61000, "input_length": 5, "output_length": 70}\n'
    lines += '{"timestamp": 0, "input_length": 5, "output_length": 10}\n'
    log = traffic_of(tmp_path, lines, "log.jsonl")
    requests = [
        (at, log.lengths[kind]) for minute in islice(log.minutes(2, 1), 2) for at, kind in zip(*minute, strict=True)
    ]
    assert requests == [(0.0, 10), (61.0, 70)]
    assert [list(times) for times, _ in islice(log.minutes(2, 1), 1440, 1442)] == [[86_400.0], [86_461.0]]

    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 50}
    spans = [{"trace_id": "1", "span_id": f"{turn}", "attributes": usage} for turn in range(2)]
    for turn, each in enumerate(spans):
        each |= {"start_time": f"2026-11-27T10:0{turn}:00Z", "end_time": f"2026-11-27T10:0{turn}:20Z"}
    spoken = traffic_of(tmp_path, "\n".join(map(json.dumps, spans)), "spans.jsonl")
    turns = [list(times) for times, _ in islice(spoken.minutes(1, 1), 2)]
    # 50 tokens take 5 s here, not the recorded 20; the gap of 40 s stays.
    assert turns == [[0.0, 45.0], []]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{timezone: Mars/Base}", {"SEA560 ", "SEA561 timezone"}),
        ("{counts: {period_s: 90, requests: []}}", {"SEA107 counts.period_s", "SEA107 counts.requests"}),
        (
            "profile: {peak_requests_per_second: 1, hours: {'08-12': 1, '11-13': 1, '20-06': 1}}",
            {"SEA561 profile.hours.11-13", "SEA561 profile.hours.20-06"},
        ),
    ],
)
def test_every_problem_of_a_traffic_document_is_listed(tmp_path: Path, text: str, expected: set[str]) -> None:
    with pytest.raises(SpecError) as refused:
        traffic_of(tmp_path, text)
    assert {f"{each.rule} {each.field}" for each in refused.value.problems} == expected


def test_a_wrong_date_is_told_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        traffic_of(tmp_path, "{start: yesterday, counts: {requests: [1]}}")
    (problem,) = refused.value.problems
    assert (problem.rule, problem.field, problem.hint) == ("SEA105", "start", 'write a date in quotes: "2026-01-05"')


def test_sessions_without_times_are_refused(tmp_path: Path) -> None:
    weka = '{"id": "a", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": '
    weka += '[{"t": 0, "type": "s", "model": "m", "in": 9, "out": 2, "hash_ids": [1], "api_time": 0.2}]}'
    with pytest.raises(SeatrialError, match="SEA562"):
        traffic_of(tmp_path, weka, "weka.json")


CRONS = """*/20 8-10 ? * MON,WED-FRI *; 5 1 LW * ? *; 0 0 L * ? *; 0 3 1W,15W,31W * ? *; 0 3 ? * 6L *; 0 3 ? * MON#2 *;
0 0/6 1,15 JAN,MAR ? 2026-2027"""


@pytest.mark.parametrize("expression", [f"cron({each.strip()})" for each in CRONS.split(";")])
def test_schedules_come_due_when_the_embedded_aws_lets_them(expression: str) -> None:
    zone, fields = ZoneInfo("UTC"), eventbridge._parse_cron_fields(expression)  # noqa: SLF001 (as the embedded AWS)
    at, end, due = datetime(2025, 12, 31, 23, 59, tzinfo=zone), datetime(2027, 2, 5, tzinfo=zone), []
    while (at := eventbridge._cron_next_fire(fields, at) or end) < end:  # noqa: SLF001 (likewise)
        due.append(at)
    assert list(fire_times(expression, zone, date(2026, 1, 1), 400)) == due != []


def test_a_week_may_wrap_and_rates_and_single_times_come_due() -> None:
    zone, monday = ZoneInfo("Europe/Berlin"), date(2026, 1, 5)
    assert [at.day for at in fire_times("cron(0 9 ? * FRI-MON *)", zone, monday, 7)] == [5, 9, 10, 11]
    assert [at.day for at in fire_times("cron(0 9 ? * L *)", zone, monday, 14)] == [10, 17]
    assert len(list(fire_times("rate(6 hours)", zone, monday, 2))) == 8
    assert [at.day for at in fire_times("at(2026-01-06T10:00:00)", zone, monday, 2)] == [6]
    assert list(fire_times("at(2026-01-07T10:00:00)", zone, monday, 2)) == []


def hourly(rates: dict[int, float], days: int) -> TrafficSource:
    """Return traffic that comes evenly, at so many requests per second in some hours."""

    def minutes(days: int, seed: int) -> Iterator[tuple[list[float], list[int]]]:
        for number in range(days * 1440):
            rate = rates.get(number // 60 % 24, 0.0)
            times = [number * 60 + place / rate for place in range(round(rate * 60))]
            yield times, [(seed + 37 * place) % DRAWS for place in range(len(times))]

    return TrafficSource("even", date(2026, 1, 5), UTC, days, minutes)


def simulated(
    rates: dict[int, float],
    *,
    target: float,
    days: int = 1,
    planned: dict[str, int] | None = None,
    hosting: Mapping[str, object] | None = None,
    prompts_s: tuple[float, ...] = (),
    quota: int | None = None,
    **scaling: object,
) -> Simulation:
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan = read_locked_plan(loaded)
    values = {"target_concurrency_per_copy": target, **(planned or {})}
    decided = {name: getattr(plan, name).model_copy(update={"value": value}) for name, value in values.items()}
    plan = plan.model_copy(update={**decided, "max_instances": 4})
    parts = {"scaling": ScalingSpec.model_validate(scaling), "hosting": HostingSpec.model_validate(hosting or {})}
    loaded = replace(loaded, endpoint=loaded.endpoint.model_copy(update=parts))
    starts = start_parts(plan, loaded, instance_s=600, copy_s=300)
    options = {"days": days, "seed": 1, "prompts_s": prompts_s, "quota": quota}
    return simulate_days(loaded, plan, hourly(rates, days), starts=starts, **options)  # type: ignore[arg-type]  # each its own


def test_copies_follow_the_load_as_target_tracking_documents_it() -> None:
    # 2 requests/s of some 5.5 s are 11 in flight, and more while they grow: beyond the target of 8 for one copy.
    done = simulated({0: 2.0}, target=8.0, min_copies=1, max_copies=4)
    out, *_, last = done.events
    # After three periods of 10 s; the copy serves 900 s later, and fifteen minutes of rest take it away: what ends in
    # the first 10 s of the rest still counts there, as the Maximum of its period.
    assert (out.minute, out.copies, "AlarmHigh" in out.cause) == (0.5, 2, True)
    assert [done.minutes.copies[minute] for minute in (14, 15)] == [1, 2]
    assert (last.minute, last.copies, "AlarmLow" in last.cause) == (75.17, 1, True)
    # Its instance goes 20 minutes later, down to the one that the plan began with.
    assert [done.minutes.instances[minute] for minute in (94, 95)] == [2, 1]
    assert (done.refused_without_copy, done.refused_full) == (0, 0)
    cost = done.cost
    assert cost is not None
    hours = cost.serving_usd_per_day, cost.starting_usd_per_day, cost.idle_usd_per_day
    assert [each / cost.usd_per_instance_hour * 60 for each in hours] == pytest.approx([1440 + 59.5, 15, 20], abs=0.2)
    assert cost.usd_per_day == pytest.approx(sum(hours))


def test_copies_are_those_of_the_embedded_aws_under_the_same_traffic() -> None:
    done, embedded = both(DAYS["zero at night"])
    assert ({copies for copies, _ in embedded}, done.waited) == ({0, 1, 2, 3}, 0)
    assert sum(map(eq, zip(done.minutes.copies, done.minutes.instances, strict=True), embedded)) / 1440 >= 0.99


def test_at_zero_requests_are_refused_until_a_copy_serves() -> None:
    done = simulated({2: 0.5}, target=8.0, min_copies=0, max_copies=2)
    zero, wake, *_, again = done.events
    assert (zero.minute, zero.copies) == (15.0, 0)
    assert [done.minutes.instances[minute] for minute in (33, 34)] == [1, 0]
    # The alarm needs the first minute's refusals; then 900 s for instance and copy.
    assert (wake.minute, wake.copies, wake.cause) == (121.0, 1, "from-zero")
    assert done.refused_without_copy == sum(done.minutes.refused[120:136]) == 30 * 16
    assert (again.copies, again.minute, done.minutes.instances[-1]) == (0, 195.17, 0)
    assert done.within_slo == pytest.approx(1 - done.refused_without_copy / done.requests)
    assert done.meets_slo is False
    # The worst minute refuses 30 requests; a copy with 8 in flight answers one and a half in a second.
    other = done.second_region
    assert other is not None
    assert (other.requests, other.peak_requests_per_second, other.copies, other.instances) == (30 * 16, 0.5, 1, 1)
    assert other.requests_per_second_per_copy == pytest.approx(8 / 5.6, rel=0.1)
    assert simulated({2: 0.5}, target=8.0, min_copies=1, max_copies=1).second_region is None


def test_schedules_protection_and_a_fixed_number() -> None:
    schedule = ScalingScheduleSpec(name="day", schedule="cron(0 6 * * ? *)", timezone="Europe/Berlin", min_copies=3)
    night = schedule.model_copy(update={"name": "night", "schedule": "cron(0 20 * * ? *)", "min_copies": 1})
    protected = partial(simulated, {}, target=8.0, min_copies=1, max_copies=4, scale_in_protection=True)
    # What the schedules of the days before left holds from the first minute on.
    (held,) = protected(schedules=(schedule,)).events
    assert (held.minute, held.copies) == (0.17, 3)
    done = protected(schedules=(schedule, night))
    assert [(each.minute, each.copies) for each in done.events] == [(300.0, 3)]
    assert (done.minutes.copies[314], done.minutes.copies[315], done.minutes.copies[-1]) == (3, 3, 3)
    assert (done.requests, done.meets_slo) == (0, None)
    fixed = simulated({0: 9.0}, target=8.0, min_copies=1, max_copies=1)
    assert (fixed.events, set(fixed.minutes.copies)) == ((), {1})


def test_instances_go_a_step_at_a_time_and_no_more_run_than_may() -> None:
    release = InstanceScaleInSpec(max_step=1, cooldown_minutes=30)
    done = simulated({0: 20.0}, target=4.0, min_copies=1, max_copies=9, instance_scale_in=release)
    assert max(done.minutes.instances) == max(done.minutes.copies) == 4
    drops = [at for at in range(1, 1440) if done.minutes.instances[at] < done.minutes.instances[at - 1]]
    assert len(drops) == 3
    assert drops[1] - drops[0] == drops[2] - drops[1] == 30


def test_no_more_instances_run_than_the_quota_has() -> None:
    free = simulated({0: 20.0}, target=4.0, min_copies=1, max_copies=4, quota=4)
    held = simulated({0: 20.0}, target=4.0, min_copies=1, max_copies=4, quota=2)
    assert (max(free.minutes.instances), free.quota_instances, free.copies_over_quota) == (4, 4, 0)
    assert (max(held.minutes.instances), held.quota_instances, held.copies_over_quota) == (2, 2, 2)
    assert held.refused_full > free.refused_full
    with pytest.raises(SpecError, match="SEA574"):
        simulated({}, target=4.0, planned={"instance_count": 3}, min_copies=3, max_copies=4, quota=2)


def test_what_a_spec_has_and_nobody_simulates_is_said() -> None:
    planned, release = {"copies_per_instance": 2}, InstanceScaleInSpec(strategy="consolidation")
    pools = {"placement": {}, "instance_pools": ["ml.g5.2xlarge", "ml.g6e.2xlarge"]}
    hosting = {**pools, "routing": {"strategy": "prefix_aware"}}
    usual, left = (set(simulated({}, target=8.0, planned=planned, hosting=of).not_simulated) for of in ({}, hosting))
    moved = set(simulated({}, target=8.0, planned=planned, instance_scale_in=release).not_simulated)
    assert sorted(each.partition(":")[0] for each in left - usual) == [
        "`placement`, `consolidation`", "other `instance_pools`", "routing by prefix"
    ]  # fmt: skip
    assert moved - usual == {"`placement`, `consolidation`: instances fill one by one"}


def test_a_router_draws_copies_and_a_prompt_takes_its_time_where_they_are_said_to() -> None:
    copies: dict[str, Any] = {"planned": {"copy_count": 2, "max_num_seqs": 8}, "min_copies": 2, "max_copies": 2}
    drawn = simulated({1: 2.5}, target=99.0, hosting={"routing": {"strategy": "random"}}, **copies)
    usual, longer = (simulated({1: 2.5}, target=99.0, prompts_s=(of,) * DRAWS, **copies) for of in (0.0, 3.0))
    assert drawn.waited > usual.waited + 0.02
    assert [[each.share for each in one.objectives] for one in (usual, longer)] == [[1.0, 1.0], [0.0, 1.0]]
    assert "but for the work on each" in " ".join(usual.not_simulated)


def test_kinds_that_are_not_simulated_are_refused_with_every_reason() -> None:
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    many = {"more_models": ("b",), "shadow": 1, "variants": (1,)}
    hosting = HostingSpec.model_construct(**{**dict(loaded.endpoint.hosting), **many})
    other = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"hosting": hosting}))
    with pytest.raises(SpecError) as refused:
        simulate_days(other, read_locked_plan(loaded), hourly({}, 1), days=1, seed=1, starts=())
    fields = [each.field for each in refused.value.problems]
    assert fields == ["hosting.variants", "hosting.shadow", "hosting.more_models"]


class Account:
    """CloudWatch and SageMaker of an endpoint; `sums` has a metric's periods, the same of each component."""

    def __init__(self, *components: str, **sums: Sequence[float]) -> None:
        self.components, self.sums, self.queries = components, sums, list[object]()

    def get_paginator(self, name: str) -> Account:
        self.paginate = getattr(self, name)
        return self

    def list_inference_components(self, **_: object) -> list[dict[str, object]]:
        return [{"InferenceComponents": [{"InferenceComponentName": name} for name in self.components]}]

    def get_metric_data(self, **request: Any) -> list[dict[str, object]]:  # noqa: ANN401 (queries)
        self.queries += request["MetricDataQueries"]
        results = []
        for each in request["MetricDataQueries"]:
            values, period_s = (
                self.sums.get(each["MetricStat"]["Metric"]["MetricName"], ()),
                each["MetricStat"]["Period"],
            )
            times = [request["StartTime"] + timedelta(seconds=period_s * place) for place in range(len(values))]
            results.append({"Id": each["Id"], "Timestamps": times, "Values": values})
        return [{"MetricDataResults": results}]


def test_the_traffic_of_an_endpoint_is_that_of_its_components() -> None:
    account = Account("a", "b", Invocations=(3, 0, 4))
    traffic = endpoint_traffic(account, account, "chat", datetime(2026, 11, 27, 9, tzinfo=UTC))  # type: ignore[arg-type]  # both clients
    assert traffic.counts is not None
    assert (traffic.start, len(traffic.counts.requests)) == (date(2026, 11, 20), 2016)
    assert traffic.counts.requests[:4] == (6, 0, 8, 0)
    assert str(account.queries).count("InferenceComponentName") == 2
    assert Traffic.model_validate(traffic.model_dump(mode="json")) == traffic
    with pytest.raises(SpecError, match="SEA563"):
        endpoint_traffic(Account("a"), Account("a"), "chat", datetime(2026, 11, 27, tzinfo=UTC))  # type: ignore[arg-type]  # likewise
