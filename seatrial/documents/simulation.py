"""What a simulation of days takes and gives: traffic over time, and what an endpoint would do under it."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from seatrial_base.catalog.instances import Purchase
from seatrial_base.frozen_model import FrozenModel

Hours = Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3])-(0[1-9]|1\d|2[0-4])$")]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MOST_RATE = 20_000.0
"""Requests per second of a simulation: a minute of them is in memory."""
MOST_COUNTED = 20_000 * 86_400
Share = Annotated[float, Field(ge=0, le=1)]
# Of a YAML file, which holds 20,000 values: 52 days of 5 minutes.
Counts = Annotated[tuple[Annotated[int, Field(ge=0, le=MOST_COUNTED)], ...], Field(min_length=1, max_length=15_000)]


class TrafficProfile(FrozenModel):
    """A day and a week in a few words; requests come at random (Poisson) at the rate of their minute."""

    peak_requests_per_second: Annotated[float, Field(gt=0, le=MOST_RATE)] = Field(
        description="Requests per second at the peak of the first day."
    )
    hours: Annotated[dict[Hours, Share], Field(min_length=1)] = Field(
        description="Share of the peak between hours of the day, as `08-18: 1`; `22-24` and `00-06` are the night."
    )
    other_hours: Share = Field(0.0, description="Share of the peak in the hours that `hours` leaves out.")
    weekdays: dict[Weekday, Share] = Field({}, description="Share that a weekday has of this, as `fri: 0.8`.")
    weekend_share: Share = Field(1.0, description="The same for Saturday and Sunday, unless `weekdays` says it.")
    growth_per_month: Annotated[float, Field(gt=-1, le=10)] = Field(
        0.0, description="Growth of the rate in 30 days, as a share: 0.1 is 10 %."
    )
    ramp_minutes: Annotated[int, Field(ge=0, le=240)] = Field(
        60, description="Minutes over which the rate goes from one share to the next, half of them before the hour."
    )


class TrafficCounts(FrozenModel):
    """Requests that came in each period, as `seatrial simulate --from-endpoint` writes them; they are repeated."""

    period_s: Annotated[int, Field(ge=60, le=86_400, multiple_of=60)] = Field(
        300, description="Length of a period, in seconds: whole minutes."
    )
    requests: Counts = Field(description="Requests of each period, from midnight of `start` on.")
    source: str = Field("", description="Where they were counted.")


class Traffic(FrozenModel):
    """Traffic over time: a profile or counts. Lengths of prompts and answers are those of the spec's workload."""

    start: Annotated[date, Field(ge=date(2000, 1, 1), le=date(2100, 1, 1))] = Field(
        date(2026, 1, 5), description="First day; schedules and changes of the clock depend on it."
    )
    timezone: str = Field("UTC", description="IANA time zone of `start`, `hours` and `weekdays`.")
    profile: TrafficProfile | None = Field(None, description="A day and a week in a few words.")
    counts: TrafficCounts | None = Field(None, description="Requests that came in each period.")


class ObjectiveShare(FrozenModel):
    """One latency objective: the share of the answered requests that kept it, and whether that is enough."""

    objective: str
    bound_ms: float
    required: float
    share: float
    met: bool


class StartPart(FrozenModel):
    """One part of the start of a copy; `further`: also of one more copy on an instance in service.

    Attributes:
        seconds: As measured; else a bound, slow on purpose, as the timeouts take it.
        likely_s: The likely time, measured or published; `None` where none is known.
    """

    part: str
    seconds: float
    further: bool
    source: str
    likely_s: float | None = None
    likely_source: str = ""


class CopyStart(FrozenModel):
    """The start of a planned copy.

    Attributes:
        totals: Until the first answer of a copy, from the load that needs it on.
        shortcuts: What would shorten it, with the seconds that it saves.
    """

    parts: tuple[StartPart, ...]
    totals: tuple[StartPart, ...]
    shortcuts: tuple[StartPart, ...]
    waits: str
    warnings: tuple[str, ...]


class SimulatedCost(FrozenModel):
    """What instances cost while a copy serves, while they or their first copy start, and while they have no copy."""

    serving_usd_per_day: float
    starting_usd_per_day: float
    idle_usd_per_day: float
    usd_per_day: float
    usd_per_month: float
    usd_per_million_output_tokens: float | None
    usd_per_instance_hour: float
    elsewhere: str = ""
    purchase: Purchase
    price_source: str | None


class ScalingEvent(FrozenModel):
    """One change of the number of copies, when it was decided, in minutes from the start."""

    minute: float
    copies: int
    cause: str


class Minutes(FrozenModel):
    """A value for each minute; `late` answers began and missed the SLO, and all but requests count at its end."""

    requests: tuple[int, ...]
    refused: tuple[int, ...]
    late: tuple[int, ...]
    in_flight: tuple[int, ...]
    copies: tuple[int, ...]
    instances: tuple[int, ...]


class SecondRegion(FrozenModel):
    """What another Region would take over: every refused or late request, by copies that keep the SLO at their target.

    Attributes:
        peak_requests_per_second: Of the worst minute; `copies` and `instances` are those that it needs there.
    """

    requests: int
    peak_requests_per_second: float
    requests_per_second_per_copy: float
    copies: int
    instances: int


class Simulation(FrozenModel):
    """What an endpoint would do under traffic over time: simulated, not measured.

    Attributes:
        starts_at: First minute, ISO 8601 with the offset of its time zone.
        seed: Of the random arrivals: equal inputs and seeds give equal results.
        refused_full: Refused as every copy had as many as it takes.
        quota_instances: Most instances that were allowed to run; `None` where no quota was given.
        copies_over_quota: Most copies at once that scaling wanted and the quota had no room for.
        waited: Share of the answered requests that waited for a place in a batch.
        within_slo: Share of all requests that were answered within the highest percentile's bound of each latency.
        meets_slo: Whether every objective was met, that of errors included; `None` where the SLO bounds no latency.
        cost: `None` where the plan has no price.
        second_region: `None` where no request was refused or late.
        not_simulated: What is left out, full sentences.
    """

    schema_version: str = "1"
    simulated: Literal[True] = True
    endpoint: str
    environment: str
    traffic: str
    starts_at: str
    days: int
    seed: int
    deployment: str
    requests: int
    refused_without_copy: int
    refused_full: int
    waited: float
    within_slo: float
    meets_slo: bool | None
    objectives: tuple[ObjectiveShare, ...]
    output_tok_s: float
    mean_instances: float
    quota_instances: int | None = None
    copies_over_quota: int = 0
    starts: tuple[StartPart, ...]
    cost: SimulatedCost | None
    second_region: SecondRegion | None = None
    not_simulated: tuple[str, ...]
    events: tuple[ScalingEvent, ...]
    minutes: Minutes


class ScheduleChange(FrozenModel):
    """A field of the spec that another schedule sets; `because` says what setting it alone saves or prevents."""

    field: str
    before: JsonValue
    after: JsonValue
    because: str


class SimulatedSchedule(FrozenModel):
    """A way to scale that was simulated in full.

    Attributes:
        fields: What it sets in the spec, by the dotted name of each field; empty for the spec as it is.
        within_slo: Share of all requests that were answered within the SLO.
        keeps_share: Whether that is enough.
        usd_per_month: With a Savings Plan for its base load, where that is cheaper.
        base_instances: Instances that ran all the time.
        savings_plan_usd_per_month: What a Savings Plan of one year for these saves of it; 0 where no price is known.
    """

    deployment: str
    fields: dict[str, JsonValue]
    within_slo: float
    refused: int
    keeps_share: bool
    usd_per_month: float
    base_instances: int
    savings_plan_usd_per_month: float
    cost: SimulatedCost


class CheapestSchedule(FrozenModel):
    """The cheapest way to scale that was found to keep a share of the requests within the SLO: simulated, not measured.

    Attributes:
        share: Share of all requests that must be within the SLO; `None`: every objective and the error rate.
        screened: Schedules whose days a fluid model went through.
        simulated: Those of them that were simulated in full.
        changes: What the cheapest changes in the spec, each with its reason; empty where that is the spec as it is.
        runner_up: The next cheapest that keeps the share; `None` where no other was found.
    """

    schema_version: str = "1"
    simulated_only: Literal[True] = True
    endpoint: str
    environment: str
    traffic: str
    days: int
    seed: int
    share: float | None
    screened: int
    simulated: int
    current: SimulatedSchedule
    cheapest: SimulatedSchedule
    runner_up: SimulatedSchedule | None
    changes: tuple[ScheduleChange, ...]
