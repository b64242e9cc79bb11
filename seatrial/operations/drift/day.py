"""A live day beside its simulation with the same plan: copies minute by minute, refusals, cost.

CloudWatch has no number of copies. Each invocation counts as one, and divided by the copies at its time in another
metric (SageMaker developer guide, "Metrics in CloudWatch"): what both make of a minute is its number of copies.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING

from seatrial.deployment.document import endpoint_name
from seatrial.deployment.starts import start_parts
from seatrial.documents.simulation import Traffic, TrafficCounts
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.drift.report import drift_finding
from seatrial.operations.fleet import simulate_days
from seatrial.operations.traffic import metric_sums, traffic_source
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.account.clients import AccountClients
    from seatrial.operations.drift.report import EndpointDrift
    from seatrial.specs.load import LoadedSpec

LEAST_EQUAL, MOST_REFUSED_MORE = 0.95, 0.01  # shares of the minutes and of the requests


def with_day(drift: EndpointDrift, loaded: LoadedSpec, clients: AccountClients, day: date) -> EndpointDrift:
    """Return the differences of an endpoint with those of a day (UTC); what could not be read is no finding."""
    try:
        plan = read_locked_plan(loaded)
        name = endpoint_name(loaded.environment.name, drift.endpoint, plan.generation)
        shared = "InvocationsPerCopy" if plan.hosting_kind is None else "InvocationsPerInstance"
        metrics = ("Invocations", shared, "NoCapacityInvocationFailures")
        end = datetime.combine(day, time(), UTC) + timedelta(days=1)
        sums = metric_sums(clients.alarms, clients.endpoints, name, metrics, end, days=1, period_s=60)
        # Of a minute without any request no copies are known; without a copy each is refused.
        live = {
            minute: round(invoked / of_copies) if of_copies else 0
            for minute, (invoked, of_copies, failed) in enumerate(zip(*sums, strict=True))
            if of_copies or failed
        }
        if not live:
            raise SpecError.of("SEA563", f"CloudWatch has no {shared} of it", where=name, hint="give another day")
        # The live midnight is not that of the plan: the simulation begins with what served then.
        first = plan.copy_count.model_copy(update={"value": next(iter(live.values()))})
        came = tuple(round(invoked + failed) for invoked, _, failed in zip(*sums, strict=True))
        traffic = Traffic(start=day, counts=TrafficCounts(period_s=60, requests=came))
        source, begun = traffic_source(f"CloudWatch, {day}", traffic), plan.model_copy(update={"copy_count": first})
        done = simulate_days(loaded, begun, source, days=1, seed=1, starts=start_parts(plan, loaded))
    except SeatrialError as error:
        return replace(drift, unreadable=(*drift.unreadable, f"day {day}: {error.problems[0].message}"))
    simulated = {minute: done.minutes.copies[minute] for minute in live}
    equal = fmean(simulated[minute] == copies for minute, copies in live.items())
    refused, expected = sum(sums[2]) / max(sum(came), 1), done.refused_without_copy / max(done.requests, 1)
    words = f"day {day}: copies equal in {equal:.1%} of {len(live):,} minutes; refused {refused:.2%}, simulated "
    words += f"{expected:.2%}; late {sum(done.minutes.late) / max(done.requests, 1):.2%} in the simulation"
    if done.cost is not None:
        hourly, each = done.cost.usd_per_instance_hour / 60, plan.copies_per_instance.value
        served = (sum(ceil(copies / each) for copies in side.values()) for side in (live, simulated))
        words += "; serving {} in these minutes, simulated {}".format(*(usd(hourly * minutes) for minutes in served))
    findings, warning = [], partial(drift_finding, severity="warning")
    if equal < LEAST_EQUAL:
        message = f"equal to the simulation's in {equal:.1%} of the minutes; most apart at {_hours(live, simulated)}"
        hint = "measure a start (`seatrial calibrate`); see whether scaling was changed by hand that day"
        what, least = f"copies of {day}", f"{LEAST_EQUAL:.0%} or more"
        findings += [warning(rule="SEA569", what=what, live=message, expected=least, hint=hint)]
    if refused > expected + MOST_REFUSED_MORE:
        what, most = f"refused for lack of a copy on {day}", f"{expected:.2%} as simulated"
        hint, message = "raise `scaling.min_copies`, or schedule copies before the load comes", f"{refused:.2%}"
        findings += [warning(rule="SEA570", what=what, live=message, expected=most, hint=hint)]
    return replace(drift, day=words, findings=(*drift.findings, *findings))


def _hours(live: Mapping[int, int], simulated: Mapping[int, int]) -> str:
    """Return the hours whose copies are most apart, with the means of both."""
    hours = [[at for at in range(first, first + 60) if at in live] for first in range(0, 1440, 60)]
    apart = [sum(abs(live[at] - simulated[at]) for at in hour) for hour in hours]
    worst = sorted((hour for hour in range(24) if apart[hour]), key=lambda hour: -apart[hour])[:3]
    means = ((hour, *(fmean(side[at] for at in hours[hour]) for side in (live, simulated))) for hour in worst)
    return ", ".join(f"{hour:02}:00 UTC (live {ours:.1f}, simulated {theirs:.1f})" for hour, ours, theirs in means)
