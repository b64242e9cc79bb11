"""What an endpoint needs of its account: roles, weights, secrets, quotas."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from seatrial.account.response import mapping, text_at
from seatrial.operations.preflight.check import ok, problem, unread
from seatrial.operations.preflight.instances import Need, quota_checks
from seatrial.operations.preflight.parts import secret_check, weights_check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.account.reader import AwsReader
    from seatrial.operations.doctor.facts import ComponentFacts, EndpointFacts, ModelFacts
    from seatrial.operations.doctor.gather import AskedEndpoint
    from seatrial.operations.preflight.check import AccountCheck

ASSUMED_BY = "sagemaker.amazonaws.com"


def account_checks(
    asked: AskedEndpoint,
    endpoint: EndpointFacts,
    models: Iterable[ModelFacts],
    components: Iterable[ComponentFacts],
    reader: AwsReader,
) -> Iterator[AccountCheck]:
    """Yield the checks of what a new copy or instance would need, each thing once, in order.

    Args:
        asked: Which endpoint, and whom to ask.
        endpoint: What was found of it.
        models: Its models.
        components: Its components; adapters have files of their own.
        reader: Asks IAM.
    """
    account, deployment = asked.account, asked.deployment
    models = tuple(models)
    for arn in sorted({each.role_arn for each in models} - {""}):
        yield _role(arn, reader)
    read = {uri for each in models for uri in each.uris} | {each.artifact for each in components}
    for uri in sorted(uri for uri in read if uri.startswith("s3://")):
        yield weights_check(uri, account.objects)
    for secret in sorted({*deployment.serving.secret_env.values()}) if deployment is not None else ():
        yield secret_check(secret, account.secrets)
    yield from _quotas(asked, endpoint)


def _quotas(asked: AskedEndpoint, endpoint: EndpointFacts) -> Iterator[AccountCheck]:
    most: Counter[str] = Counter()
    for each in endpoint.variants:
        if each.instance_type:
            most[each.instance_type] += max(each.most, each.desired, each.current)
    needs = tuple(Need(asked.name, instance_type, number) for instance_type, number in sorted(most.items()))
    if asked.deployment is not None and asked.deployment.environment.is_embedded:
        yield from (unread(f"quota {each.instance_type}", "the embedded AWS has no service quotas") for each in needs)
    elif needs:
        yield from quota_checks(needs, asked.region, asked.account)


def _role(arn: str, reader: AwsReader) -> AccountCheck:
    """Check that a role exists and that SageMaker may assume it."""
    subject, name = f"execution role {arn}", arn.rpartition("/")[2]
    before = len(reader.not_asked)
    answer = reader.read(subject, "iam", "get_role", RoleName=name)
    if answer.state == "not asked":
        return unread(subject, reader.not_asked.pop() if len(reader.not_asked) > before else "it could not be asked")
    if answer.state == "absent":
        hint = "deploy the stack again; a model keeps the ARN of a role that is deleted and recreated, not its rights"
        return problem(subject, "SEA758", "it does not exist", hint)
    policy = mapping(answer.document, "Role").get("AssumeRolePolicyDocument")
    if ASSUMED_BY not in _services(policy):
        hint = f"let {ASSUMED_BY} assume it in its trust policy"
        return problem(subject, "SEA758", f"its trust policy does not name {ASSUMED_BY}", hint)
    return ok(subject, f"it exists, and {ASSUMED_BY} may assume it")


def _services(policy: object) -> set[str]:
    """Return the services that a trust policy allows; boto3 decodes it, other clients leave it as text."""
    document = json.loads(policy) if isinstance(policy, str) else policy
    statements = document.get("Statement") if isinstance(document, dict) else None
    found: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        if isinstance(statement, dict) and text_at(statement, "Effect") == "Allow":
            found |= {*_listed(mapping(statement, "Principal"))}
    return found


def _listed(principal: Mapping[str, object]) -> Iterator[str]:
    services = principal.get("Service")
    for service in services if isinstance(services, list) else [services]:
        if isinstance(service, str):
            yield service
