"""Registration of checks, their findings, and the edits that fix them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_base.findings import Edit, Finding, Place
from seatrial_lint.engines.properties import escape_key, escape_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_base.findings import Severity
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.source import ConfigSource, SourceEntry
    from seatrial_lint.lint.subject import Subject

Judge: TypeAlias = "Callable[[Subject], Iterator[Finding]]"


@dataclass(frozen=True, slots=True)
class LintCheck:
    """A function that judges a configuration, and what it says of itself.

    Attributes:
        judge: The function.
        rules: The rules whose findings it may give; no other.
        handler: `own`: what the image's own engine makes of its options, of which nothing is known where a handler of
            the user reads them. `any`: what the service, the model server's Java side or the file itself makes of it.
        reads: `one option`: the finding of an option rests on no other one.
    """

    judge: Judge
    rules: frozenset[str]
    handler: Literal["own", "any"]
    reads: Literal["one option", "all"]


CHECKS: list[LintCheck] = []
"""Every check that is registered; importing `seatrial_lint.lint.lint` registers all."""


def rule(
    *rules: str, handler: Literal["own", "any"] = "own", reads: Literal["one option", "all"] = "all"
) -> Callable[[Judge], Judge]:
    """Register a check with the rules whose findings it may give.

    A rule is a function with this decorator and a row of `catalog/data/rules.json`.
    """

    def register(judge: Judge) -> Judge:
        CHECKS.append(LintCheck(judge, frozenset(rules), handler, reads))
        return judge

    return register


def finding(  # noqa: PLR0917 (read as a sentence: who, which rule, where, what, how to mend)
    subject: Subject,
    rule: str,
    entry: SourceEntry | None,
    message: str,
    hint: str,
    edit: Edit | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding at an entry, or at the beginning of the configuration; a severity overrules the rule's."""
    source = subject.source
    line, key = (entry.line, entry.key) if entry else (source.line, "")
    made = Finding(rule, Place(source.file, line, field=key), message, hint, edit=edit)
    return replace(made, severity=severity) if severity else made


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
