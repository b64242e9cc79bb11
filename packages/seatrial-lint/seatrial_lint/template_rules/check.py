"""Every rule on every resource of several templates, all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place
from seatrial_base.printer import listed
from seatrial_lint.cloudformation.template import MOST_STEPS
from seatrial_lint.template_rules.checks import (  # noqa: F401 (importing a file registers its checks)
    components,
    endpoints,
    policies,
    scaling,
)
from seatrial_lint.template_rules.hosting import CHECKS, Hosting, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_lint.cloudformation.template import Template


def check_templates(templates: Mapping[str, Template], region: str | None = None) -> tuple[Finding, ...]:
    """Return every finding of CloudFormation templates, sorted by template, resource, property and rule.

    A value that only the deployment knows breaks no rule. References lead through `Ref`, `Fn::GetAtt`, `Fn::Sub`,
    `Fn::Join` and `Fn::ImportValue` of an output of another of these templates. Of a rule at most 100 findings of a
    template are told; what would take more comparisons than `MOST_STEPS` is left out, which SEA788 tells.

    Args:
        templates: The templates by name, of one account and region.
    """
    hosting = Hosting(templates, region)
    findings = {finding for check in CHECKS for finding in check(hosting)}
    ordered = sorted(findings, key=_order)
    return tuple(replace(finding, place=_with_line(finding.place, templates)) for finding in listed(ordered))


def _order(finding: Finding) -> tuple[str, ...]:
    # Whose line is not known yet.
    place = finding.place
    return place.file, place.resource, place.field, finding.rule, finding.message


# The last that is registered: the others use up the budget.
@rule("SEA788")
def left_out(hosting: Hosting) -> Iterator[Finding]:
    """A template that is too large to be checked completely."""
    for template in hosting.resources.left_out:
        message = f"it takes more than {MOST_STEPS:,} comparisons: not all of its policies and updates are checked"
        hint = "split the template, or its policies"
        yield Finding("SEA788", Place(template), message, hint)


def _with_line(place: Place, templates: Mapping[str, Template]) -> Place:
    return replace(place, line=templates[place.file].line(place.resource, place.field)) if place.resource else place
