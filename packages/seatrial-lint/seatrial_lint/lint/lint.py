"""Lints configurations, every rule over every source, and fixes what is safe: spellings, and exact repetitions.

A file is fixed only as far as nothing else becomes wrong, until nothing more can be fixed.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial_base.files import changing, write_whole
from seatrial_base.findings import RULES, SEVERITIES
from seatrial_base.printer import listed
from seatrial_base.secrets import redacted
from seatrial_base.units import counted
from seatrial_lint.lint import target as targets
from seatrial_lint.lint.checks import (  # noqa: F401 (importing a file registers its checks)
    conflicts,
    keys,
    service,
    traps,
    values,
)
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.redaction import covered, redact_findings, uncovered
from seatrial_lint.lint.rules import CHECKS, LintCheck, Subject, look_at
from seatrial_lint.lint.source import ConfigSource, SourceEntry, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_base.findings import Finding

# Versions at which something changed in how each container reads its options: oldest and newest, and one of each era
# (LMI: recommended batcher by LmiConfigRecommender.java; TGI: launcher/src/main.rs; vLLM: sagemaker_entrypoint.sh).
CANDIDATES: Mapping[EngineName, tuple[str, ...]] = MappingProxyType(
    {
        "lmi": ("lmi20", "lmi16", "lmi13", "lmi10"),
        "tgi": ("2.0.4", "2.4.0"),
        "vllm": ("0.11.0", "0.17.1", "0.23.0"),
        "sglang": ("0.5.5",),
    }
)
_KEY_TO_WRITE = re.compile(r"(?:write|did you mean) ([A-Za-z][\w.]*)(?:\?| only)?")
# Rules on the name of a key; others judge its value, or what stands beside it.
_OF_KEYS = frozenset(["SEA313", "SEA314", "SEA315", "SEA316", "SEA319", "SEA337"])
# One fixed key can make another one fixable; more was never seen.
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says besides the files; it overrules what they tell."""

    engine: EngineName | None = None
    version: str | None = None
    instance_type: str | None = None
    ami_version: str | None = None
    startup_timeout_s: int | None = None

    def facts(self) -> dict[str, SourceEntry]:
        """Return the deployment's facts among them."""
        known = {name: getattr(self, name) for name in ("instance_type", "ami_version", "startup_timeout_s")}
        return {name: SourceEntry("", str(value), 1, "env") for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LintReport:
    """What was read.

    Attributes:
        findings: By file, line and rule.
        readings: For each configuration, what it was read as and why.
        unreadable: Paths that could not be read.
        files: How many files were read.
    """

    findings: tuple[Finding, ...]
    readings: tuple[str, ...]
    unreadable: tuple[Unreadable, ...]
    files: int = 0

    @property
    def listed(self) -> tuple[Finding, ...]:
        """The findings that are printed: of a rule the first ones of each file, then one that counts the rest."""
        return tuple(listed(self.findings))

    @property
    def summary(self) -> str:
        """How many files were read, and how many findings of each severity they have."""
        counts = Counter(finding.severity for finding in self.findings)
        return f"{counted(self.files, 'file')}: {', '.join(counted(counts[name], name) for name in SEVERITIES)}"


def lint_sources(
    sources: Iterable[ConfigSource | Unreadable], given: Given | None = None, rules: frozenset[str] | None = None
) -> LintReport:
    """Apply every rule to every source.

    `rules`: the only ones whose checks are applied, where they are given.

    Raises:
        ValueError: When the given version is none of the engine's.
    """
    given = given or Given()
    every = list(sources)
    readable = [one for one in every if isinstance(one, ConfigSource)]
    variants = {one.fact("model_name"): one for one in reversed(readable) if one.kind == "endpoint config"}
    subjects = _subjects(readable, variants, given)
    judged = [_judged(subject, rules) for subject in subjects]
    findings_of_all = [finding for findings, _ in judged for finding in findings]
    order = {source.file: number for number, source in reversed(list(enumerate(readable)))}
    findings = sorted(
        dict.fromkeys(redact_findings(findings_of_all, readable)),
        key=lambda one: (order[one.place.file], one.place.line, one.rule, one.field, one.message),
    )
    notes = (_read_as(subject, left) for subject, (_, left) in zip(subjects, judged, strict=True))
    readings = tuple(dict.fromkeys(redacted(text) for text in notes))
    unreadable = tuple(dict.fromkeys(one for one in every if isinstance(one, Unreadable)))
    return LintReport(tuple(findings), readings, unreadable, len({one.file for one in readable}))


def _judged(subject: Subject, rules: frozenset[str] | None) -> tuple[list[Finding], int]:
    """Return the findings of one configuration, and how many were left out because only some versions have them."""
    checks = [check for check in CHECKS if check.judges(subject, rules)]
    findings = [_with_sound_hint(subject, one, checks) for one in _sure(subject, _made(checks, subject))]
    target, sought = subject.target, [one for one in findings if not RULES[one.rule].holds_in_any_version]
    if target is None:
        return findings, 0
    if target.is_old:
        return [one for one in findings if one not in sought], 0
    if not target.assumed:
        return findings, 0

    engine, rules = target.engine, frozenset(one.rule for one in sought)
    places = {(one.place.line, one.field) for one in findings}
    applied = [check for check in checks if check.judges(subject, rules)]
    # Most options say nothing: checks of a single one need those alone that say something in the assumed version.
    few = tuple(option for option in subject.options if (option.entry.line, option.entry.key) in places)
    read = (("one option", few), ("all", subject.options))

    def findings_in(version: str) -> Iterator[Finding]:
        candidate = targets.guess(subject.source, engine, version, subject.options)
        if candidate is not None:
            other = replace(candidate, is_candidate=True)
            for what, options in read:
                seen = look_at(subject.source, other, subject.facts, options, handler=subject.handler)
                yield from _made((check for check in applied if check.reads == what), seen)

    return held_by_all(findings, engine, findings_in)


def _made(checks: Iterable[LintCheck], subject: Subject) -> list[Finding]:
    return [finding for check in checks for finding in check.judge(subject)]


def _with_sound_hint(subject: Subject, given: Finding, checks: list[LintCheck], tries: int = ROUNDS) -> Finding:
    """Return a finding with a hint whose key the same checks take: one table may name what another refuses."""
    named = _KEY_TO_WRITE.fullmatch(given.hint) if given.rule in _OF_KEYS and subject.target else None
    entry = next((one for one in subject.source.entries if one.key == given.field), None)
    if named is None or entry is None or not tries:
        return given
    entries = tuple(replace(one, key=named[1]) if one is entry else one for one in subject.source.entries)
    other = look_at(replace(subject.source, entries=entries), subject.target, subject.facts)
    refused = [one for one in _made(checks, other) if one.field == named[1] and one.rule in _OF_KEYS]
    if not refused:
        return given
    # Of several that refuse it, the one that knows a name.
    hint = max((one.hint for one in refused), key=lambda text: _KEY_TO_WRITE.fullmatch(text) is not None)
    better = replace(given, hint="leave it out" if hint == given.hint else hint, edit=None)
    return _with_sound_hint(subject, better, checks, tries - 1)


def _sure(subject: Subject, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that do not rest on what only the deployment knows, or on an API that does not run it."""
    source = subject.source
    unknown = {(entry.line, entry.key) for entry in source.entries if not entry.is_known}
    is_outside = source.kind == "container manifest"
    is_stock = subject.target is None or subject.target.is_stock
    for one in findings:
        rule = RULES[one.rule]
        if rule.of_stock_entrypoint and not is_stock:
            continue
        is_known = rule.holds_for_any_value or (one.place.line, one.field) not in unknown
        if is_known and not (is_outside and rule.is_of_sagemaker) and not (source.is_partial and not one.field):
            yield one


def _subjects(
    readable: Iterable[ConfigSource], variants: Mapping[str | None, ConfigSource], given: Given
) -> list[Subject]:
    """Return the subjects, each with what is packaged in its folder."""
    folders: dict[str, list[Subject]] = defaultdict(list)
    alone: list[Subject] = []
    for source in (one for one in readable if one.kind != "endpoint config"):
        target = targets.guess(source, given.engine, given.version)
        facts = _facts_of_variant(source, variants) | source.facts | given.facts()
        alone.append(look_at(source, target, facts))
        folders[source.file.rpartition("/")[0]].append(alone[-1])
    packaged = {folder: tuple(filter(conflicts.is_packaged, together)) for folder, together in folders.items()}
    return [replace(one, packaged=packaged[one.source.file.rpartition("/")[0]]) for one in alone]


def _facts_of_variant(source: ConfigSource, variants: Mapping[str | None, ConfigSource]) -> dict[str, SourceEntry]:
    """Return what an endpoint config among the inputs says of the variant that runs this model."""
    name = source.fact("model_name")
    variant = variants.get(name) if name else None
    if variant is None:
        return {}
    return variant.facts | {"variant": SourceEntry("", variant.file, variant.line, "env")}


def _read_as(subject: Subject, left_out: int) -> str:
    target, source = subject.target, subject.source
    unread = f"; {source.unread}" if source.unread else ""
    if target is None:
        return f"{source.file}: {source.kind}; container unknown: give --engine{unread}"
    if target.is_old:
        held = f"{target.called} ({target.because}), judged by what holds in every version"
        return f"{source.file}: {source.kind}, read as {held}{unread}"
    others = f"; {counted(left_out, 'more finding')} in some versions only" if left_out else ""
    how = f"assumed, the newest; give --version{others}" if target.assumed else target.because
    why = f"{target.because}; version {how}" if target.assumed else how
    dialect = "" if target.dialect == target.engine else f", {target.dialect}"
    return f"{source.file}: {source.kind}, read as {target.called}{dialect} ({why}){unread}"


def held_by_all(
    findings: list[Finding], engine: EngineName, findings_in: Callable[[str], Iterable[Finding]]
) -> tuple[list[Finding], int]:
    """Return the findings that every candidate version has, and how many errors and warnings are left out."""
    open_ones = {_place(finding) for finding in findings if not RULES[finding.rule].holds_in_any_version}
    held = set(open_ones)
    for version in CANDIDATES[engine]:
        if not held:
            break
        held &= {_place(one) for one in findings_in(version)}
    kept = [finding for finding in findings if RULES[finding.rule].holds_in_any_version or _place(finding) in held]
    left_out = {_place(finding) for finding in findings if finding.severity != "note"} & (open_ones - held)
    return kept, len(left_out)


def _place(finding: Finding) -> tuple[str, int, str]:
    return finding.rule, finding.place.line, finding.field


def fixed_text(source: ConfigSource, findings: Iterable[Finding]) -> str:
    """Return a file's text with every edit of its findings made; of two that overlap, the first."""
    edits = sorted(
        {finding.edit for finding in findings if finding.edit and finding.place.file == source.file},
        key=lambda edit: (edit.start, edit.end, edit.text),
    )
    parts: list[str] = []
    at = 0
    for edit in edits:
        if edit.start < at:
            continue
        parts += [source.text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*parts, source.text[at:]))


def mended_diff(source: ConfigSource, text: str) -> str:
    """Return the difference between a file and its fixed text, as patches are written; secrets are hidden."""
    mended = [one for one in read_content(text.encode(source.encoding), source.file) if isinstance(one, ConfigSource)]
    every = tuple(entry for one in mended for entry in one.entries)
    before = covered(source).splitlines(keepends=True)
    after = covered(replace(source, text=text, entries=every)).splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, source.file, source.file)
    return uncovered(
        "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    )


def write_fixed(source: ConfigSource, text: str) -> None:
    """Write a fixed file whole or not at all; its mode stays.

    Raises:
        OSError: When the file can't be written, or holds another text by now; it is then as it was.
    """
    path = Path(source.file)
    with changing(path):
        if path.read_bytes() != source.text.encode(source.encoding):
            raise OSError(errno.EAGAIN, "it has changed since it was read")
        write_whole(path, text.encode(source.encoding))


def mended_text(source: ConfigSource, findings: Iterable[Finding], given: Given | None = None) -> str:
    """Return a file's text with its findings fixed; linting it again finds nothing more to fix, and nothing new."""
    given = given or Given()
    open_ones = [finding for finding in findings if finding.edit and finding.place.file == source.file]
    for _ in range(ROUNDS):
        text = _as_far_as_good(source, open_ones, given)
        if text == source.text:
            break
        source = replace(source, text=text)
        open_ones = [one for one in _findings_of(source, given) if one.edit]
    return source.text


def _as_far_as_good(source: ConfigSource, findings: list[Finding], given: Given) -> str:
    """Make all edits; where that makes something else wrong, each one that doesn't."""
    text = fixed_text(source, findings)
    before = _wrong(source, given)
    if text == source.text or _wrong(replace(source, text=text), given) <= before:
        return text
    good: list[Finding] = []
    for finding in findings:
        tried = replace(source, text=fixed_text(source, [*good, finding]))
        if _wrong(tried, given) <= before:
            good.append(finding)
    return fixed_text(source, good)


def _wrong(source: ConfigSource, given: Given) -> set[str]:
    return {f"{one.rule} {one.message}" for one in _findings_of(source, given) if one.severity != "note"}


def _findings_of(source: ConfigSource, given: Given) -> tuple[Finding, ...]:
    read = read_content(source.text.encode(source.encoding), source.file)
    beside = {name: fact for name, fact in source.facts.items() if name == "model_py"}
    every = [replace(one, facts={**one.facts, **beside}) for one in read if isinstance(one, ConfigSource)]
    return lint_sources(every, given).findings
