"""Every rule on every resource of several templates, all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_lint.template_rules.checks import (  # noqa: F401 (importing a file registers its checks)
    components,
    endpoint_configs,
    endpoints,
    models,
    policies,
    policy_sizes,
    rollback_rights,
    scaling,
)
from seatrial_lint.template_rules.hosting import CHECKS, Hosting, rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.findings import Finding, Place
    from seatrial_lint.cloudformation.template import Template

for _rule, _check in (
    ("SEA780", policies.unknown_actions),
    ("SEA781", policies.uncarried_keys),
    ("SEA785", policies.passed_roles),
    ("SEA784", policy_sizes.policy_sizes),
    ("SEA784", policy_sizes.inline_sizes),
    ("SEA786", rollback_rights.rollback_rights),
):
    rule(_rule)(_check)
rule("SEA782", "SEA783")(policies.foreign_resources)


def check_templates(templates: Mapping[str, Template], region: str | None = None) -> tuple[Finding, ...]:
    """Return every finding of CloudFormation templates, sorted by template, resource, property and rule.

    A value that only the deployment knows breaks no rule. References lead through `Ref`, `Fn::GetAtt`, `Fn::Sub`,
    `Fn::Join` and `Fn::ImportValue` of an output of another of these templates.

    Args:
        templates: The templates by name, of one account and region.
        region: Their region; without one, what depends on it is not checked.
    """
    hosting = Hosting(templates, region)
    findings = {finding for check in CHECKS for finding in check(hosting)}
    ordered = sorted(findings, key=lambda one: (one.place, one.rule, one.message))
    return tuple(replace(finding, place=_with_line(finding.place, templates)) for finding in ordered)


def _with_line(place: Place, templates: Mapping[str, Template]) -> Place:
    return replace(place, line=templates[place.file].line(place.resource, place.field))
