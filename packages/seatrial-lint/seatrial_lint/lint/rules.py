"""The one table of the lint's rules: severity and source by ID; titles stand with every other rule's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.rows import read_rows
from seatrial_lint.engines.properties import escape_key, escape_property
from seatrial_lint.lint.finding import Edit, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_lint.lint.finding import Severity
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.source import ConfigSource, SourceEntry
    from seatrial_lint.lint.subject import Subject


@dataclass(frozen=True, slots=True)
class LintRule:
    """What holds for every finding of a rule.

    Attributes:
        id: Its ID.
        severity: How bad it is.
        engines: The containers in which it holds.
        versions: The versions, in words.
        handler: `own`: only where the image's own handler reads the options; `any`: whoever does.
        images: The images, in words.
        source: Where the facts behind it were read, with commit where there is one.
    """

    id: str
    severity: Severity
    engines: tuple[EngineName, ...]
    versions: str
    handler: Literal["own", "any"]
    images: str
    source: str

    @property
    def holds_for(self) -> str:
        """Where it holds, for people."""
        handler = "" if self.handler == "any" else "; not with a handler of your own"
        return f"{', '.join(self.engines)}; {self.versions}; {self.images}{handler}"


LINT_RULES: Mapping[str, LintRule] = MappingProxyType(
    {rule.id: rule for rule in read_rows("lint_rules.json", LintRule, part="rules")}
)


def found(  # noqa: PLR0917 (read as a sentence: who, which rule, where, what, how to mend)
    subject: Subject,
    rule: str,
    entry: SourceEntry | None,
    message: str,
    fix: str,
    edit: Edit | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding at an entry, or at the beginning of the configuration; a severity overrules the rule's."""
    source = subject.source
    line, key = (entry.line, entry.key) if entry else (source.line, "")
    return Finding(source.file, line, key, rule, severity or LINT_RULES[rule].severity, message, fix, edit)


def rename(source: ConfigSource, entry: SourceEntry, name: str) -> Edit:
    """Return the change that writes another key."""
    text = json.dumps(name) if source.is_json else escape_key(name) if entry.form == "properties" else name
    return Edit(*entry.key_span, text)


def revalue(source: ConfigSource, entry: SourceEntry, value: str) -> Edit:
    """Return the change that writes another value."""
    text = json.dumps(value) if source.is_json else escape_property(value) if entry.form == "properties" else value
    return Edit(*entry.value_span, text)


def remove(entry: SourceEntry) -> Edit | None:
    """Return the change that takes an entry's line out; `None` in JSON."""
    return Edit(*entry.whole_span, "") if entry.whole_span else None


def key_of(subject: Subject, name: str) -> str:
    """Return the key of an option of LMI in the form that the configuration has."""
    of_properties = any(entry.form == "properties" for entry in subject.source.entries)
    return f"option.{name}" if of_properties else f"OPTION_{name.upper()}"


def key_like(option: NamedOption, name: str) -> str:
    """Write another option's name in the form of this one's key."""
    if option.entry.form == "properties":
        return f"option.{name}" if option.space == "option" else name
    for prefix in ("OPTION_", "SM_VLLM_", "SM_SGLANG_"):
        if option.entry.key.startswith(prefix):
            return prefix + (name.upper() if name.islower() else name)
    return name
