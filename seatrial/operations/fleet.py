"""Simulates an endpoint under traffic over time: copies that batch and queue, scaling in the loop, instances, cost.

Each copy answers as the plan's curve says for as many requests as are in flight on it when an answer begins. What takes
minutes (scaling, starts, releases) is looked at every ten seconds, the period of the metric that is tracked.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import heappop, heappush
from math import ceil, exp, inf, log, sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial.documents.simulation import Minutes, ObjectiveShare, ScalingEvent, SecondRegion, SimulatedCost, Simulation
from seatrial.operations.traffic import DRAWS, S_PER_DAY, answer_lengths, midnight_s
from seatrial.specs.scaling import limits_over
from seatrial.specs.spec_files import hosts
from seatrial_base.autoscaling import (
    COPIES_COOLDOWN_FROM_ZERO_S,
    HIGH_PERIODS,
    IDLE_MINUTES,
    LOW_SHARE,
    LOW_WINDOW_S,
    PREDEFINED,
    Bounds,
    LastActions,
    PolicyReading,
    WantedStep,
    wanted_change,
)
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import MS_PER_S, S_PER_HOUR, S_PER_MINUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.documents.simulation import StartPart
    from seatrial.operations.traffic import TrafficSource
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.scaling import ScalingSpec
    from seatrial_base.autoscaling import CapacityChange


HOURS_PER_MONTH: Final = 730  # AWS's own month (AWS Pricing Calculator)
PERIOD_S: Final = PREDEFINED["SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"][3]
# Added to what is in flight on a copy that gets no more requests: more than any copy takes.
_CLOSED: Final = 1 << 40
_P95: Final = NormalDist().inv_cdf(0.95)
_NOT_SIMULATED: Final = (
    "answers that speed up or slow down while they go on: each takes as long as the curve says when it begins",
    "lack of capacity, failed starts, updates, trials, clients that give up or try again",
    "the 1 to 2 minutes that metrics and Application Auto Scaling usually take beside their periods",
    "caches of weights and images; costs beside instance hours",
)

Answer = tuple[float, int, float]
"""Seconds until the last token, the objectives that it misses (a bit each), seconds until the first token."""


class BoundedLatency(NamedTuple):
    """A bound on a latency, by the name in the spec, and the share of the answers that keep it."""

    name: str
    metric: str
    required: float
    bound_ms: float


@dataclass(frozen=True, slots=True)
class CopyService:
    """How a copy answers: so many requests at once while so many wait; by length, for so many in flight."""

    slots: int
    queue: int
    answers: Callable[[int], Sequence[Answer]]
    objectives: tuple[BoundedLatency, ...] = ()

    @property
    def strictest(self) -> int:
        """The bits that a single request is judged by: the highest percentile of each latency."""
        highest = {each.metric: bit for bit, each in enumerate(self.objectives)}  # ascending within a latency
        return sum(1 << bit for bit in highest.values())

    def missed(self, **latencies_s: float) -> int:
        """Return the bits of the objectives that some latencies miss."""
        judged = ((bit, each) for bit, each in enumerate(self.objectives) if each.metric in latencies_s)
        return sum(1 << bit for bit, each in judged if latencies_s[each.metric] * MS_PER_S > each.bound_ms)


@dataclass(slots=True)
class CopyFleet:
    """Copies behind a router that sends each request to the one with the fewest outstanding, or to any.

    Attributes:
        chance: Draws from 0 to 1 by which requests go to any copy; `None` by the fewest outstanding.
        loads: Requests outstanding on each copy; far more where it is closed.
        outstanding: Those in flight and waiting on the copies in service.
        missed: Answers by the objectives that they miss.
    """

    service: CopyService
    chance: Callable[[], float] | None = None
    loads: list[int] = field(default_factory=lambda: [_CLOSED])
    missed: list[int] = field(init=False)
    outstanding: int = 0
    refused_full: int = 0
    refused_without_copy: int = 0
    wait_s: float = 0.0
    waited: int = 0
    _waiting: list[deque[tuple[float, int]]] = field(default_factory=lambda: [deque()])
    _ends: list[tuple[float, int]] = field(default_factory=list)
    _rows: list[Sequence[Answer]] = field(init=False)
    _peak: int = 0

    def __post_init__(self) -> None:
        self.missed = [0] * (1 << len(self.service.objectives))
        self._rows = [()] * (self.service.slots + 1)

    def open(self) -> int:
        """Let one more copy get requests; return its place, which may be that of one that is gone and empty."""
        if _CLOSED not in self.loads:
            self.loads.append(_CLOSED)
            self._waiting.append(deque())
        place = self.loads.index(_CLOSED)
        self.loads[place] = 0
        return place

    def close(self, place: int) -> None:
        """Let a copy get no more requests; it answers those that it has."""
        self.outstanding -= self.loads[place]
        self._peak = self.outstanding
        self.loads[place] += _CLOSED

    def take_peak(self) -> int:
        """Return the most that was outstanding since the last call, as the Maximum of its metric is."""
        peak, self._peak = self._peak, self.outstanding
        return peak

    def serve(self, times: Sequence[float], kinds: Sequence[int]) -> None:
        """Take requests as they come; each is answered, waits or is refused."""
        # One step is a request: attributes would double its time.
        loads, ends, waiting, rows, missed = self.loads, self._ends, self._waiting, self._rows, self.missed
        slots, most = self.service.slots, self.service.slots + self.service.queue
        # Copies come and go between the calls alone. At random, a request that meets a full copy is refused.
        open_ = [place for place, load in enumerate(loads) if load < _CLOSED]
        chance = self.chance if open_ else None
        for at, kind in zip(times, kinds, strict=True):
            if ends and ends[0][0] <= at:
                self.settle(at)
            if chance is None:
                outstanding = min(loads)
                place = loads.index(outstanding)
            else:
                place = open_[int(chance() * len(open_))]
                outstanding = loads[place]
            running = outstanding + 1
            if running > most:
                if outstanding < _CLOSED:
                    self.refused_full += 1
                else:
                    self.refused_without_copy += 1
                continue
            loads[place] = running
            self.outstanding += 1
            if self.outstanding > self._peak:  # noqa: PLR1730 (a call for each request)
                self._peak = self.outstanding
            if running <= slots:
                last_s, misses, _ = (rows[running] or self._row(running))[kind]
                missed[misses] += 1
                heappush(ends, (at + last_s, place))
            else:
                waiting[place].append((at, kind))

    def settle(self, until_s: float) -> None:
        """End the answers that end until then; what waited for them begins."""
        ends, loads, waiting = self._ends, self.loads, self._waiting
        while ends and ends[0][0] <= until_s:
            end_s, place = heappop(ends)
            loads[place] -= 1
            if loads[place] < _CLOSED:
                self.outstanding -= 1
            if waiting[place]:
                at, kind = waiting[place].popleft()
                last_s, misses, first_s = self._row(self.service.slots)[kind]
                self.wait_s += (wait_s := end_s - at)
                self.waited += 1
                # Misses remain: who waits gets each token as late, and the first and the last one later.
                late = self.service.missed(ttft_ms=first_s + wait_s, e2e_latency_ms=last_s + wait_s)
                self.missed[misses | late] += 1
                heappush(ends, (end_s + last_s, place))

    def _row(self, running: int) -> Sequence[Answer]:
        self._rows[running] = self._rows[running] or self.service.answers(running)
        return self._rows[running]


def planned_service(
    plan: Plan, lengths: Sequence[float], objectives: tuple[BoundedLatency, ...], prompts_s: Sequence[float] = ()
) -> CopyService:
    """Return how a planned copy answers: by the levels of its curve, evenly between them.

    `prompts_s`: by how much the work on each draw's prompt exceeds that of the mean prompt; part of its TTFT.

    Above the batch limit TPOT is that of a full batch; TTFT of such a level holds its queue, which is simulated here.
    """
    slots = plan.max_num_seqs.value
    within = [point for point in plan.curve if point.concurrency <= slots] or [plan.curve[0]]
    full = next((point for point in plan.curve if point.concurrency > slots), within[-1])
    normal = [NormalDist().inv_cdf((place + 0.5) / DRAWS) for place in range(DRAWS)]
    more = prompts_s or [0.0] * DRAWS
    first_z, token_z = (random.Random(name).sample(normal, DRAWS) for name in ("ttft", "tpot"))  # noqa: S311 (repeated)

    def between(points: Sequence[CurvePoint], running: int, value: Callable[[CurvePoint], float]) -> float:
        levels = [min(point.concurrency, slots) for point in points]
        after = bisect_left(levels, running)
        if after in {0, len(levels)}:
            return value(points[min(after, len(levels) - 1)])
        share = (running - levels[after - 1]) / (levels[after] - levels[after - 1])
        return value(points[after - 1]) * (1 - share) + value(points[after]) * share

    def answers(running: int) -> list[Answer]:
        first_mean_s = between(within, running, lambda point: point.ttft_ms) / MS_PER_S
        token_mean_s = between([*within, full], running, lambda point: point.tpot_ms) / MS_PER_S
        first_width = between(within, running, lambda point: _width(point.ttft_ms, point.ttft_p95_ms))
        token_width = between([*within, full], running, lambda point: _width(point.tpot_ms, point.tpot_p95_ms))
        made: list[Answer] = []
        for tokens, first, token, more_s in zip(lengths, first_z, token_z, more, strict=True):
            first_s = max(first_mean_s + more_s, 0.0) * exp(first_width * first - first_width**2 / 2)
            token_s = token_mean_s * exp(token_width * token - token_width**2 / 2)
            last_s = first_s + token_s * (tokens - 1)
            made.append((last_s, service.missed(ttft_ms=first_s, tpot_ms=token_s, e2e_latency_ms=last_s), first_s))
        return made

    service = CopyService(slots, plan.max_queued_requests.value, answers, objectives)  # which `answers` judges by
    return service


def _width(mean: float, p95: float) -> float:
    """Return the width of the lognormal distribution with this mean and this 95th percentile, or the widest's."""
    ratio = log(max(p95 / mean, 1.0)) if mean > 0 else 0.0
    return _P95 - sqrt(max(_P95**2 - 2 * ratio, 0.0))


@dataclass(slots=True, eq=False)  # two that started together are two
class _Instance:
    ready_s: float
    idle_since_s: float
    places: list[int] = field(default_factory=list)
    starting_s: list[float] = field(default_factory=list)

    @property
    def copies(self) -> int:
        return len(self.places) + len(self.starting_s)


@dataclass(slots=True)
class _Instances:
    """The instances with their copies; `spent_s` they serve, start and idle, `lacking` copies had at most no room."""

    fleet: CopyFleet
    per_instance: int
    least: int
    most: int
    instance_s: float
    copy_s: float
    idle_s: float
    most_at_once: int | None
    lacking: int = 0
    every: list[_Instance] = field(default_factory=list)
    spent_s: Counter[str] = field(default_factory=lambda: Counter(serving=0, starting=0, idle=0))

    @property
    def in_service(self) -> int:
        return sum(len(each.places) for each in self.every)

    def add(self, count: int, now_s: float) -> float:
        """Start copies; return when the last of them serves. Without room for one more instance, fewer start."""
        last_s = now_s
        for started in range(count):
            roomy = [each for each in self.every if each.copies < self.per_instance]
            if not roomy and len(self.every) == self.most:
                self.lacking = max(self.lacking, count - started)
                break
            if not roomy:
                self.every.append(_Instance(now_s + self.instance_s, now_s))
            instance = max(roomy or self.every[-1:], key=lambda each: (each.ready_s <= now_s, each.copies))
            instance.starting_s.append(max(now_s, instance.ready_s) + self.copy_s)
            last_s = max(last_s, instance.starting_s[-1])
        return last_s

    def remove(self, count: int, now_s: float) -> None:
        """Stop copies, first where the fewest are, so that instances become idle."""
        for _ in range(min(count, self.in_service)):
            instance = min((each for each in self.every if each.places), key=lambda each: each.copies)
            self.fleet.close(instance.places.pop())
            instance.idle_since_s = now_s

    def pass_period(self, now_s: float) -> None:
        """Count the period that ends now, let started copies serve, and release idle instances."""
        for each in self.every:
            cause = "serving" if each.places else "starting" if each.starting_s else "idle"
            self.spent_s[cause] += PERIOD_S if now_s else 0
            each.places += [self.fleet.open() for at in each.starting_s if at <= now_s]
            each.starting_s = [at for at in each.starting_s if at > now_s]
        idle = [each for each in self.every if not each.copies and now_s - each.idle_since_s >= self.idle_s]
        gone = idle[: min(len(self.every) - self.least, self.most_at_once or len(idle))]
        self.every = [each for each in self.every if each not in gone]
        for each in idle if self.most_at_once and gone else ():
            each.idle_since_s = now_s


@dataclass(slots=True)
class _Scaling:
    """Application Auto Scaling of one endpoint; `schedule` has seconds, fewest and most copies from then on."""

    scaling: ScalingSpec
    policy: PolicyReading
    current: int
    schedule: deque[tuple[float, int, int]]
    last: LastActions = field(default_factory=LastActions)
    busy_until_s: float = -inf
    samples: deque[float | None] = field(default_factory=lambda: deque(maxlen=LOW_WINDOW_S // PERIOD_S))
    limits: Bounds = field(init=False)

    def __post_init__(self) -> None:
        self.limits = Bounds(least=self.scaling.min_copies, most=self.scaling.max_copies)

    def decide(self, now_s: float, per_copy: float | None, refused: int) -> CapacityChange | None:
        """Return the change at the end of a period, by what is outstanding per copy.

        `refused`: for lack of a copy in the minute that ends now; 0 within one.
        """
        self.samples.append(per_copy)
        while self.schedule and self.schedule[0][0] <= now_s:
            _, least, most = self.schedule.popleft()
            self.limits = Bounds(least=least, most=most)
        if now_s < self.busy_until_s:
            return None
        # What a period measured before the last change is about another number of copies.
        woken = refused > 0 and self.scaling.goes_to_zero and now_s - S_PER_MINUTE >= self.last.any_s
        steps = [WantedStep(self.current + 1, "from-zero", COPIES_COOLDOWN_FROM_ZERO_S)] if woken else ()
        readings = [self._reading(now_s)] if self.current else []
        return wanted_change(self.current, self.limits, readings, self.last, now_s, steps=steps)

    def _reading(self, now_s: float) -> PolicyReading:
        last = self.samples[-1]
        may_go_in = self.current > self.limits.least and len(self.samples) == self.samples.maxlen
        # In most periods neither alarm changes anything, and no look at all of the samples is needed to know it.
        is_low = last is not None and last < LOW_SHARE * self.policy.target
        if last is not None and last <= self.policy.target and not (may_go_in and is_low):
            return self.policy
        begun_s, since_s = (now_s - back * PERIOD_S for back in range(1, len(self.samples) + 1)), self.last.any_s
        seen = zip(reversed(self.samples), begun_s, strict=True)
        fresh = [sample for sample, at in seen if sample is not None and at >= since_s]
        is_high = len(fresh) >= HIGH_PERIODS and min(fresh[:HIGH_PERIODS]) > self.policy.target
        is_whole = len(self.samples) == self.samples.maxlen and now_s - LOW_WINDOW_S >= self.last.out_s
        is_low = is_whole and all(each is not None and each < LOW_SHARE * self.policy.target for each in self.samples)
        return replace(self.policy, high=fresh[0] if is_high else None, low=max(fresh) if is_low and fresh else None)


def simulate_days(
    loaded: LoadedSpec,
    plan: Plan,
    traffic: TrafficSource,
    *,
    days: int,
    seed: int,
    starts: tuple[StartPart, ...],
    prompts_s: Sequence[float] = (),
    quota: int | None = None,
) -> Simulation:
    """Simulate a planned endpoint under traffic, from a midnight on, with the planned copies in service.

    `prompts_s`: as `planned_service` takes them; `quota`: the most instances that the account may have.

    Raises:
        SpecError: SEA564, a kind that is not simulated; SEA574, a quota below the plan's instances. With every reason.
    """
    _check_kind(loaded, plan, quota)
    run = begin_run(loaded, plan, traffic, days, starts, prompts_s=prompts_s, quota=quota, seed=seed)
    for number, (times, kinds) in enumerate(traffic.minutes(days, seed)):
        run.pass_minute(number * S_PER_MINUTE, times, kinds)
    run.fleet.settle(inf)
    run.take_missed()
    left_out = tuple(_left_out(loaded, plan, has_prompts=bool(prompts_s)))
    inputs = {"days": days, "seed": seed, "starts": starts, "quota_instances": quota, "not_simulated": left_out}
    return _result(run, loaded, plan, traffic, inputs)


def begin_run(
    loaded: LoadedSpec,
    plan: Plan,
    traffic: TrafficSource,
    days: int,
    starts: tuple[StartPart, ...],
    *,
    prompts_s: Sequence[float] = (),
    quota: int | None = None,
    seed: int = 1,
) -> _Run:
    """Return a run before its first minute, with the planned copies in service and the scaling of those days."""
    scaling, hosting = loaded.endpoint.scaling, loaded.endpoint.hosting
    objectives = tuple(
        BoundedLatency(f"slo.{metric}.{name}", metric, float(name.removeprefix("p")) / 100, bound)
        for metric in ("ttft_ms", "tpot_ms", "e2e_latency_ms")
        for name, bound in getattr(loaded.endpoint.slo, metric)
        if bound is not None
    )
    lengths = traffic.lengths or answer_lengths(loaded.lengths.output)
    chance = random.Random(f"router {seed}").random if hosting.routing.strategy == "random" else None  # noqa: S311 (repeated)
    fleet = CopyFleet(planned_service(plan, lengths, objectives, prompts_s), chance)
    is_variant, release = plan.hosting_kind is not None, scaling.instance_scale_in
    instances = _Instances(
        fleet,
        per_instance=plan.copies_per_instance.value,
        # As it is deployed: the instances that the plan starts with stay, unless scaling goes to zero.
        least=0 if is_variant or scaling.goes_to_zero else plan.instance_count.value,
        most=plan.max_instances if quota is None else min(quota, plan.max_instances),
        instance_s=sum(part.seconds for part in starts if not part.further),
        copy_s=sum(part.seconds for part in starts if part.further),
        idle_s=0 if is_variant else (release.cooldown_minutes or IDLE_MINUTES) * S_PER_MINUTE,
        most_at_once=release.max_step,
    )
    instances.add(plan.copy_count.value, -inf)
    instances.pass_period(0.0)
    begin = datetime.fromtimestamp(midnight_s(traffic.start, traffic.zone), traffic.zone)
    policy = PolicyReading(
        policy="concurrency-per-copy",
        target=plan.target_concurrency_per_copy.value,
        out_cooldown_s=scaling.scale_out_cooldown_s,
        in_cooldown_s=scaling.scale_in_cooldown_s,
        scales_in=not scaling.scale_in_protection,
    )
    control = _Scaling(scaling, policy, plan.copy_count.value, deque(limits_over(scaling, begin, days)))
    return _Run(fleet, instances, None if scaling.is_fixed else control, lengths)


def _left_out(loaded: LoadedSpec, plan: Plan, *, has_prompts: bool) -> Iterator[str]:
    hosting, release = loaded.endpoint.hosting, loaded.endpoint.scaling.instance_scale_in
    are_placed = hosting.placement or release.strategy == "consolidation"
    but = ", but for the work on each" if has_prompts else ""
    yield from (*_NOT_SIMULATED, f"the lengths of recorded prompts{but}: they are those of the spec's workload")
    special = (
        (hosting.routing.strategy == "prefix_aware", "routing by prefix: requests go to the fewest outstanding"),
        (plan.max_queued_tokens, "`max_queued_tokens`: requests are refused by their number alone"),
        (are_placed and plan.copies_per_instance.value > 1, "`placement`, `consolidation`: instances fill one by one"),
        (hosting.instance_pools, "other `instance_pools`: every instance is of the plan's type"),
    )
    yield from (text for is_so, text in special if is_so)


def _check_kind(loaded: LoadedSpec, plan: Plan, quota: int | None) -> None:
    hosting, hint = loaded.endpoint.hosting, "simulate a real-time endpoint with one model"
    host = hosts(loaded.path.parent, loaded.environment.name).get(loaded.path.stem, ())
    reasons = (
        (("hosting", "asynchronous"), hosting.asynchronous, "an asynchronous endpoint is scaled by its queue"),
        (("hosting", "variants"), hosting.variants, "variants are scaled each by itself"),
        (("hosting", "shadow"), hosting.shadow, "a shadow variant has instances of its own"),
        (("hosting", "more_models"), hosting.more_models, "models that share instances fill them together"),
        (("name",), host, f"the model runs on the instances of {', '.join(each.name for each in host)}"),
    )
    problems = [
        loaded.problem(path, "SEA564", f"{text}: not simulated", hint) for path, is_so, text in reasons if is_so
    ]
    if quota is not None and quota < (planned := plan.instance_count.value):
        message = f"a quota of {quota} is below the {planned} x {plan.instance_type.value} that the plan starts with"
        hint = f"request at least {plan.max_instances}, which max_copies need; `seatrial preflight` reads the quota"
        problems.append(Finding("SEA574", Place.at("command line", "--quota"), message, hint))
    if problems:
        raise SpecError(problems)


@dataclass(slots=True)
class _Run:
    """A simulation that goes on, and what it counted: a list per minute, and totals."""

    fleet: CopyFleet
    instances: _Instances
    control: _Scaling | None
    lengths: Sequence[float]
    events: list[ScalingEvent] = field(default_factory=list)
    counted: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in Minutes.model_fields})
    missed: list[int] = field(init=False)
    tokens: float = 0.0
    refused: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.missed = [0] * len(self.fleet.missed)

    def pass_minute(self, begin_s: float, times: Sequence[float], kinds: Sequence[int]) -> None:
        """Take the requests of a minute; scale at the end of each period in it, and count at its own."""
        fleet, first = self.fleet, 0
        for passed_s in range(PERIOD_S, int(S_PER_MINUTE) + 1, PERIOD_S):
            now_s, is_over = begin_s + passed_s, passed_s == S_PER_MINUTE
            last = len(times) if is_over else bisect_right(times, now_s, lo=first)
            fleet.serve(times[first:last], kinds[first:last])
            fleet.settle(now_s)
            self.instances.pass_period(now_s)
            self.scale(now_s, fleet.take_peak(), fleet.refused_without_copy if is_over else 0)
            first = last
        refused = fleet.refused_without_copy + fleet.refused_full
        self.refused[0] += fleet.refused_without_copy
        self.refused[1] += fleet.refused_full
        fleet.refused_without_copy = fleet.refused_full = 0
        self.tokens += sum(map(self.lengths.__getitem__, kinds)) * (len(times) - refused) / max(len(times), 1)
        row = (len(times), refused, self.take_missed(), fleet.outstanding, self.instances.in_service)
        for name, value in zip(self.counted, (*row, len(self.instances.every)), strict=True):
            self.counted[name].append(value)

    def scale(self, now_s: float, most: float, refused: int) -> None:
        """Change the number of copies at the end of a period, by the most that was outstanding in it."""
        control, copies = self.control, self.instances.in_service
        change = None if control is None else control.decide(now_s, most / copies if copies else None, refused)
        if control is None or change is None:
            return
        if change.desired > control.current:
            control.busy_until_s = self.instances.add(change.desired - control.current, now_s)
            control.last = replace(control.last, out_s=control.busy_until_s)
        else:
            self.instances.remove(control.current - change.desired, now_s)
            control.last = replace(control.last, in_s=now_s)
        before, control.current = control.current, sum(each.copies for each in self.instances.every)
        if control.current != before:  # there was room for an instance
            event = {"minute": round(now_s / S_PER_MINUTE, 2), "copies": control.current, "cause": change.cause}
            self.events.append(ScalingEvent.model_validate(event))

    def take_missed(self) -> int:
        """Take over the answers that have begun since the last time; return how many missed the SLO."""
        counts, strict = self.fleet.missed, self.fleet.service.strictest
        self.missed = [before + count for before, count in zip(self.missed, counts, strict=True)]
        late = sum(count for misses, count in enumerate(counts) if misses & strict)
        counts[:] = [0] * len(counts)
        return late


def _result(run: _Run, loaded: LoadedSpec, plan: Plan, traffic: TrafficSource, inputs: dict[str, object]) -> Simulation:
    service, answered, requests = run.fleet.service, sum(run.missed), sum(run.counted["requests"])
    seconds = len(run.counted["requests"]) * S_PER_MINUTE

    def kept(bits: int) -> int:
        return sum(count for misses, count in enumerate(run.missed) if not misses & bits)

    objectives: list[ObjectiveShare] = []
    for bit, (name, _, required, bound_ms) in enumerate(service.objectives):
        share = kept(1 << bit) / max(answered, 1)
        fields = {"objective": name, "bound_ms": bound_ms, "required": required, "share": share}
        objectives.append(ObjectiveShare.model_validate({**fields, "met": share >= required}))
    met = all(each.met for each in objectives) and sum(run.refused) <= loaded.endpoint.slo.error_rate * requests
    return Simulation.model_validate(
        {
            **inputs,
            "endpoint": loaded.endpoint.name,
            "environment": loaded.environment.name,
            "traffic": traffic.name,
            "starts_at": datetime.fromtimestamp(midnight_s(traffic.start, traffic.zone), traffic.zone).isoformat(),
            "deployment": plan.deployment.words,
            "requests": requests,
            "refused_without_copy": run.refused[0],
            "refused_full": run.refused[1],
            "waited": run.fleet.waited / max(answered, 1),
            "within_slo": kept(service.strictest) / max(requests, 1),
            "meets_slo": met if objectives and requests else None,
            "objectives": tuple(objectives),
            "output_tok_s": run.tokens / seconds,
            "mean_instances": run.instances.spent_s.total() / seconds,
            "cost": _cost(run, plan, seconds / S_PER_DAY),
            "second_region": _second_region(run, plan),
            "copies_over_quota": run.instances.lacking if run.instances.most < plan.max_instances else 0,
            "events": tuple(run.events),
            "minutes": {name: tuple(values) for name, values in run.counted.items()},
        }
    )


def copy_rate(service: CopyService, plan: Plan) -> float:
    """Return the requests per second of a copy with the plan's target in flight, with which it keeps the SLO."""
    level = max(1, min(round(plan.target_concurrency_per_copy.value), service.slots))
    return level / fmean(last_s for last_s, _, _ in service.answers(level))


def _second_region(run: _Run, plan: Plan) -> SecondRegion | None:
    over = [sum(minute) for minute in zip(run.counted["refused"], run.counted["late"], strict=True)]
    if not any(over):
        return None
    rate, peak = copy_rate(run.fleet.service, plan), max(over) / S_PER_MINUTE
    fields = {"requests": sum(over), "peak_requests_per_second": peak, "requests_per_second_per_copy": rate}
    copies = ceil(peak / rate)
    instances = ceil(copies / plan.copies_per_instance.value)
    return SecondRegion.model_validate({**fields, "copies": copies, "instances": instances})


def _cost(run: _Run, plan: Plan, days: float) -> SimulatedCost | None:
    if plan.cost.usd_per_hour is None:
        return None
    hourly = plan.cost.usd_per_hour / plan.instance_count.value
    by_cause = {
        f"{cause}_usd_per_day": hourly * spent / S_PER_HOUR / days for cause, spent in run.instances.spent_s.items()
    }
    a_day = sum(by_cause.values())
    known = {name: getattr(plan.cost, name) for name in ("purchase", "price_source", "elsewhere")}
    per_million = a_day * days / run.tokens * 1e6 if run.tokens else None
    return SimulatedCost.model_validate(
        {
            **by_cause,
            **known,
            "usd_per_day": a_day,
            "usd_per_month": a_day / 24 * HOURS_PER_MONTH,
            "usd_per_million_output_tokens": per_million,
            "usd_per_instance_hour": hourly,
        }
    )
