"""How many instances of each type the deployments need, how many others use, and what the quota allows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.live_endpoint import read_endpoint
from seatrial.account.reader import AwsReader, ClientCalls, aws_failures, rows, text_at
from seatrial.operations.preflight.check import ok, problem, unread
from seatrial_base.errors import BenchError
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from seatrial.account.clients import AccountClients, Endpoints, Quotas
    from seatrial.deployment.document import Deployment
    from seatrial.documents.live_endpoint import LiveEndpoint
    from seatrial.operations.preflight.check import AccountCheck
    from seatrial.specs.environment import EnvironmentSpec

SERVICE = "sagemaker"


@dataclass(frozen=True, slots=True)
class Need:
    """The most instances of one type that an endpoint runs: of its most copies, and of an update of them."""

    endpoint_name: str
    instance_type: str
    instances: int


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of the account.

    Attributes:
        code: Its code in Service Quotas.
        value: Its value, in instances.
    """

    code: str
    value: float


@dataclass(frozen=True, slots=True)
class InUse:
    """What runs in the account: instances by endpoint and type; or why that could not be asked."""

    instances: Mapping[tuple[str, str], int]
    unknown: str = ""

    def of_others(self, instance_type: str, needs: Iterable[Need]) -> int:
        """Return the instances of a type at endpoints that are not deployed now under the same name and type.

        The old endpoint of a move to another name, or to another type, is one of the others: both run for a while.
        """
        ours = {(need.endpoint_name, need.instance_type) for need in needs}
        return sum(n for place, n in self.instances.items() if place[1] == instance_type and place not in ours)


def needs_of(deployments: Iterable[Deployment]) -> tuple[Need, ...]:
    """Return what each deployment needs at most."""
    return tuple(
        Need(
            one.endpoint_name,
            one.plan.instance_type.value,
            one.most_instances,
        )
        for one in deployments
    )


def instance_checks(
    needs: tuple[Need, ...], environment: EnvironmentSpec, clients: AccountClients
) -> Iterator[AccountCheck]:
    """Yield one check for each instance type, by name."""
    types = sorted({need.instance_type for need in needs})
    if environment.is_embedded:
        yield from (unread(_subject(one), "the embedded AWS has no service quotas") for one in types)
        return
    yield from quota_checks(needs, environment.region, clients)


def quota_checks(needs: tuple[Need, ...], region: str, clients: AccountClients) -> Iterator[AccountCheck]:
    """Yield one check for each instance type of an account on AWS, by name."""
    types = sorted({need.instance_type for need in needs})
    found, because = _quotas(clients.quotas, {_quota_name(one) for one in types})
    in_use = instances_in_use(clients.endpoints)
    for one in types:
        if because:
            yield unread(_subject(one), because)
        else:
            yield _judged(one, needs, in_use, found.get(_quota_name(one)), region)


def _subject(instance_type: str) -> str:
    return f"quota {_quota_name(instance_type)}"


def _quota_name(instance_type: str) -> str:
    return f"{instance_type} for endpoint usage"


def _judged(
    instance_type: str, needs: tuple[Need, ...], in_use: InUse, quota: Quota | None, region: str
) -> AccountCheck:
    mine = Counter({need.endpoint_name: need.instances for need in needs if need.instance_type == instance_type})
    others = in_use.of_others(instance_type, needs)
    asked_for = ", ".join(f"{name} {number}" for name, number in sorted(mine.items()))
    used = f"others use {others}" if not in_use.unknown else f"what others use is unknown ({in_use.unknown})"
    whole = f"needs {mine.total()} ({asked_for}); {used}"
    if quota is None:
        because = f"{whole}; Service Quotas has none of this name in {region}, which may lack the instance type"
        return unread(_subject(instance_type), because)
    found = f"{whole}; the quota is {quota.value:g}"
    short = mine.total() + others - int(quota.value)
    if short > 0:
        hint = f"request {mine.total() + others} or more at {quota_link(region, quota.code)}"
        return problem(_subject(instance_type), "SEA460", f"{found}, {counted(short, 'instance')} too few", hint)
    return unread(_subject(instance_type), found) if in_use.unknown else ok(_subject(instance_type), found)


def quota_link(region: str, code: str, *, service: str = SERVICE) -> str:
    """Return the page on which an increase of a quota is requested."""
    host = "console.amazonaws.cn" if region.startswith("cn-") else "console.aws.amazon.com"
    if region.startswith("us-gov-"):
        host = "console.amazonaws-us-gov.com"
    return f"https://{region}.{host}/servicequotas/home/services/{service}/quotas/{code}"


def _quotas(service: Quotas, wanted: set[str]) -> tuple[dict[str, Quota], str]:
    """Return quotas by name, as set for the account or else as every account has them; or why they can't be asked."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures("Service Quotas"):
            found = _listed(service.list_service_quotas, wanted)
            if missing := wanted - found.keys():
                found |= _listed(service.list_aws_default_service_quotas, missing)
    except BenchError as error:
        return {}, error.problems[0].message
    except ClientError as error:
        return {}, f"{error}"
    return found, ""


def _listed(ask: Callable[..., Mapping[str, object]], wanted: set[str]) -> dict[str, Quota]:
    found: dict[str, Quota] = {}
    for page in _pages(ask, {"ServiceCode": SERVICE}):
        for row in rows(page, "Quotas"):
            value = row.get("Value")
            if text_at(row, "QuotaName") in wanted and isinstance(value, int | float):
                found[text_at(row, "QuotaName")] = Quota(text_at(row, "QuotaCode"), value)
    return found


def _pages(ask: Callable[..., Mapping[str, object]], given: Mapping[str, str]) -> Iterator[Mapping[str, object]]:
    token = ""
    while True:
        page = ask(**given, **({"NextToken": token} if token else {}))
        yield page
        token = text_at(page, "NextToken")
        if not token:
            return


def instances_in_use(endpoints: Endpoints) -> InUse:
    """Count the instances of every endpoint of the account in this region, by endpoint and type."""
    reader = AwsReader(ClientCalls(endpoints))
    found: Counter[tuple[str, str]] = Counter()
    for row in reader.rows("endpoints", "sagemaker", "list_endpoints", "Endpoints", MaxResults=100):
        name = text_at(row, "EndpointName")
        for instance_type, number in _instances_of(read_endpoint(name, reader, with_tags=False)):
            found[name, instance_type] += number
    return InUse({}, reader.not_asked[0]) if reader.not_asked else InUse(found)


def _instances_of(endpoint: LiveEndpoint) -> Iterator[tuple[str, int]]:
    for variant in (*endpoint.variants, *endpoint.shadow_variants):
        yield from ((pool.instance_type, pool.current) for pool in variant.pools)
        if not variant.pools:
            yield variant.instance_type, max(variant.current, variant.desired)
