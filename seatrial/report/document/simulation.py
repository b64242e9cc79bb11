"""A simulation of days as one HTML page: what came, what users got, what ran and what it cost, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.report.charts import Axis, Chart, ChartPoint, Series
from seatrial.report.document.page import Download, Page, data_uri, page_html
from seatrial.report.document.section import Fact, Section
from seatrial.report.values import count_cell, money_cell, number_cell, share_cell
from seatrial_base.table import Cell, Column, Table
from seatrial_base.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seatrial.documents.simulation import Simulation

MOST_POINTS: Final = 500
MOST_ROWS: Final = 200
_BINS = (1, 3, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 2880)  # minutes of a point or a row
_COUNTS = ("requests", "refused", "late")
_VERDICTS = {True: ("pass", "✓ SLO met"), False: ("fail", "✗ SLO missed"), None: ("inconclusive", "? No SLO")}
_MET = {True: "✓ met", False: "✗ missed"}
_NO_PRICE = "the plan has no price"


def simulation_html(done: Simulation) -> str:
    """Write a simulation as one HTML page that needs nothing else; equal input gives equal bytes."""
    status, sign = _VERDICTS[done.meets_slo] if done.requests else ("inconclusive", "? No requests")
    refused = (done.refused_without_copy + done.refused_full) / max(done.requests, 1)
    over = f"; {done.copies_over_quota} more copies wanted than the quota holds" if done.copies_over_quota else ""
    a_day = None if done.cost is None else done.cost.usd_per_day
    page = Page(
        eyebrow="Simulation",
        title=f"{done.endpoint} in {done.environment}",
        status=status,
        sign=sign,
        because=f"{done.within_slo:.2%} of {done.requests:,} requests were answered within the SLO.",
        cautions=("A simulation, not a measurement: nothing was deployed, no request was sent.",),
        facts=(
            Fact("Traffic", Cell(done.traffic, tone="code"), f"{done.days} d from {done.starts_at}, seed {done.seed}"),
            Fact("Planned on", Cell(done.deployment)),
        ),
        key_figures=(
            Fact("Within SLO", share_cell(done.within_slo), "of all requests"),
            Fact("Refused", share_cell(refused), f"{done.refused_without_copy:,} of them without a copy"),
            Fact("Instances", number_cell(done.mean_instances, ""), f"on average{over}"),
            Fact("Cost", money_cell(a_day, _NO_PRICE), "a day" if done.cost else _NO_PRICE),
        ),
        sections=tuple(_sections(done)),
        details=(_by_time(done),),
        downloads=(Download("simulation.json", "JSON", data_uri("application/json", done.model_dump_json(indent=1))),),
        footer=f"Simulated by Seatrial. Simulation schema {done.schema_version}.",
    )
    return page_html(page)


def _sections(done: Simulation) -> Iterator[Section]:
    size, binned = _binned(done, MOST_POINTS)
    reading = f"A point is {size} min: of counts the mean a minute, else the most. Late: answered beyond a bound."
    drawn = (
        ("Requests", "a minute", ("requests",)),
        ("Refused and late", "a minute", ("refused", "late")),
        ("In flight", "running and waiting", ("in flight",)),
        ("Copies and instances", "in service, ordered", ("copies", "instances")),
    )
    charts = tuple(_chart(size, title, unit, {name: binned[name] for name in names}) for title, unit, names in drawn)
    yield Section(anchor="time", heading="Over time", paragraphs=(reading,), charts=charts)
    kept = (
        (each.objective, each.bound_ms, share_cell(each.required), share_cell(each.share), _MET[each.met])
        for each in done.objectives
    )
    waited = f"{done.waited:.2%} of the answered requests waited for a place in a batch."
    if (other := done.second_region) is not None:
        waited += f" A second Region would take over {other.requests:,} requests, refused or late here: up to "
        waited += f"{other.peak_requests_per_second:.3g}/s, for which {other.copies} copies on {other.instances} "
        waited += f"instances are enough, at {other.requests_per_second_per_copy:.3g} requests/s a copy."
    yield _section("SLO", "Latencies", "objective,bound (ms),required,kept,verdict", kept, waited)
    if (cost := done.cost) is not None:
        causes = {"a copy serves": cost.serving_usd_per_day, "instance or first copy starts": cost.starting_usd_per_day}
        causes |= {"no copy, until the release": cost.idle_usd_per_day, "all": cost.usd_per_day}
        rows = ((name, money_cell(value, _NO_PRICE)) for name, value in causes.items())
        how = f"{cost.purchase.replace('_', ' ')}, {cost.price_source or 'price of the plan'}{cost.elsewhere}"
        how += "" if cost.purchase == "on_demand" else "; only if others use the hours that are bought"
        price = f"${cost.usd_per_month:,.0f} a month, at ${cost.usd_per_instance_hour:,.4g} an instance hour ({how})."
        yield _section("Cost", "Cost by cause", "cause,US dollars a day", rows, price)
    parts = ((each.part, each.seconds, "copy" if each.further else "instance", each.source) for each in done.starts)
    yield _section("Starts", "Parts of a start", "part,seconds,of,source", parts)
    yield Section(anchor="left-out", heading="Not simulated", remarks=done.not_simulated)


def _by_time(done: Simulation) -> Section:
    size, binned = _binned(done, MOST_ROWS)
    rows = ((place * size / 60, *row) for place, row in enumerate(zip(*binned.values(), strict=True)))
    of_time = _section("By time", f"Counts of {size} min, else the most", f"from hour,{','.join(binned)}", rows)
    changes = [(each.minute / 60, each.copies, each.cause) for each in done.events]
    caption = f"Changes of the number of copies: {min(len(changes), MOST_ROWS)} of {len(changes):,}"
    tables = _section("Changes", caption, "decided at hour,copies,cause", changes[:MOST_ROWS]).tables
    return Section(anchor="by-time", heading="By time", tables=(*of_time.tables, *tables), detail=True)


def _binned(done: Simulation, most: int) -> tuple[int, dict[str, list[int]]]:
    every = {name.replace("_", " "): values for name, values in done.minutes.model_dump().items()}
    length = len(done.minutes.requests)
    size = next((size for size in _BINS if length <= most * size), _BINS[-1])
    places = [slice(first, first + size) for first in range(0, length, size)]
    return size, {name: [(sum if name in _COUNTS else max)(of[at]) for at in places] for name, of in every.items()}


def _chart(size: int, title: str, unit: str, binned: Mapping[str, Sequence[int]]) -> Chart:
    series: list[Series] = []
    for name, values in binned.items():
        placed = (
            (place * size / 60, round(value / (size if name in _COUNTS else 1), 3))
            for place, value in enumerate(values)
        )
        points = tuple(ChartPoint(x=x, y=y, hover=f"{name} {digits(y)}, hour {x:.1f}") for x, y in placed)
        series.append(Series(name=name, points=points, marked=False, style="second" if series else "first"))
    highest = (max(each.points, key=lambda point: point.y or 0).hover for each in series)
    return Chart(
        anchor=title.lower().replace(" ", "-"),
        title=title,
        description=f"{title} over time, at most: {'; '.join(highest)}. The table by time has the numbers.",
        x=Axis(label="hours from the start"),
        y=Axis(label=unit),
        series=tuple(series),
        size="low",
    )


def _section(
    heading: str, caption: str, heads: str, rows: Iterable[Sequence[Cell | str | float]], *paragraphs: str
) -> Section:
    """Return a section of one table, or of none without a row; a column is of numbers where its first value is one."""
    cells = tuple(tuple(map(_cell, row)) for row in rows)
    columns = (
        Column(head, kind="number" if first.exact else "text")
        for head, first in zip(heads.split(","), *cells[:1], strict=False)
    )
    tables = (Table(caption, tuple(columns), cells),) if cells else ()
    return Section(anchor=heading.lower(), heading=heading, paragraphs=paragraphs, tables=tables)


def _cell(value: Cell | str | float) -> Cell:
    if isinstance(value, int | float):
        return count_cell(value) if isinstance(value, int) else number_cell(value, "")
    return Cell(value) if isinstance(value, str) else value
