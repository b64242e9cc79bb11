"""One thing that a rule says of one place, and the one table of rules: title, severity and source by ID.

Every check, lint, diff, drift check and error is made of findings. SEA1xx the spec, SEA2xx the plan, SEA3xx the serving
configuration, SEA4xx lock and synth, SEA5xx the trial, SEA6xx the laptop, SEA7xx the resources of a template, which
SEA80x continues; SEA75x and SEA76x a stuck or failed endpoint, SEA78x to SEA794 the IAM policies of a template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Self

from seatrial_base.catalog.rows import CatalogTable

Severity = Literal["error", "warning", "note"]
# The one scale, the worst first.
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
# Those of SEA25, SEA38 and SEA39 are of what starts, images and weights, which lint judges too.
_OF_TEMPLATES = (
    "SEA70",
    "SEA71",
    "SEA72",
    "SEA73",
    "SEA74",
    "SEA78",
    "SEA79",
    "SEA80",
    "SEA254",
    "SEA255",
    "SEA256",
    "SEA257",
    "SEA388",
    "SEA389",
    "SEA390",
    "SEA391",
    "SEA393",
    "SEA394",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for every finding of a rule.

    Attributes:
        severity: How bad it is, unless a finding says otherwise.
        source: Where the facts behind it were read, with commit where there is one; empty for a rule of our own.
        engines: The containers in which a rule about options holds; empty for any other rule.
        versions: Their versions, in words.
        handler: `own`: only where the image's own handler reads the options; `any`: whoever does.
        images: Their images, in words.
        holds_in_any_version: It is of the file, the service or the hub, so that no version of a container changes it.
        holds_for_any_value: It is said of a key, also where only the deployment knows the value.
        of_stock_entrypoint: It is of what AWS's start script reads, and nothing is said of an image of one's own.
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
    of_stock_entrypoint: bool = False

    @property
    def holds_for(self) -> str:
        """Where a rule about options holds, for users; empty for any other rule."""
        handler = "not with a handler of your own" if self.handler == "own" else ""
        return "; ".join(part for part in (", ".join(self.engines), self.versions, self.images, handler) if part)


RULES: Final = CatalogTable(Rule, "rules.json#rules", key="id")


def lint_rules() -> tuple[Rule, ...]:
    """Return the rules about the options of a container."""
    return tuple(rule for rule in RULES.rows if rule.engines)


def template_rules() -> tuple[Rule, ...]:
    """Return the rules about the resources of a template."""
    return tuple(rule for rule in RULES.rows if rule.id.startswith(_OF_TEMPLATES))


# How every command that judges prints its findings.
Format = Literal["text", "json", "sarif", "markdown", "github"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something is wrong; empty parts are not concerned.

    Attributes:
        file: The file as the user named it, or the thing that was read.
        line: The line of the file, counted from 1; 0 where none is known.
        resource: A resource of a template by its logical ID, or the part of a live endpoint.
        field: The dotted path of a field or property (`slo.ttft_ms.p95`), or the key of an option.
        construct_path: The path of the CDK construct that makes the resource.
    """

    file: str = ""
    line: int = 0
    resource: str = ""
    field: str = ""
    construct_path: str = ""

    @classmethod
    def at(cls, where: str, field: str = "") -> Self:
        """Return the place that messages write as `endpoints/chat.yaml:12`, or as the file alone."""
        file, _, line = where.rpartition(":")
        is_line = bool(file) and line.isascii() and line.isdecimal() and not line.startswith("0")
        return cls(file, int(line), field=field) if is_line else cls(where, field=field)

    @property
    def where(self) -> str:
        """The file with its line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.resource, self.field) if part)


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters of a file that are replaced.

    `end`: one past the last.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule says: which rule, how bad, where, what, and how to fix it.

    Attributes:
        rule: The rule's ID (`SEA101`); empty for a warning that no rule has.
        message: What is wrong, with the value and the bound.
        hint: How to fix it; empty when the message says it.
        severity: `error`: it stops the work, fails or does not serve; `warning`: it works otherwise than meant;
            `note`: worth knowing, and nothing is wrong. That of the rule's row unless it is given; without a row, an
            error.
        source: Where this one finding is known from; empty where the rule's source says it.
        evidence: What it was seen by: a status, a reason, a line of a log; empty where the message says it.
        edit: The change that fixes it; `None` where the meaning would change.
    """

    rule: str
    place: Place
    message: str
    hint: str = ""
    severity: Severity = ""  # type: ignore[assignment]  # until `__post_init__`: every finding has one
    source: str = ""
    evidence: str = ""
    edit: Edit | None = None

    def __post_init__(self) -> None:
        """Take the severity of the rule, which the table alone tells."""
        if not self.severity:
            row = RULES.get(self.rule)
            object.__setattr__(self, "severity", row.severity if row else "error")

    @property
    def where(self) -> str:
        """The file with its line, or the thing that was read."""
        return self.place.where

    @property
    def field(self) -> str:
        """The dotted path of the field, or the key."""
        return self.place.field

    def __str__(self) -> str:
        kind = "" if self.severity == "error" else f"{self.severity}: "
        parts = (f"{part}: " for part in (f"{self.place}", self.rule) if part)
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{''.join(parts)}{kind}{self.message}{hint}"


def severity_rank(finding: Finding) -> int:
    """Return a finding's place on the scale of severities: 0 for an error."""
    return SEVERITIES.index(finding.severity)


def is_wrong(finding: Finding) -> bool:
    """Return whether a finding makes a command that judges fail: an error or a warning; a note never does."""
    return finding.severity != "note"
