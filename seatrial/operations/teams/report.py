"""What each team has in which environment, from the locks and, where it may be asked, from the account."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial.locks.lock_file import read_locked_plan
from seatrial.operations.drift.check import check_drift
from seatrial.operations.teams.vended import vended_endpoints
from seatrial_base.tags import TEAM_TAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from seatrial.operations.drift.check import DriftClients, Locked
    from seatrial.operations.drift.report import EndpointDrift
    from seatrial.operations.teams.vended import TaggedResources
    from seatrial.specs.load import LoadedSpec

NO_TEAM: Final = "no team"
HOURS_PER_MONTH: Final = 730  # AWS's own month (AWS Pricing Calculator)
_DRIFT: Final = frozenset({"SEA430", "SEA431", "SEA432"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamEndpoint:
    """One endpoint of a team; what is unknown is empty or `None`.

    Attributes:
        team: The value of its tag `team`, else `no team`.
        endpoint: Its name in the spec; of a product's, on SageMaker.
        environment: Where it is.
        plan_digest: The deployed plan, else the locked one.
        product: The product that it was made from; empty for one of a spec.
        product_version: The version of the product.
        usd_per_hour: Planned cost.
        trial_verdict: Of the last trial.
        trial_date: The day on which that ended.
        drift: `yes`, `no`, or `unknown`.
    """

    team: str
    endpoint: str
    environment: str
    plan_digest: str = ""
    product: str = ""
    product_version: str = ""
    usd_per_hour: float | None = None
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
    """Return what the lock of an endpoint says, be it stale.

    Raises:
        SpecError: When the lock can't be read, or was changed by hand.
    """
    plan = read_locked_plan(loaded, stale=True)
    return TeamEndpoint(
        team=team_of({**loaded.environment.tags, **loaded.endpoint.tags}),
        endpoint=loaded.endpoint.name,
        environment=loaded.environment.name,
        plan_digest=plan.digest,
        usd_per_hour=plan.cost.usd_per_hour,
    )


def with_account(
    endpoints: Iterable[TeamEndpoint], locked: Locked, clients: DriftClients, tagged: TaggedResources, *, now: datetime
) -> tuple[tuple[TeamEndpoint, ...], tuple[str, ...]]:
    """Return the endpoints of one environment as the account has them, those of products among them.

    Args:
        endpoints: What the locks of the environment say.
        locked: The same, to be compared with what runs.
        clients: Clients of the environment's account and region.
        tagged: Finds resources by their tags.
        now: The time.

    Returns:
        The endpoints, and what could not be asked.

    Raises:
        BenchError: As `aws_failures`, when not even the caller's identity is answered.
    """
    report = check_drift(locked, clients, now=now, most_days=float("inf"))
    found = {each.endpoint: each for each in report.endpoints}
    ours = tuple(_compared(each, found.get(each.endpoint)) for each in endpoints)
    vended, because = vended_endpoints(locked.environment.name, tagged, clients.stacks, clients.results)
    theirs = tuple(
        TeamEndpoint(
            team=team_of(each.tags),
            endpoint=each.endpoint_name,
            environment=locked.environment.name,
            plan_digest=each.plan_digest,
            product=each.product,
            product_version=each.product_version,
            usd_per_hour=each.usd_per_hour,
            trial_verdict=each.trial.verdict or each.verdict,
            trial_date=each.trial.date,
        )
        for each in vended
    )
    unasked = [f"{each.endpoint}: {line}" for each in report.endpoints for line in each.not_asked]
    return (*ours, *theirs), (*unasked, *because)


def _compared(endpoint: TeamEndpoint, drift: EndpointDrift | None) -> TeamEndpoint:
    if drift is None:
        return endpoint
    drifted = any(each.rule in _DRIFT for each in drift.findings)
    return replace(
        endpoint,
        plan_digest=drift.deployed_digest or endpoint.plan_digest,
        trial_verdict=drift.trial_verdict,
        trial_date=drift.trial_date,
        drift="yes" if drifted else "unknown" if drift.not_asked else "no",
    )
