"""The cheapest way to scale under traffic over time: every one in a fluid model, the best of them simulated in full.

The fluid model takes the same arrivals as a rate, minute by minute, and copies hold what Little's law gives at it, with
the noise of a Poisson count. Scaling, starts and instances are those of the simulation.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from bisect import bisect_left
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import ceil, exp, floor, inf, log10, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError

from seatrial.documents.simulation import CheapestSchedule, ScheduleChange, SimulatedSchedule
from seatrial.locks.lock_file import changing_file, replace_file
from seatrial.operations.fleet import HOURS_PER_MONTH, PERIOD_S, begin_run, copy_rate, simulate_days
from seatrial.operations.traffic import DAYS_READ, MINUTES_PER_DAY
from seatrial.planner.comparisons import types_at_load
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_source, with_fields
from seatrial.specs.yaml_edit import edited_file
from seatrial.specs.yaml_source import parse_source
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.units import S_PER_HOUR, S_PER_MINUTE, usd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import StartPart
    from seatrial.operations.fleet import CopyService, _Run
    from seatrial.operations.traffic import TrafficSource
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import Yaml


_MOST_TYPES: Final = 3
_AT_ONCE: Final = 4  # simulations between two looks at the results, for every number of processes
_KEPT: Final = 2  # the cheapest and the runner-up
_REFINED: Final = 6
_LEVELS: Final = 40
_SLOT_MINUTES: Final = 10
_DRAWS: Final = 20
_PERIODS: Final = int(S_PER_MINUTE) // PERIOD_S
_TOLERANCE: Final = 0.015  # of a share in the fluid model: the simulation judges what misses by less
_TYPES: Final = "serving.instance_types"
_UNPLANNED: Final = ("scaling.schedules", "scaling.scale_", "scaling.instance_scale_in")
_REFINEMENTS: Final[dict[str, tuple[Yaml, ...]]] = {
    "scaling.target_utilization": (0.5, 0.65, 0.9),
    "scaling.scale_in_cooldown_s": (60, 900),
    "scaling.scale_out_cooldown_s": (300,),
    "scaling.instance_scale_in.cooldown_minutes": (5,),
}
Fields = dict[str, "Yaml"]
Result = TypeVar("Result")


class Screened(NamedTuple):
    """What the fluid model says of a schedule; `shortfall`: what the share misses by, 0 or less where it is kept."""

    usd_per_day: float
    within_slo: float
    shortfall: float


class _Levels:
    """Rates of a copy by the requests in flight on it, and the shares of its answers by the objectives they miss."""

    def __init__(self, service: CopyService) -> None:
        self.service, self._missed = service, dict[tuple[int, float], dict[int, float]]()
        filled = sorted({max(1, round(service.slots * place / _LEVELS)) for place in range(_LEVELS + 1)})
        rates = (level / fmean(last_s for last_s, _, _ in service.answers(level)) for level in filled)
        self.levels, self.rates = [0, *filled], [0.0, *rates]

    def in_flight(self, rate: float) -> float:
        after = max(1, min(bisect_left(self.rates, rate), len(self.rates) - 1))
        (low, high), (fewer, more) = self.rates[after - 1 : after + 1], self.levels[after - 1 : after + 1]
        return fewer + (more - fewer) * min(1.0, (rate - low) / (high - low)) if high > low else float(more)

    def missed(self, level: int, wait_s: float) -> dict[int, float]:
        """Return the share of the answers by the objectives that they miss, beginning after a wait."""
        if wait_s:  # two digits are enough, and few are computed then
            wait_s = round(wait_s, 1 - floor(log10(wait_s)))
        if (level, wait_s) not in self._missed:
            late = self.service.missed
            counts = Counter(
                misses | late(ttft_ms=first_s + wait_s, e2e_latency_ms=last_s + wait_s)
                for last_s, misses, first_s in self.service.answers(level)
            )
            self._missed[level, wait_s] = {misses: count / counts.total() for misses, count in counts.items()}
        return self._missed[level, wait_s]


@dataclass(slots=True)
class ScheduleSearch:
    """A search for the cheapest schedule of an endpoint, of which `plan` is the plan.

    Attributes:
        starts_of: Returns the parts of a start of a planned copy.
        prompts_of: Returns what `simulate_days` takes as `prompts_s`; `quota`: as there, of the plan's type alone.
        share: Share of all requests that must be within the SLO; `None`: what the objectives and the error rate demand.
    """

    loaded: LoadedSpec
    plan: Plan
    traffic: TrafficSource
    days: int
    seed: int
    starts_of: Callable[[Plan, LoadedSpec], tuple[StartPart, ...]]
    share: float | None = None
    prompts_of: Callable[[LoadedSpec, Plan], tuple[float, ...]] = lambda _loaded, _plan: ()
    quota: int | None = None
    counts: list[int] = field(init=False)
    noise: list[float] = field(init=False)
    peaks: list[float] = field(init=False)
    _plans: dict[str, Plan | None] = field(default_factory=dict)
    _levels: dict[object, _Levels] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = [len(times) for times, _ in self.traffic.minutes(self.days, self.seed)]
        # Half a second apart, numbers in flight share the answers that go on; a period has its last one and its most.
        usual = self._levels_of(self.loaded, self.plan)
        kept = exp(-PERIOD_S / _DRAWS * usual.rates[-1] / usual.levels[-1])
        draw, last = random.Random(self.seed), 0.0  # noqa: S311 (a simulation is repeatable)
        self.noise, self.peaks = [], []
        for _ in range(len(self.counts) * _PERIODS):
            drawn = [last := kept * last + sqrt(1 - kept**2) * draw.gauss() for _ in range(_DRAWS)]
            self.noise.append(last)
            self.peaks.append(max(drawn))

    def schedule(self, fields: Fields) -> tuple[LoadedSpec, Plan] | None:
        """Return the spec with some fields set, and its plan; `None` where that is contradictory or nothing fits it."""
        planned = {name: value for name, value in fields.items() if not name.startswith(_UNPLANNED)}
        key = json.dumps(planned, sort_keys=True)
        try:
            loaded = with_fields(self.loaded, _by_path(fields)) if fields else self.loaded
            if key not in self._plans:
                self._plans[key] = None
                self._plans[key] = make_plan(loaded) if planned else self.plan
        except (SpecError, PlanError, ValidationError):
            return None
        plan = self._plans[key]
        if plan is None or plan.cost.usd_per_hour is None or (self._quota_of(plan) or inf) < plan.instance_count.value:
            return None
        return loaded, plan

    def _quota_of(self, plan: Plan) -> int | None:
        return self.quota if plan.instance_type.value == self.plan.instance_type.value else None

    def screen(self, fields: Fields) -> Screened | None:
        """Go through the days of a schedule in the fluid model; `None` as `schedule`."""
        if (made := self.schedule(fields)) is None:
            return None
        run = begin_run(*made, self.traffic, self.days, self.starts_of(made[1], made[0]), quota=self._quota_of(made[1]))
        levels, instances, answered = self._levels_of(*made), run.instances, dict[tuple[int, float], float]()
        slots, top, queue = levels.levels[-1], levels.rates[-1], levels.service.queue
        backlog, refused, base = 0.0, 0.0, len(instances.every)
        for number, count in enumerate(self.counts):
            rate, unserved, before, mean, width = count / S_PER_MINUTE, 0.0, 0, 0.0, 0.0
            first, begin_s = number * _PERIODS, number * S_PER_MINUTE
            noise, peaks = (every[first : first + _PERIODS] for every in (self.noise, self.peaks))
            for place in range(1, _PERIODS + 1):
                come, peak, copies = rate * PERIOD_S, 0.0, instances.in_service
                if copies != before:
                    mean = copies and copies * levels.in_flight(rate / copies)
                    width = sqrt(mean)
                before, now_s = copies, begin_s + place * PERIOD_S
                most = mean + max(peaks) * width if copies else rate
                if place == 1 and not backlog and most <= copies * slots and _is_calm(run, begin_s, most):
                    if count:
                        place_of = int(max(0.0, mean + noise[number % _PERIODS] * width) / copies) + 1, 0.0
                        answered[place_of] = answered.get(place_of, 0.0) + count
                    break
                if copies:
                    waiting = max(0.0, backlog + come - copies * top * PERIOD_S)
                    backlog = min(waiting, float(copies * queue))
                    refused, come = refused + waiting - backlog, come - waiting + backlog
                    outstanding = max(0.0, mean + noise[place - 1] * width)
                    late = max(backlog, outstanding - copies * slots, 0.0)
                    place_of = (
                        (slots, late / copies / top) if late else (min(slots, int(outstanding / copies) + 1), 0.0)
                    )
                    answered[place_of] = answered.get(place_of, 0.0) + come
                    peak = min(max(0.0, mean + peaks[place - 1] * width), copies * slots) + backlog
                else:
                    unserved, backlog = unserved + come, 0.0
                instances.pass_period(now_s)
                run.scale(now_s, peak, ceil(unserved) if place == _PERIODS else 0)
            refused, base = refused + unserved, min(base, len(instances.every))
        saved = _saved_per_hour(made[1]) * base * 24
        hourly = (made[1].cost.usd_per_hour or 0.0) / made[1].instance_count.value
        spent = hourly * instances.spent_s.total() / S_PER_HOUR / self.days
        return Screened(spent - saved, *self._judged(levels, answered, refused))

    def _judged(self, levels: _Levels, answered: dict[tuple[int, float], float], refused: float) -> tuple[float, float]:
        def kept(bits: int) -> float:
            return sum(count for misses, count in counts if not misses & bits)

        missed = ((levels.missed(*level), come) for level, come in answered.items())
        counts = [(misses, share * come) for shares, come in missed for misses, share in shares.items()]
        served = max(kept(0), 1e-9)
        within = kept(levels.service.strictest) / (served + refused)
        if self.share is not None:
            return within, self.share - within
        short = [each.required - kept(1 << bit) / served for bit, each in enumerate(levels.service.objectives)]
        return within, max(*short, refused / (served + refused) - self.loaded.endpoint.slo.error_rate, -1.0)

    def simulate(self, fields: Fields) -> SimulatedSchedule | None:
        """Simulate the days of a schedule in full; `None` as `schedule`."""
        if (made := self.schedule(fields)) is None:
            return None
        starts, days, seed = self.starts_of(made[1], made[0]), self.days, self.seed
        prompts_s, quota = self.prompts_of(*made), self._quota_of(made[1])
        done = simulate_days(*made, self.traffic, days=days, seed=seed, starts=starts, prompts_s=prompts_s, quota=quota)
        refused, base = done.refused_without_copy + done.refused_full, min(done.minutes.instances)
        keeps = not done.requests or done.within_slo >= (self.share or 0.0)
        if self.share is None and done.requests:
            keeps = all(each.met for each in done.objectives)
            keeps = keeps and refused <= self.loaded.endpoint.slo.error_rate * done.requests
        saved = _saved_per_hour(made[1]) * base * HOURS_PER_MONTH
        document = {
            "deployment": done.deployment,
            "fields": fields,
            "within_slo": done.within_slo,
            "refused": refused,
            "keeps_share": keeps,
            "usd_per_month": (done.cost.usd_per_month if done.cost else 0.0) - saved,
            "base_instances": base,
            "savings_plan_usd_per_month": saved,
            "cost": done.cost,
        }
        return SimulatedSchedule.model_validate(document)

    def run(self, *, jobs: int | None = None) -> CheapestSchedule:
        """Search; equal inputs give equal results for every number of processes.

        Raises:
            PlanError: SEA566, no schedule keeps the share, with the best that was found; SEA567, the plan has no price.
            SpecError: SEA564, as the simulation.
        """
        where = self.loaded.path.as_posix()
        if (current := self.simulate({})) is None:
            hint = "give its price in the prices file: `seatrial prices refresh`"
            raise PlanError.of("SEA567", "the plan has no price to compare", where=where, hint=hint)
        known: dict[str, tuple[Fields, Screened | None]] = {}
        ranked = self._screened(known, [{}, *self.candidates()], jobs)
        for _ in range(2):  # the second time, refinements meet; and what is taken back may not have been needed
            tops = ranked[:_REFINED]
            refined = [{**fields, name: value} for fields in tops for name, value in self._refinements()]
            refined += [
                {other: fields[other] for other in fields if other != name} for fields in tops for name in fields
            ]
            ranked = self._screened(known, refined, jobs)
        # Those that may miss come first where they cost less; some that surely keep the share come after them.
        sure = [fields for fields, result in known.values() if result is not None and result.shortfall <= 0]
        sure = [fields for fields in ranked if fields in sure and fields not in ranked[: 2 * _AT_ONCE]]
        done, later = [current], [fields for fields in ranked[: 2 * _AT_ONCE] if fields] + sure[:_AT_ONCE]
        while later and sum(each.keeps_share for each in done) < _KEPT:
            done += [each for each in self._each(self.simulate, later[:_AT_ONCE], jobs) if each is not None]
            later = later[_AT_ONCE:]
        screened = sum(result is not None for _, result in known.values())
        kept = [each for each in done if each.keeps_share]
        kept.sort(key=lambda each: (each.usd_per_month, len(each.fields)))
        if not kept:
            best = max(done, key=lambda each: (each.within_slo, -each.usd_per_month))
            message = f"none of {screened} schedules keeps the share: of {len(done)} simulated in full the best has "
            message += f"{best.within_slo:.2%} within the SLO, {best.refused:,} refused, for {usd(best.usd_per_month)}"
            message += " a month"
            limit = "copies start too late or are too few" if best.refused else "the copies are slower than the SLO"
            hint = f"{limit}: raise scaling.max_copies and the guard rail of copies, or ask for less by --share"
            raise PlanError.of("SEA566", message, where=where, hint=hint)
        document = {
            "endpoint": self.loaded.endpoint.name,
            "environment": self.loaded.environment.name,
            "traffic": self.traffic.name,
            "days": self.days,
            "seed": self.seed,
            "share": self.share,
            "screened": screened,
            "simulated": len(done),
            "current": current,
            "cheapest": kept[0],
            "runner_up": kept[1] if len(kept) > 1 else None,
            "changes": tuple(self._changes(dict(kept[0].fields))),
        }
        return CheapestSchedule.model_validate(document)

    def _screened(
        self, known: dict[str, tuple[Fields, Screened | None]], every: Iterable[Fields], jobs: int | None
    ) -> list[Fields]:
        """Screen what is not known yet; return all that is known, the best first."""
        named = {json.dumps(fields, sort_keys=True): fields for fields in every}
        new = {name: fields for name, fields in named.items() if name not in known}
        results = self._each(self.screen, [*new.values()], jobs)
        known.update((name, (fields, result)) for (name, fields), result in zip(new.items(), results, strict=True))
        # Schedules that never come to what they differ in are one: the one with the fewest fields.
        distinct: dict[tuple[float, float], tuple[Fields, Screened]] = {}
        for fields, result in sorted(known.values(), key=lambda each: len(each[0])):
            if result is not None:
                distinct.setdefault((round(result.usd_per_day, 6), round(result.within_slo, 9)), (fields, result))
        ranked = sorted(distinct.values(), key=lambda each: (max(_TOLERANCE, each[1].shortfall), each[1].usd_per_day))
        return [fields for fields, _ in ranked]

    def candidates(self) -> Iterator[Fields]:
        """Yield the fields of schedules by type, fewest and most copies, and actions."""
        spec, own = self.loaded.endpoint.scaling, self.plan.instance_type.value
        rows = [row for row in types_at_load(self.loaded) if row.usd_per_hour is not None and row.instance_type != own]
        rows.sort(key=lambda row: row.usd_per_hour or 0)
        for kind in (own, *(row.instance_type for row in rows[: _MOST_TYPES - 1])):
            typed: Fields = {} if kind == own else {_TYPES: [kind]}
            planned = [self.schedule(typed)]
            if planned[0] is None:
                continue
            # More copies may be planned with another degree, and of those it takes another number.
            most = max(self._needs(*planned[0]))
            planned.append(self.schedule(typed | {"scaling.min_copies": most, "scaling.max_copies": most}))
            for needs in {max(each): each for each in (self._needs(*made) for made in planned if made)}.values():
                most = max(needs)
                mins = dict.fromkeys((spec.min_copies, 1, 0, most - 1, most, most + 1))
                for high, low in product(dict.fromkeys((spec.max_copies, most, most + 1)), mins):
                    limits = {"scaling.min_copies": low, "scaling.max_copies": high}
                    fields = typed | {name: value for name, value in limits.items() if value != self._now(name)}
                    actions = self._actions(needs, low, high, *planned[0])
                    yield from ({**fields, "scaling.schedules": each} for each in actions)
                    yield from (fields, {**fields, "scaling.schedules": []}) if spec.schedules else (fields,)

    def _refinements(self) -> Iterator[tuple[str, Yaml]]:
        for name, values in _REFINEMENTS.items():
            yield from ((name, value) for value in values if value != self._now(name))

    def _needs(self, loaded: LoadedSpec, plan: Plan) -> list[int]:
        """Return the copies that each ten minutes need."""
        rate = copy_rate(self._levels_of(loaded, plan).service, plan) * S_PER_MINUTE * _SLOT_MINUTES
        slots = range(0, len(self.counts), _SLOT_MINUTES)
        return [max(1, ceil(sum(self.counts[at : at + _SLOT_MINUTES]) / rate)) for at in slots]

    def _actions(
        self, needs: Sequence[int], low: int, high: int, loaded: LoadedSpec, plan: Plan
    ) -> Iterator[list[Yaml]]:
        """Yield actions that raise the fewest copies before the hours that need more, and lower them after these.

        The hours are alike on all days that need more; `needs`: copies in each ten minutes from a midnight on.
        """
        a_day = MINUTES_PER_DAY // _SLOT_MINUTES
        days = [needs[first : first + a_day] for first in range(0, len(needs), a_day)]
        busy_days = [place for place, day in enumerate(days) if max(day) > max(1, low, min(needs))]
        busy = sorted({slot for day in days for slot, need in enumerate(day) if need > max(1, low, min(needs))})
        if not busy:
            return
        # They end where the longest rest of a day begins, which may be past midnight.
        rest, last, first = max((after - before, before, after) for before, after in pairwise([*busy, busy[0] + a_day]))
        start_minutes = sum(part.seconds for part in self.starts_of(plan, loaded)) / S_PER_MINUTE
        for most, earlier in product(dict.fromkeys((max(needs) - 1, max(needs), max(needs) + 1)), (0, 15)):
            lead = 5 * ceil(start_minutes / 5) + earlier
            raised, lowered = first % a_day * _SLOT_MINUTES - lead, (last + 1) % a_day * _SLOT_MINUTES
            if low < most <= high and rest * _SLOT_MINUTES > 2 * lead:
                is_daily = len(days) < DAYS_READ or len(busy_days) == len(days) or lowered < raised
                weekdays = [] if is_daily else [self.traffic.start.weekday() + place for place in busy_days]
                zone = getattr(self.traffic.zone, "key", "UTC")
                yield [
                    {"name": name, "schedule": _cron(at, weekdays), "timezone": zone, "min_copies": copies}
                    for name, at, copies in (("busy-hours", raised, most), ("quiet-hours", lowered, low))
                ]

    def _changes(self, fields: Fields) -> Iterator[ScheduleChange]:
        whole = self.screen(fields)
        for name, value in fields.items():
            result = self.screen({other: given for other, given in fields.items() if other != name})
            because = "the other fields need it"
            if whole is not None and result is not None:
                saved = (result.usd_per_day - whole.usd_per_day) / 24 * HOURS_PER_MONTH
                because = f"saves {usd(saved)} a month" if saved > 0 else "changes little alone"
                if result.shortfall > max(0.0, whole.shortfall):
                    dearer = f"{usd(abs(saved))} a month {'less' if saved < 0 else 'more'}"
                    because = f"without it {result.within_slo:.2%} are within the SLO, for {dearer}"
            yield ScheduleChange(field=name, before=self._now(name), after=value, because=because)

    def _now(self, name: str) -> Any:  # noqa: ANN401 (a value of the spec)
        written: Any = self.loaded.endpoint.model_dump(mode="json", exclude_none=True)
        for part in name.split("."):
            written = written.get(part) if isinstance(written, dict) else None
        return written

    def _levels_of(self, loaded: LoadedSpec, plan: Plan) -> _Levels:
        prompts_s = self.prompts_of(loaded, plan)
        key = (plan.curve, plan.max_num_seqs.value, plan.max_queued_requests.value, prompts_s)
        if key not in self._levels:
            run = begin_run(loaded, plan, self.traffic, 1, self.starts_of(plan, loaded), prompts_s=prompts_s)
            self._levels[key] = _Levels(run.fleet.service)
        return self._levels[key]

    def _each(self, look: Callable[[Fields], Result], every: Sequence[Fields], jobs: int | None) -> list[Result]:
        """Return what a method says of each schedule, in processes where the system forks."""
        jobs = min(jobs or os.cpu_count() or 1, len(every))
        if jobs <= 1 or "fork" not in multiprocessing.get_all_start_methods():
            return [look(fields) for fields in every]
        # What it looks with holds functions: a process inherits it, and is sent no more than places in the list.
        context, share = multiprocessing.get_context("fork"), max(1, len(every) // (4 * jobs))
        with ProcessPoolExecutor(jobs, context, _inherit, (look, every)) as pool:
            results: list[Result] = list(pool.map(_look_at, range(len(every)), chunksize=share))
        return results


def _is_calm(run: _Run, begin_s: float, most: float) -> bool:
    """Return whether no more than scaling in at its end happens in a minute with so many outstanding; pass it then.

    The largest sample decides: the alarm for scaling in looks at whole minutes.
    """
    instances, control, copies = run.instances, run.control, run.instances.in_service
    idle = sum(not each.places for each in instances.every)
    if (most and not copies) or any(each.starting_s for each in instances.every):
        return False
    if idle and len(instances.every) > instances.least:
        return False
    if control is not None:
        is_due = bool(control.schedule) and control.schedule[0][0] <= begin_s + S_PER_MINUTE
        is_high = most > control.policy.target * copies and control.current < control.limits.most
        if is_due or is_high or not control.limits.least <= control.current <= control.limits.most:
            return False
        control.samples.extend([most / copies if copies else None] * (_PERIODS - 1))
    instances.spent_s["serving"] += int(S_PER_MINUTE) * (len(instances.every) - idle)
    instances.spent_s["idle"] += int(S_PER_MINUTE) * idle
    run.scale(begin_s + S_PER_MINUTE, most, 0)
    return True


_inherited: list[Callable[[int], Any]] = []


def _inherit(look: Callable[[Fields], object], every: Sequence[Fields]) -> None:
    _inherited[:] = [lambda place: look(every[place])]


def _look_at(place: int) -> Any:  # noqa: ANN401 (a process sends what it was given to do)
    return _inherited[0](place)


def write_schedule(loaded: LoadedSpec, schedule: SimulatedSchedule, environments: Path) -> None:
    """Write what a schedule sets into the spec, as overrides of its environment; all of it or nothing.

    Raises:
        SpecError: SEA568, the text can't be kept or the file can't be written; whatever the written spec would break.
    """
    path, environment = loaded.path, loaded.environment.name
    fields = {("environments", environment, *place): value for place, value in _by_path(schedule.fields).items()}
    with changing_file(path, "SEA568"):
        text = edited_file(path, fields)
        load_source(parse_source(text, path.as_posix()), path, environment, environments=environments)
        replace_file(path, text, "SEA568")


def _by_path(fields: Mapping[str, Yaml]) -> dict[tuple[str, ...], Yaml]:
    return {tuple(name.split(".")): value for name, value in fields.items()}


def _saved_per_hour(plan: Plan) -> float:
    """Return what a Savings Plan saves in an hour of an instance; 0 where its price is unknown or is the plan's."""
    planned = plan.cost.savings_plan_usd_per_hour
    if planned is None or plan.cost.purchase != "on_demand":
        return 0.0
    return max(0.0, (plan.cost.usd_per_hour or 0.0) - planned) / plan.instance_count.value


def _cron(minute: int, weekdays: Sequence[int]) -> str:
    """Return a cron expression for a minute of some weekdays, every day without any; below 0 it is the day before."""
    shift, minute = divmod(minute, MINUTES_PER_DAY)
    names = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
    days = ",".join(names[day] for day in sorted({(day + shift) % 7 for day in weekdays}))
    return f"cron({minute % 60} {minute // 60} {f'? * {days}' if days else '* * ?'} *)"
