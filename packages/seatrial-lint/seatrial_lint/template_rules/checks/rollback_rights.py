"""The right to describe the alarms of an automatic rollback, which SageMaker uses as the execution role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.arn_patterns import patterns_overlap
from seatrial_base.catalog.service_authorization import matching_actions
from seatrial_lint.template_rules.hosting import ALARMS, COMPONENT, ENDPOINT, finding_at, specifications, with_model
from seatrial_lint.template_rules.policy_documents import ROLE, arn_pattern
from seatrial_lint.template_rules.role_policies import role_statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource
    from seatrial_lint.cloudformation.template_value import TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyStatement

DESCRIBE_ALARMS = "cloudwatch:DescribeAlarms"


def rollback_rights(hosting: Hosting) -> Iterator[Finding]:
    """SEA786: alarms of an automatic rollback that no execution role may describe."""
    for resource in (*hosting.resources.of(ENDPOINT), *hosting.resources.of(COMPONENT)):
        alarms = resource.at("DeploymentConfig", "AutoRollbackConfiguration", "Alarms").items
        roles = _roles(hosting, resource)
        statements = [role_statements(hosting, role) for role in roles if role]
        if not alarms or not roles or None in roles or None in statements:
            continue
        allowing = [one for some in statements for one in some or () if one.is_allow]
        lacking = [alarm for alarm in alarms if not any(_allows(hosting, one, resource, alarm) for one in allowing)]
        if lacking:
            yield _missing(hosting, resource, lacking, [role.logical_id for role in roles if role])


def _missing(hosting: Hosting, resource: TemplateResource, alarms: list[TemplateValue], roles: list[str]) -> Finding:
    written = (hosting.resources.written(resource.template, alarm.at("AlarmName")) for alarm in alarms)
    names = ", ".join(hosting.resources.readable(name or "?") for name in written)
    message = f"{' and '.join(dict.fromkeys(roles))} may not describe the alarms of the rollback: {names}"
    value = resource.at("DeploymentConfig", "AutoRollbackConfiguration", "Alarms")
    return finding_at(resource, value, "SEA786", message, f"allow {DESCRIBE_ALARMS} on their ARNs")


def _roles(hosting: Hosting, resource: TemplateResource) -> list[TemplateResource | None]:
    """Return the execution roles of an endpoint or component: of its configuration and of its models."""
    if resource.resource_type == COMPONENT:
        endpoint = hosting.endpoint_of(resource)
        names = [one.at("ModelName") for one in specifications(resource) if not one.at("ModelName").is_absent]
    else:
        endpoint = resource
        config = hosting.config_of(endpoint)
        variants = config.at("ProductionVariants").items if config else ()
        names = [variant.at("ModelName") for variant in variants if with_model(variant)]
    config = hosting.config_of(endpoint)
    if config is None:
        return []
    models = [hosting.model_of(resource.template, name) for name in names]
    given = [config.at("ExecutionRoleArn"), *(model.at("ExecutionRoleArn") for model in models if model)]
    unknown: list[TemplateResource | None] = [None] * models.count(None)
    return [_role(hosting, resource.template, value) for value in given if not value.is_absent] + unknown


def _role(hosting: Hosting, template: str, value: TemplateValue) -> TemplateResource | None:
    role = hosting.resources.referred(template, value)
    return role if role and role.resource_type == ROLE else None


def _allows(hosting: Hosting, statement: PolicyStatement, resource: TemplateResource, alarm: TemplateValue) -> bool:
    """Return whether a statement may allow describing an alarm; what only the deployment knows may."""
    named = [each.text for each in statement.actions]
    if not any(text is None or text == "*" or DESCRIBE_ALARMS in _names(text) for text in named):
        return False
    return any(_covers(hosting, statement, each, resource, alarm) for each in statement.resources)


def _covers(
    hosting: Hosting,
    statement: PolicyStatement,
    value: TemplateValue,
    resource: TemplateResource,
    alarm: TemplateValue,
) -> bool:
    allowed = hosting.resources.referred(statement.template, value)
    given = hosting.resources.referred(resource.template, alarm.at("AlarmName"))
    if allowed and given and allowed.resource_type in ALARMS:
        return allowed.key == given.key
    pattern = arn_pattern(hosting.resources, statement.template, value)
    name = alarm.at("AlarmName").text if given is None else given.at("AlarmName").text
    return pattern is None or patterns_overlap(pattern, f"arn:*:cloudwatch:*:*:alarm:{name or '*'}")


def _names(text: str) -> set[str]:
    return {facts.name for facts in matching_actions(text)}
