"""The right to describe the alarms of an automatic rollback, which SageMaker uses as the execution role."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatrial_base.catalog.service_authorization import matching_actions, patterns_overlap
from seatrial_lint.template_rules.hosting import (
    ALARMS,
    COMPONENT,
    ENDPOINT,
    STEPS_OF_A_PATTERN,
    finding_at,
    rule,
    specifications,
    with_model,
)
from seatrial_lint.template_rules.policy_documents import ROLE, arn_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource, TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyStatement

DESCRIBE_ALARMS = "cloudwatch:DescribeAlarms"


@rule("SEA786")
def rollback_rights(hosting: Hosting) -> Iterator[Finding]:
    """Alarms of an automatic rollback that no execution role may describe."""
    # Many endpoints may have one role.
    known: dict[tuple[str, str], list[_Describable] | None] = {}
    for resource in (*hosting.resources.of(ENDPOINT), *hosting.resources.of(COMPONENT)):
        alarms = resource.at("DeploymentConfig", "AutoRollbackConfiguration", "Alarms").items
        roles = _roles(hosting, resource) if alarms else []
        for role in roles:
            if role and role.key not in known:
                known[role.key] = _describable(hosting, hosting.statements_of(role))
        given = [known[role.key] for role in roles if role]
        if not roles or None in roles or None in given:
            continue
        described = [one for some in given for one in some or ()]
        steps = STEPS_OF_A_PATTERN * len(alarms) * len(described)
        if not hosting.resources.takes(steps, of=resource.template):
            continue
        lacking = [alarm for alarm in alarms if not _covered(hosting, described, resource, alarm)]
        if lacking:
            written = (hosting.resources.written(resource.template, alarm.at("AlarmName")) for alarm in lacking)
            names = ", ".join(hosting.resources.readable(name or "?") for name in written)
            held_by = " and ".join(dict.fromkeys(role.logical_id for role in roles if role))
            message = f"{held_by} may not describe the alarms of the rollback: {names}"
            value = resource.at("DeploymentConfig", "AutoRollbackConfiguration", "Alarms")
            yield finding_at(resource, value, "SEA786", message, f"allow {DESCRIBE_ALARMS} on their ARNs")


def _roles(hosting: Hosting, resource: TemplateResource) -> list[TemplateResource | None]:
    """Return the execution roles of an endpoint or component: of its configuration and of its models."""
    if resource.resource_type == COMPONENT:
        endpoint = hosting.endpoint_of(resource)
        names = [
            specification.at("ModelName")
            for specification in specifications(resource)
            if not specification.at("ModelName").is_absent
        ]
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


class _Describable(NamedTuple):
    """What a statement lets describe: an alarm of the templates where it is one, and its ARNs where they are known."""

    alarm: TemplateResource | None
    pattern: str | None


def _describable(hosting: Hosting, statements: tuple[PolicyStatement, ...] | None) -> list[_Describable] | None:
    if statements is None:
        return None
    alarms: list[_Describable] = []
    for one in filter(_may_describe, statements):
        for value in one.resources:
            alarm = hosting.resources.referred(one.template, value)
            pattern = arn_pattern(hosting.resources, one.template, value)
            alarms.append(_Describable(alarm if alarm and alarm.resource_type in ALARMS else None, pattern))
    return alarms


def _may_describe(statement: PolicyStatement) -> bool:
    """Return whether a statement allows describing some alarm; what only the deployment knows may."""
    named = [action.text for action in statement.actions] if statement.is_allow else []
    return any(
        text is None or text == "*" or DESCRIBE_ALARMS in {facts.name for facts in matching_actions(text)}
        for text in named
    )


def _covered(hosting: Hosting, described: list[_Describable], resource: TemplateResource, alarm: TemplateValue) -> bool:
    given = hosting.resources.referred(resource.template, alarm.at("AlarmName"))
    name = alarm.at("AlarmName").text if given is None else given.at("AlarmName").text
    arn = f"arn:*:cloudwatch:*:*:alarm:{name or '*'}"
    return any(
        one.alarm.key == given.key if one.alarm and given else one.pattern is None or patterns_overlap(one.pattern, arn)
        for one in described
    )
