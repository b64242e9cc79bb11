"""Listing of teams' endpoints: versions, planned cost, last trials, drift."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from seatrial.account.reader import aws_failures, count, mapping, rows, text_at
from seatrial.account.trials import describe_stack
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.drift.check import check_drift
from seatrial.operations.drift.trials import deployed_trial
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import BenchError
from seatrial_base.tags import ENVIRONMENT_TAG, PRODUCT_TAG, PRODUCT_VERSION_TAG, STACK_TAG, TEAM_TAG
from seatrial_base.text import escaped
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from mypy_boto3_resourcegroupstaggingapi.type_defs import TagFilterTypeDef
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.operations.drift.check import DriftClients, Locked
    from seatrial.operations.drift.report import EndpointDrift
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.load import LoadedSpec

Spent: TypeAlias = "Mapping[str, float]"

NO_TEAM: Final = "no team"
COST: Final = "UnblendedCost"
HOURS_PER_MONTH: Final = 730  # AWS's own month (AWS Pricing Calculator)
_DRIFT: Final = frozenset({"SEA430", "SEA431", "SEA432"})
SCHEMA: Final = "1"
COLUMNS: Final = ("endpoint", "environment", "version", "$/h", "$/month", "trial", "drift")
CSV_COLUMNS: Final = (
    "team",
    "endpoint",
    "environment",
    "plan_digest",
    "product",
    "product_version",
    "usd_per_hour",
    "usd_per_month",
    "price_region",
    "trial_verdict",
    "trial_date",
    "drift",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamEndpoint:
    """One endpoint of a team; what is unknown is empty or `None`.

    Attributes:
        team: The value of its tag `team`, else `no team`.
        endpoint: Its name in the spec; of a product's, on SageMaker.
        plan_digest: The deployed plan, else the locked one.
        product: The product that it was made from; empty for one of a spec.
        usd_per_hour: Planned cost.
        price_region: The region whose price that is, where none is known for the endpoint's.
        drift: `yes`, `no`, or `unknown`.
    """

    team: str
    endpoint: str
    environment: str
    plan_digest: str = ""
    product: str = ""
    product_version: str = ""
    usd_per_hour: float | None = None
    price_region: str | None = None
    trial_verdict: str = ""
    trial_date: str = ""
    drift: str = "unknown"

    @property
    def usd_per_month(self) -> float | None:
        """Planned cost of 730 hours."""
        return None if self.usd_per_hour is None else self.usd_per_hour * HOURS_PER_MONTH


def team_of(tags: Mapping[str, str]) -> str:
    """Return the team that tags name."""
    return tags.get(TEAM_TAG) or NO_TEAM


def locked_endpoint(loaded: LoadedSpec) -> TeamEndpoint:
    """Return an endpoint by its lock, be it stale.

    Raises:
        SpecError: When the lock can't be read, or was changed by hand.
    """
    plan = read_locked_plan(loaded, stale=True)
    price, of_region = plan.cost.usd_per_hour, plan.cost.price_region
    return TeamEndpoint(
        team=team_of({**loaded.environment.tags, **loaded.endpoint.tags}),
        endpoint=loaded.endpoint.name,
        environment=loaded.environment.name,
        plan_digest=plan.digest,
        usd_per_hour=price,
        price_region=of_region,
    )


def with_account(
    endpoints: Iterable[TeamEndpoint],
    locked: Locked,
    clients: DriftClients,
    tagged: ResourceGroupsTaggingAPIClient,
    *,
    now: datetime,
) -> tuple[tuple[TeamEndpoint, ...], tuple[str, ...]]:
    """Return the endpoints of one environment as the account has them, and what could not be read.

    Raises:
        BenchError: As `aws_failures`, when AWS does not even return the caller's identity.
    """
    report = check_drift(locked, clients, now=now, most_days=float("inf"))
    drifts = {drift.endpoint: drift for drift in report.endpoints}
    ours = tuple(_compared(endpoint, drifts.get(endpoint.endpoint)) for endpoint in endpoints)
    vended, because = _vended_endpoints(locked.environment, tagged, clients)
    unread = [f"{drift.endpoint}: {line}" for drift in report.endpoints for line in drift.unreadable]
    return (*ours, *vended), (*unread, *because)


def _vended_endpoints(
    place: EnvironmentSpec, tagged: ResourceGroupsTaggingAPIClient, clients: DriftClients
) -> tuple[tuple[TeamEndpoint, ...], tuple[str, ...]]:
    """Return the endpoints of products in an environment, which no spec knows, and what could not be read."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    environment = place.name
    try:
        with aws_failures("products"):
            matches = sorted(_tagged(environment, tagged), key=lambda match: (match[0], sorted(match[1].items())))
    except BenchError as error:
        return (), (f"products: {error.problems[0].message}",)
    except ClientError as error:
        return (), (f"products: {error}",)
    vended: list[TeamEndpoint] = []
    unread: list[str] = []
    for name, tags in matches:
        endpoint = TeamEndpoint(
            team=team_of(tags),
            endpoint=name,
            environment=environment,
            product=tags.get(PRODUCT_TAG, ""),
            product_version=tags.get(PRODUCT_VERSION_TAG, ""),
        )
        steps = (
            partial(_with_trial, clients=clients, stack_name=tags.get(STACK_TAG, name)),
            partial(_with_instances, place=place, service=clients.endpoints),
        )
        for step in steps:
            try:
                endpoint = step(endpoint)
            except BenchError as error:
                unread.append(f"{name}: {error.problems[0].message}")
            except ClientError as error:
                unread.append(f"{name}: {error}")
        vended.append(endpoint)
    return tuple(vended), tuple(unread)


def _with_trial(endpoint: TeamEndpoint, *, clients: DriftClients, stack_name: str) -> TeamEndpoint:
    """Return an endpoint with what its stack and its trial say of it."""
    stack = describe_stack(stack_name, clients.stacks)
    trial = deployed_trial(stack, clients.results)
    # No lock of this repository is at hand: the request of the trial holds the price that was planned.
    request = None if trial.result is None else trial.result.request
    price = None if request is None else request.usd_per_hour_per_copy
    return replace(
        endpoint,
        plan_digest=stack.outputs.get("PlanDigest", ""),
        usd_per_hour=None if request is None or price is None else price * request.copy_count,
        trial_verdict=trial.verdict or stack.outputs.get("Verdict", ""),
        trial_date=trial.date,
    )


def _with_instances(endpoint: TeamEndpoint, *, place: EnvironmentSpec, service: SageMakerClient) -> TeamEndpoint:
    """Return an endpoint that has no price with the list price of its own instances, where each of them has one.

    Raises:
        BenchError: As `aws_failures`.
        ClientError: It is not there, or SageMaker refuses otherwise.
    """
    if endpoint.usd_per_hour is not None:
        return endpoint
    with aws_failures(endpoint.endpoint):
        live = service.describe_endpoint(EndpointName=endpoint.endpoint)
        config = service.describe_endpoint_config(EndpointConfigName=live["EndpointConfigName"])
    running = {text_at(row, "VariantName"): row for row in rows(live, "ProductionVariants")}
    prices, elsewhere, here = [], None, place.region
    for wanted in rows(config, "ProductionVariants"):
        now = running.get(text_at(wanted, "VariantName"), {})
        least = count(mapping(wanted, "ManagedInstanceScaling"), "MinInstanceCount")
        instances = count(now, "DesiredInstanceCount") or count(wanted, "InitialInstanceCount") or least
        known = find_instance(text_at(wanted, "InstanceType"))
        if known is None or known.usd_per_hour is None:
            return endpoint
        prices.append(known.usd_per_hour * instances)
        elsewhere = known.price_region if replace(known, region=here).has_other_price else elsewhere
    return replace(endpoint, usd_per_hour=math.fsum(prices), price_region=elsewhere) if prices else endpoint


class CostExplorer(Protocol):
    """The operation of Cost Explorer that is called."""

    def get_cost_and_usage(self, **asked: object) -> Mapping[str, object]:
        """Return costs by group, a page of them."""


def spent_this_month(
    environment: EnvironmentSpec, explorer: CostExplorer | None, *, now: datetime
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return what an environment's teams have cost this month so far, in USD, and why it is unknown where it is.

    Args:
        explorer: Cost Explorer, which bills each call; `None` where there is none, as on the embedded AWS.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    if explorer is None:
        return {}, ("cost of the month: the embedded AWS has no Cost Explorer",)
    spent: dict[str, float] = {}
    token: dict[str, str] = {}
    try:
        with aws_failures("cost of the month"):
            while True:
                page = explorer.get_cost_and_usage(
                    TimePeriod={"Start": f"{now:%Y-%m}-01", "End": f"{now + timedelta(days=1):%Y-%m-%d}"},
                    Granularity="MONTHLY",
                    Metrics=[COST],
                    Filter={"Tags": {"Key": ENVIRONMENT_TAG, "Values": [environment.name]}},
                    GroupBy=[{"Type": "TAG", "Key": TEAM_TAG}],
                    **token,  # boto3 refuses one that is empty
                )
                for row in (group for month in rows(page, "ResultsByTime") for group in rows(month, "Groups")):
                    keys = row["Keys"]  # as `team$search`
                    team = f"{keys[0] if isinstance(keys, list) else keys}".partition("$")[2] or NO_TEAM
                    amount = float(text_at(mapping(mapping(row, "Metrics"), COST), "Amount"))
                    spent[team] = spent.get(team, 0.0) + amount
                if not (following := text_at(page, "NextPageToken")):
                    break
                token = {"NextPageToken": following}
    except BenchError as error:
        return {}, (f"cost of the month: {error.problems[0].message}",)
    except ClientError as error:
        return {}, (f"cost of the month: {error}",)
    if not spent.keys() - {NO_TEAM}:
        activate = "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status"
        tags = " ".join(f"TagKey={key},Status=Active" for key in (ENVIRONMENT_TAG, TEAM_TAG))
        because = "no cost of it carries both tags; in the account that pays, a day after the first resource: "
        return {}, (f"cost of the month: {because}{activate} {tags}",)
    return spent, ()


def _tagged(environment: str, tagged: ResourceGroupsTaggingAPIClient) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the endpoints that have the tags of a product and of the environment, with all their tags."""
    filters: list[TagFilterTypeDef] = [{"Key": ENVIRONMENT_TAG, "Values": [environment]}, {"Key": PRODUCT_TAG}]
    token = ""
    while True:
        page = tagged.get_resources(
            TagFilters=filters, ResourceTypeFilters=["sagemaker:endpoint"], PaginationToken=token
        )
        for row in rows(page, "ResourceTagMappingList"):
            tags = {text_at(tag, "Key"): text_at(tag, "Value") for tag in rows(row, "Tags")}
            yield text_at(row, "ResourceARN").rpartition("/")[2], tags
        token = text_at(page, "PaginationToken")
        if not token:
            return


def _compared(endpoint: TeamEndpoint, drift: EndpointDrift | None) -> TeamEndpoint:
    if drift is None:
        return endpoint
    drifted = any(finding.rule in _DRIFT and finding.severity != "note" for finding in drift.findings)
    return replace(
        endpoint,
        plan_digest=drift.deployed_digest or endpoint.plan_digest,
        trial_verdict=drift.trial_verdict,
        trial_date=drift.trial_date,
        drift="yes" if drifted else "unknown" if drift.unreadable else "no",
    )


def by_team(endpoints: Iterable[TeamEndpoint]) -> Iterator[tuple[str, tuple[TeamEndpoint, ...]]]:
    """Yield each team with its endpoints, all by name."""
    ordered = sorted(endpoints, key=lambda each: (each.team, each.endpoint, each.environment))
    for team, group in groupby(ordered, key=lambda each: each.team):
        yield team, tuple(group)


def teams_lines(endpoints: Sequence[TeamEndpoint], unread: Iterable[str], spent: Spent | None = None) -> Iterator[str]:
    """Yield the endpoints of each team as a table.

    Args:
        spent: What each team has cost this month, in USD; `None` where nobody asked.
    """
    cells = [COLUMNS, *(_cells(endpoint) for endpoint in endpoints)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(COLUMNS))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    for team, group in by_team(endpoints):
        yield f"{team}: {_sum(group)}{_spent(team, spent)}"
        yield f"  {line(COLUMNS)}"
        yield from (f"  {line(_cells(endpoint))}" for endpoint in group)
        yield ""
    if not endpoints:
        yield "no endpoint has a lock, and no product is deployed"
    yield from (f"could not be read: {line}" for line in unread)


def _cells(endpoint: TeamEndpoint) -> tuple[str, ...]:
    product = f"{endpoint.product} {endpoint.product_version}".strip()
    trial = " ".join(part for part in (endpoint.trial_verdict, endpoint.trial_date) if part)
    return (
        endpoint.endpoint,
        endpoint.environment,
        product or endpoint.plan_digest or "unknown",
        _money(endpoint.usd_per_hour, 2) + (f" ({endpoint.price_region})" if endpoint.price_region else ""),
        _money(endpoint.usd_per_month, 0),
        trial or "unknown",
        endpoint.drift,
    )


def _spent(team: str, spent: Spent | None) -> str:
    return "" if spent is None else f", ${_money(spent.get(team), 2)} this month so far".replace("$unknown", "unknown")


def _money(amount: float | None, digits: int) -> str:
    return "unknown" if amount is None else f"{amount:,.{digits}f}"


def _sum(group: Sequence[TeamEndpoint]) -> str:
    known = [endpoint for endpoint in group if endpoint.usd_per_hour is not None]
    prices = ("usd_per_hour", "usd_per_month")
    hourly, monthly = (math.fsum(getattr(endpoint, name) for endpoint in known) for name in prices)
    rest = len(group) - len(known)
    unknown = f", {rest} of unknown cost" if rest else ""
    if elsewhere := sum(endpoint.price_region is not None for endpoint in group):
        unknown += f", {elsewhere} at the price of another region"
    return f"{counted(len(group), 'endpoint')}, ${hourly:,.2f}/h, ${monthly:,.0f}/month planned{unknown}"


def teams_markdown(endpoints: Sequence[TeamEndpoint], unread: Iterable[str], spent: Spent | None = None) -> str:
    """Return one table for each team, with what it has cost this month as `teams_lines` has it."""
    lines = ["# Endpoints by team", ""]
    for team, group in by_team(endpoints):
        lines += [f"## {escaped(team)}", "", f"{_sum(group)}{_spent(team, spent)}.", "", f"| {' | '.join(COLUMNS)} |"]
        rows = (f"| {' | '.join(map(escaped, _cells(endpoint)))} |" for endpoint in group)
        lines += ["|---" * len(COLUMNS) + "|", *rows, ""]
    lines += [f"- Could not be read: {escaped(line)}" for line in unread]
    return "\n".join(lines).rstrip() + "\n"


def teams_csv(endpoints: Sequence[TeamEndpoint]) -> str:
    """Return one row for each endpoint; a cell that a spreadsheet would take for a formula begins with a quote."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for _, group in by_team(endpoints):
        for endpoint in group:
            writer.writerow(
                [
                    (f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value)
                    for value in _row(endpoint).values()
                ]
            )
    return text.getvalue()


def _row(endpoint: TeamEndpoint) -> dict[str, object]:
    fields = {**asdict(endpoint), "usd_per_month": endpoint.usd_per_month}
    return {name: fields[name] for name in CSV_COLUMNS}


def teams_document(
    endpoints: Sequence[TeamEndpoint], unread: Iterable[str], spent: Spent | None = None
) -> dict[str, object]:
    """Return the endpoints of each team as a document for programs; its cost of the month where somebody asked."""

    def cost(team: str) -> dict[str, object]:
        return {} if spent is None else {"usd_this_month": spent.get(team)}

    return {
        "schema_version": SCHEMA,
        "teams": [{"team": team, **cost(team), "endpoints": [*map(_row, group)]} for team, group in by_team(endpoints)],
        "not_asked": list(unread),
    }
