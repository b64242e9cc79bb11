"""The one table of rules: title, severity and source by ID, of every message and of every check.

SEA1xx the spec, SEA2xx the plan, SEA3xx the serving configuration, SEA4xx lock and synth, SEA5xx the trial,
SEA6xx the laptop, SEA7xx the resources of a template; SEA75x and SEA76x a stuck or failed endpoint, SEA78x the IAM
policies of a template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from seatrial_base.catalog.rows import CatalogTable

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""The one scale, the worst first."""
NOT_ASKED = "SEA436"
"""The rule of what could not be asked: worth knowing, and no sign that anything is wrong."""
_OF_TEMPLATES = ("SEA70", "SEA71", "SEA72", "SEA73", "SEA74", "SEA78")


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for every finding of a rule.

    Attributes:
        id: Its ID.
        title: What is wrong.
        severity: How bad it is, unless a finding says otherwise.
        source: Where the facts behind it were read, with commit where there is one; empty for a rule of our own.
        engines: The containers in which a rule about options holds; empty for any other rule.
        versions: Their versions, in words.
        handler: `own`: only where the image's own handler reads the options; `any`: whoever does.
        images: Their images, in words.
        holds_in_any_version: It is of the file, the service or the hub, so that no version of a container changes it.
        holds_for_any_value: It is said of a key, also where only the deployment knows the value.
        is_of_sagemaker: It is the service's, and nothing is said where another one runs the container.
    """

    id: str
    title: str
    severity: Severity
    source: str = ""
    engines: tuple[str, ...] = ()
    versions: str = ""
    handler: Literal["", "own", "any"] = ""
    images: str = ""
    holds_in_any_version: bool = False
    holds_for_any_value: bool = False
    is_of_sagemaker: bool = False

    @property
    def holds_for(self) -> str:
        """Where a rule about options holds, for people; empty for any other rule."""
        handler = "not with a handler of your own" if self.handler == "own" else ""
        return "; ".join(part for part in (", ".join(self.engines), self.versions, self.images, handler) if part)


RULES: Final = CatalogTable(Rule, "rules.json#rules", key="id")


def lint_rules() -> tuple[Rule, ...]:
    """Return the rules about the options of a container."""
    return tuple(rule for rule in RULES.rows if rule.engines)


def template_rules() -> tuple[Rule, ...]:
    """Return the rules about the resources of a template."""
    return tuple(rule for rule in RULES.rows if rule.id.startswith(_OF_TEMPLATES))
