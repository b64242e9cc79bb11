"""The rule book of SageMaker hosting as a validation plugin of the CDK, for any app and any construct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jsii
from aws_cdk import (
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Validations,
)

from seatrial import __version__
from seatrial_base.findings import template_rules
from seatrial_lint.cloudformation.template import read_template_file
from seatrial_lint.template_rules.check import check_templates

if TYPE_CHECKING:
    from aws_cdk import IPolicyValidationContext
    from constructs import IConstruct

    from seatrial_lint.cloudformation.template import Template

PLUGIN_NAME = "Seatrial"
"""The plugin's name; acknowledgements begin with it: `Seatrial::SEA745`."""


@jsii.implements(IPolicyValidationPlugin)
class HostingChecks:
    """Checks the templates of an app for what SageMaker and Application Auto Scaling refuse only at deployment.

        HostingChecks.add_to(app)

    It reads the synthesized templates, so it checks L1 constructs and those of other libraries too. An error fails the
    synthesis, a warning is reported. A finding that is meant to be is acknowledged at its construct or above, with a
    reason: `Validations.of(construct).acknowledge(Acknowledgment(id="Seatrial::SEA745", reason="…"))`.

    Stacks of the same account and region are checked together, so that exports are followed from one to another.
    """

    @classmethod
    def add_to(cls, scope: IConstruct) -> None:
        """Add the checks to an app or a stage."""
        Validations.of(scope).add_plugins(cls())

    @property
    def name(self) -> str:
        """The plugin's name in the report."""
        return PLUGIN_NAME

    @property
    def version(self) -> str:
        """The version of Seatrial."""
        return __version__

    @property
    def rule_ids(self) -> list[str]:
        """The IDs of every rule."""
        return [rule.id for rule in template_rules()]

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Check the templates; the CDK calls it after synthesis."""
        by_place: dict[tuple[str | None, str | None], dict[str, Template]] = {}
        for stack in context.stack_templates:
            path, region, account = stack.template_path, stack.region, stack.account_id
            template = read_template_file(Path(path), name=path, region=region or "", account=account)
            by_place.setdefault((account, region), {})[path] = template
        findings = [each for (_, region), group in by_place.items() for each in check_templates(group, region)]
        return PolicyValidationPluginReport(
            success=all(each.severity != "error" for each in findings),
            violations=[
                PolicyViolation(
                    rule_name=each.rule,
                    description=each.message,
                    fix=each.hint,
                    severity="info" if each.severity == "note" else each.severity,  # the CDK's word
                    violating_resources=[
                        PolicyViolatingResource(
                            locations=[each.field],
                            resource_logical_id=each.place.resource,
                            template_path=each.place.file,
                        )
                    ],
                )
                for each in findings
            ],
        )
