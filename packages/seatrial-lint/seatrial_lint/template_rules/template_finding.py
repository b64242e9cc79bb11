"""One finding of the rule book: which resource of which template, which rule, what, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TemplateSeverity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class TemplateFinding:
    """One thing that a rule says of one resource.

    Attributes:
        template: The template, by the name that it was given.
        logical_id: The resource.
        path: The property, from the resource on: `Properties.ProductionVariants.0.ModelName`.
        rule: The rule's ID.
        severity: `error`: the deployment fails, or the endpoint never serves; `warning`: it deploys, and costs or
            behaves otherwise than it seems.
        message: What is wrong, with the values found.
        hint: How to mend it.
        construct_path: The path of the CDK construct, where the template tells it; else empty.
    """

    template: str
    logical_id: str
    path: str
    rule: str
    severity: TemplateSeverity
    message: str
    hint: str
    construct_path: str = ""

    def __str__(self) -> str:
        place = f"{self.template}: {self.logical_id}: {self.path}"
        return f"{place}: {self.rule}: {self.severity}: {self.message}\n  hint: {self.hint}"
