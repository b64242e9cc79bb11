"""How many instances and functions the deployments need, how many others use, and what the account's quotas allow."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.account.live_endpoint import read_endpoint
from seatrial.account.reader import AwsReader, ClientCalls, aws_failures, count, mapping, rows, text_at
from seatrial.operations.preflight.check import account_check, ok, problem, unread
from seatrial_base.errors import BenchError
from seatrial_base.units import counted
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.measure.functions import workers_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient

    from seatrial.account.clients import AccountClients
    from seatrial.deployment.document import Deployment
    from seatrial.operations.preflight.check import AccountCheck
    from seatrial.specs.environment import EnvironmentSpec

SERVICE = "sagemaker"
AT_ONCE: Final = 8
"""Stacks that `cdk deploy --concurrency 8` of the generated pipelines deploys at a time."""
SWEEP: Final = 1
CONCURRENCY: Final = "L-B99A9384"
"""Code of "Concurrent executions" in Service Quotas, service `lambda`."""


@dataclass(frozen=True, slots=True)
class Need:
    """The most instances of one type that an endpoint runs: of its most copies, and of an update of them."""

    endpoint_name: str
    instance_type: str
    instances: int


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of the account: its code in Service Quotas and its value, in instances."""

    code: str
    value: float


@dataclass(frozen=True, slots=True)
class InUse:
    """The instances of the account by endpoint and type; or why they could not be read."""

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
        Need(deployment.endpoint_name, deployment.plan.instance_type.value, deployment.most_instances)
        for deployment in deployments
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
    quotas, because = _quotas(clients.quotas, {_quota_name(one) for one in types})
    in_use = instances_in_use(clients.endpoints)
    for one in types:
        if because:
            yield unread(_subject(one), because)
        else:
            yield _judged(one, needs, in_use, quotas.get(_quota_name(one)), region)


def _subject(instance_type: str) -> str:
    return f"quota {_quota_name(instance_type)}"


def _quota_name(instance_type: str) -> str:
    return f"{instance_type} for endpoint usage"


def _judged(
    instance_type: str, needs: tuple[Need, ...], in_use: InUse, quota: Quota | None, region: str
) -> AccountCheck:
    mine = Counter({need.endpoint_name: need.instances for need in needs if need.instance_type == instance_type})
    others = in_use.of_others(instance_type, needs)
    needed_words = ", ".join(f"{name} {number}" for name, number in sorted(mine.items()))
    used = f"others use {others}" if not in_use.unknown else f"what others use is unknown ({in_use.unknown})"
    whole = f"needs {mine.total()} ({needed_words}); {used}"
    if quota is None:
        because = f"{whole}; Service Quotas has none of this name in {region}, which may lack the instance type"
        return unread(_subject(instance_type), because)
    summary = f"{whole}; the quota is {quota.value:g}"
    short = mine.total() + others - int(quota.value)
    if short > 0:
        hint = f"request {mine.total() + others} or more at {quota_link(region, quota.code)}"
        return problem(_subject(instance_type), "SEA460", f"{summary}, {counted(short, 'instance')} too few", hint)
    return unread(_subject(instance_type), summary) if in_use.unknown else ok(_subject(instance_type), summary)


def quota_link(region: str, code: str, *, service: str = SERVICE) -> str:
    """Return the page on which an increase of a quota is requested."""
    host = "console.amazonaws.cn" if region.startswith("cn-") else "console.aws.amazon.com"
    if region.startswith("us-gov-"):
        host = "console.amazonaws-us-gov.com"
    return f"https://{region}.{host}/servicequotas/home/services/{service}/quotas/{code}"


def _quotas(service: ServiceQuotasClient, wanted: set[str]) -> tuple[dict[str, Quota], str]:
    """Return quotas by name, as set for the account or else as every account has them; or why they can't be read."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures("Service Quotas"):
            quotas = _listed(service.list_service_quotas, wanted)
            if missing := wanted - quotas.keys():
                quotas |= _listed(service.list_aws_default_service_quotas, missing)
    except BenchError as error:
        return {}, error.problems[0].message
    except ClientError as error:
        return {}, f"{error}"
    return quotas, ""


def _listed(ask: Callable[..., Mapping[str, object]], wanted: set[str]) -> dict[str, Quota]:
    quotas: dict[str, Quota] = {}
    token = ""
    while True:
        page = ask(ServiceCode=SERVICE, **({"NextToken": token} if token else {}))
        for row in rows(page, "Quotas"):
            value = row.get("Value")
            if text_at(row, "QuotaName") in wanted and isinstance(value, int | float):
                quotas[text_at(row, "QuotaName")] = Quota(text_at(row, "QuotaCode"), value)
        if not (token := text_at(page, "NextToken")):
            return quotas


def instances_in_use(endpoints: SageMakerClient) -> InUse:
    """Count the instances of every endpoint of the account in this region, by endpoint and type."""
    reader = AwsReader(ClientCalls(endpoints))
    instances: Counter[tuple[str, str]] = Counter()
    for row in reader.rows("endpoints", "sagemaker", "list_endpoints", "Endpoints", MaxResults=100):
        name = text_at(row, "EndpointName")
        endpoint = read_endpoint(name, reader, with_tags=False)
        for variant in (*endpoint.variants, *endpoint.shadow_variants):
            for pool in variant.pools:
                instances[name, pool.instance_type] += pool.current
            if not variant.pools:
                instances[name, variant.instance_type] += max(variant.current, variant.desired)
    return InUse({}, reader.not_asked[0]) if reader.not_asked else InUse(instances)


def functions_at_once(deployments: Iterable[Deployment]) -> int:
    """Return how many functions the trials of deployments run at a time at most, those of the sweep included.

    Of each trial that is its largest level's, and one more for a request of CloudFormation that waits.
    """
    # The largest trials may meet in one pipeline: their sum is the bound, not the mean.
    each = sorted((functions_of(one) + 1 for one in deployments if one.endpoint.trial.mode != "off"), reverse=True)
    return sum(each[:AT_ONCE]) + SWEEP if each else 0


def functions_of(deployment: Deployment) -> int:
    """Return how many functions load the largest level of a deployment's trial."""
    region = deployment.environment.region
    target = {"endpoint_name": deployment.endpoint_name, "inference_component": None, "region": region}
    whole = {**json.loads(deployment.trial_request), "target": target, "expected": None}
    request = read_trial_request(json.dumps(whole))
    return max(workers_at(request, level) for level in request.load.concurrency_levels)


def function_checks(
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, functions: LambdaClient
) -> Iterator[AccountCheck]:
    """Yield the check of what AWS Lambda runs at a time; none where nothing is tried."""
    needed = functions_at_once(deployments)
    if not needed:
        return
    subject = "Lambda functions at a time"
    if environment.is_embedded:
        yield unread(subject, "the embedded AWS has no service quotas")
        return

    def ask() -> AccountCheck:
        limit = count(mapping(functions.get_account_settings(), "AccountLimit"), "UnreservedConcurrentExecutions")
        summary = f"the trials need {needed}; {limit} are not reserved"
        if needed > limit:
            link = quota_link(environment.region, CONCURRENCY, service="lambda")
            hint = f"request {needed} or more at {link}, deploy fewer stacks at a time, or release reserved concurrency"
            return problem(subject, "SEA467", summary, hint)
        return ok(subject, summary)

    yield account_check(subject, ask, refusals={})
