"""The subject of rules: a configuration, its container and known facts; registration of checks, findings and edits."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_base.catalog.engine_options import find_spellings
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_base.errors import RenderError
from seatrial_base.findings import Edit, Finding, Place
from seatrial_lint.engines.parse import read_value
from seatrial_lint.engines.properties import escape_key, escape_property
from seatrial_lint.lint.target import Handler, NamedOption, Space, handler_of, read_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engine_options import Spelling, SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName, Version
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Severity
    from seatrial_lint.lint.source import ConfigSource, SourceEntry
    from seatrial_lint.lint.target import TargetContainer

Judge: TypeAlias = "Callable[[Subject], Iterator[Finding]]"
CHECKS: list[LintCheck] = []
"""Every check that is registered; importing `seatrial_lint.lint.lint` registers all."""


def whole_number(text: str) -> int | None:
    """Return a text as a whole number that is not negative; `None` when it is none."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class NeutralField:
    """A neutral field that an option says: its text in neutral words."""

    value: str
    option: NamedOption

    @property
    def number(self) -> int | None:
        """The value as a whole number; `None` when it is none."""
        return whole_number(self.value)


@dataclass(frozen=True, slots=True)
class Subject:
    """One configuration under the rules.

    Attributes:
        target: The container that reads it; `None` when nothing tells.
        table: How its dialect spells things; `None` when its version has no such dialect.
        facts: The deployment's facts, from the document, its endpoint config, or the command line.
        handler: Who reads the options.
        packaged: The `serving.properties` of its folder, which LMI finds next to the model; itself, where it is one.
    """

    source: ConfigSource
    target: TargetContainer | None
    table: SpellingTable | None = None
    options: tuple[NamedOption, ...] = ()
    fields: dict[str, NeutralField] = field(default_factory=dict)
    facts: dict[str, SourceEntry] = field(default_factory=dict)
    handler: Handler = "own"
    packaged: tuple[Subject, ...] = ()

    @property
    def beside(self) -> Iterator[Subject]:
        """The packaged configurations but itself."""
        return (other for other in self.packaged if other.source is not self.source)

    def option(self, name: str, space: Space | None = None) -> NamedOption | None:
        """Return the option that counts: the last one of its name."""
        options = [option for option in self.options if option.name == name and space in (None, option.space)]
        return options[-1] if options else None

    def value(self, name: str) -> str:
        """Return the neutral text of a field; empty when no option says it."""
        return self.fields[name].value if name in self.fields else ""

    def decides(self, names: frozenset[str]) -> bool:
        """Return whether the file itself says everything of some fields and options, none of them the deployment."""
        entries = [option.entry for option in self.options if option.name in names]
        entries += [self.fields[name].option.entry for name in names & self.fields.keys()]
        return all(entry.is_known for entry in entries)

    def text(self, name: str) -> str:
        """Return an option's value; empty when it isn't written."""
        option = self.option(name)
        return option.value if option else ""

    def text_of(self, key: str) -> str:
        """Return the value of a key as it is written; empty when it isn't."""
        return next((entry.value for entry in reversed(self.source.entries) if entry.key == key), "")

    def fact(self, name: str) -> str | None:
        """Return a fact of the deployment."""
        entry = self.facts.get(name)
        return entry.value if entry else None

    @property
    def instance(self) -> Instance | None:
        """The instance type, when it is known and in the catalog."""
        name = self.fact("instance_type")
        return find_instance(name) if name else None

    @property
    def lmi_accelerators(self) -> int:
        """What LMI takes where no degree is said: all that a component asks for, else the instance's; 1 where unknown.

        Of another engine it is 1.
        """
        asks = self.fact("accelerators")
        if self.target is None or self.target.engine != "lmi" or self.instance is None:
            return 1
        return self.instance.accelerator_count if asks is None else whole_number(asks) or 1

    @property
    def architecture(self) -> Architecture | None:
        """The model's shape, when its id is known and in the catalog."""
        model = self.fields.get("model_id")
        return find_model(model.value) if model else None

    @property
    def attention_heads(self) -> int | None:
        """The attention heads of the model: a base model has those of its tuned ones."""
        model_id, model = self.fields.get("model_id"), self.architecture
        ids = [f"{model_id.value}-{tuned}" for tuned in ("Instruct", "Chat", "it")] if model_id and not model else []
        known = model or next((found for one in ids if (found := find_model(one))), None)
        return known.attention_heads if known else None


def look_at(
    source: ConfigSource,
    target: TargetContainer | None,
    facts: dict[str, SourceEntry],
    options: tuple[NamedOption, ...] | None = None,
    *,
    handler: Handler | None = None,
) -> Subject:
    """Return a configuration as the rules see it; its options, and who reads them, may be known before."""
    if target is None:
        return Subject(source, None, facts=facts)
    table = _table(target)
    options = options if options is not None else read_options(target.engine, source.entries)
    reader = handler or _handler(source, target, options)
    fields: dict[str, NeutralField] = {}
    for option in options if table else ():
        rows = spelled_by(option, table)
        if not option.entry.is_known:
            fields |= {row.field: NeutralField("", option) for row in rows[:1] if row.field}
            continue
        for row in rows:
            values = read_value(row, option.value)
            if values is not None:
                fields |= {
                    name: NeutralField(value if isinstance(value, str) else "", option)
                    for name, value in values.items()
                }
                break
    return Subject(source, target, table, options, fields, facts, reader)


def _handler(source: ConfigSource, target: TargetContainer, options: tuple[NamedOption, ...]) -> Handler:
    if target.engine != "lmi":
        return "own"
    written = {option.name: option.value for option in options if option.space != "env"}
    return handler_of(written, has_model_py="model_py" in source.facts)


def _table(target: TargetContainer) -> SpellingTable | None:
    try:
        return find_spellings(target.dialect, ".".join(map(str, target.version)))
    except RenderError:
        return None


def spelled_by(option: NamedOption, table: SpellingTable | None) -> tuple[Spelling, ...]:
    """Return the spellings that an option may be."""
    if table is None:
        return ()
    key = f"option.{option.name}" if option.space == "option" else option.name
    if option.entry.form == "env":
        return _rows_of(table.dialect.name, table.version, key, option.entry.key)
    return _rows_of(table.dialect.name, table.version, key, "")


@cache
def _rows_of(dialect: DialectName, version: Version, key: str, env: str) -> tuple[Spelling, ...]:
    table = find_spellings(dialect, ".".join(map(str, version)))
    return (table.of_env(env) if env else ()) or table.of_key(key)


@dataclass(frozen=True, slots=True)
class LintCheck:
    """A function that judges a configuration, and what it says of itself.

    Attributes:
        rules: The rules whose findings it may give; no other.
        handler: `own`: what the image's own engine makes of its options, of which nothing is known where a handler of
            the user reads them. `any`: what the service, the model server's Java side or the file itself makes of it.
        reads: `one option`: the finding of an option rests on no other one.
    """

    judge: Judge
    rules: frozenset[str]
    handler: Literal["own", "any"]
    reads: Literal["one option", "all"]

    def judges(self, subject: Subject, rules: frozenset[str] | None) -> bool:
        """Return whether it has something to say of a subject, and may give one of some rules; `None`: any."""
        return (rules is None or bool(rules & self.rules)) and (self.handler == "any" or subject.handler == "own")


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
    if option.space == "env":
        return name
    for prefix in ("OPTION_", "SM_VLLM_", "SM_SGLANG_"):
        if option.entry.key.startswith(prefix):
            return prefix + (name.upper() if name.islower() else name)
    return name
