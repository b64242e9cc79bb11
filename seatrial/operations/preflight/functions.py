"""How many functions the trials need at a time, and how many the account runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial.account.reader import count, mapping
from seatrial.operations.preflight.check import asked, ok, problem, unread
from seatrial.operations.preflight.instances import quota_link
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.measure.functions import workers_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.account.clients import Functions
    from seatrial.deployment.document import Deployment
    from seatrial.operations.preflight.check import AccountCheck
    from seatrial.specs.environment import EnvironmentSpec

AT_ONCE: Final = 8
"""Stacks that `cdk deploy --concurrency 8` of the generated pipelines deploys at a time."""
SWEEP: Final = 1
CONCURRENCY: Final = "L-B99A9384"
"""Code of "Concurrent executions" in Service Quotas, service `lambda`."""


def functions_at_once(deployments: Iterable[Deployment]) -> int:
    """Return how many functions the trials of deployments run at a time at most, those of the sweep included.

    Of each trial that is its largest level's; one endpoint's request of CloudFormation may wait beside them.
    """
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
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, functions: Functions
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
        found = f"the trials need {needed}; {limit} are not reserved"
        if needed > limit:
            link = quota_link(environment.region, CONCURRENCY, service="lambda")
            hint = f"request {needed} or more at {link}, deploy fewer stacks at a time, or release reserved concurrency"
            return problem(subject, "SEA467", found, hint)
        return ok(subject, found)

    yield asked(subject, ask, refusals={})
