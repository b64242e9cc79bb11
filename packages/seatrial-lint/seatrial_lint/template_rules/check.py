"""Every rule on every resource of several templates, all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place
from seatrial_base.printer import listed
from seatrial_base.rules import RULES
from seatrial_lint.cloudformation.template_resources import MOST_STEPS
from seatrial_lint.template_rules.checks import (
    components,
    endpoint_configs,
    endpoints,
    models,
    policies,
    policy_sizes,
    rollback_rights,
    scaling,
)
from seatrial_lint.template_rules.hosting import Hosting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seatrial_lint.cloudformation.template import Template

CHECKS: tuple[Callable[[Hosting], Iterator[Finding]], ...] = (
    models.fixed_names,
    models.prefixes,
    models.eulas,
    models.isolated_model,
    models.environment_secrets,
    models.environments,
    endpoint_configs.execution_role,
    endpoint_configs.mixed,
    endpoint_configs.instances_given,
    endpoint_configs.managed_scaling,
    endpoint_configs.pools,
    endpoint_configs.routing,
    endpoint_configs.timeouts,
    endpoint_configs.driver_of_ami,
    endpoint_configs.volumes,
    endpoint_configs.kinds,
    endpoints.policies,
    endpoints.batches,
    endpoints.rollback_alarms,
    endpoints.traffic,
    endpoints.several_variants,
    endpoints.retained,
    components.copies,
    components.component_order,
    components.fits,
    components.packed,
    components.same_names,
    components.names,
    components.regions,
    components.requirements,
    components.missing_variants,
    scaling.resource_dimensions,
    scaling.bounds,
    scaling.metrics,
    scaling.doubly_scaled_variants,
    scaling.cooldowns,
    scaling.step_policy_alarms,
    scaling.waking,
    scaling.billed_at_zero,
    scaling.zero_variants,
    scaling.target_order,
    scaling.backlogs,
    policies.unknown_actions,
    policies.uncarried_keys,
    policies.foreign_resources,
    policies.passed_roles,
    policy_sizes.policy_sizes,
    policy_sizes.inline_sizes,
    rollback_rights.rollback_rights,
)


def check_templates(templates: Mapping[str, Template], region: str | None = None) -> tuple[Finding, ...]:
    """Return every finding of CloudFormation templates, sorted by template, resource, property and rule.

    A value that only the deployment knows breaks no rule. References lead through `Ref`, `Fn::GetAtt`, `Fn::Sub`,
    `Fn::Join` and `Fn::ImportValue` of an output of another of these templates. Of a rule at most 100 findings of a
    template are told; what would take more comparisons than `MOST_STEPS` is left out, which SEA788 tells.

    Args:
        templates: The templates by name, of one account and region.
        region: Their region; without one, what depends on it is not checked.
    """
    hosting = Hosting(templates, region)
    findings = {finding for check in CHECKS for finding in check(hosting)}
    findings |= {_left_out(template) for template in hosting.resources.left_out}
    ordered = sorted(findings, key=_order)
    return tuple(replace(finding, place=_with_line(finding.place, templates)) for finding in listed(ordered))


def _order(finding: Finding) -> tuple[str, ...]:
    place = finding.place  # whose line is not known yet
    return place.file, place.resource, place.field, finding.rule, finding.message


def _left_out(template: str) -> Finding:
    message = f"it takes more than {MOST_STEPS:,} comparisons: not all of its policies and updates are checked"
    return Finding("SEA788", Place(template), message, "split the template, or its policies", RULES["SEA788"].severity)


def _with_line(place: Place, templates: Mapping[str, Template]) -> Place:
    return replace(place, line=templates[place.file].line(place.resource, place.field)) if place.resource else place
