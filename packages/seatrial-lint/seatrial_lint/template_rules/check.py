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
    roles,
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
    template are reported; what would take more comparisons than `MOST_STEPS` is left out, which SEA788 tells.

    `templates`: the templates by name, of one account and region.
    """
    hosting = Hosting(templates, region)
    findings = {finding for check in CHECKS for finding in check(hosting)}
    # By places whose line is not known yet.
    ordered = sorted(
        findings,
        key=lambda each: (each.place.file, each.place.resource, each.place.field, each.rule, each.message),
    )
    placed: list[Finding] = []
    for each in listed(ordered):
        place = each.place
        line = templates[place.file].line(place.resource, place.field) if place.resource else place.line
        placed.append(replace(each, place=replace(place, line=line)))
    return tuple(placed)


# The last that is registered: the others use up the budget.
@rule("SEA788")
def left_out(hosting: Hosting) -> Iterator[Finding]:
    """A template that is too large to be checked completely."""
    for template in hosting.resources.left_out:
        message = f"it takes more than {MOST_STEPS:,} comparisons: not all of its policies and updates are checked"
        hint = "split the template, or its policies"
        yield Finding("SEA788", Place(template), message, hint)
