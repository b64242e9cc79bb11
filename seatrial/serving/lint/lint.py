"""Lints configurations: every rule over every source, in the order of files and lines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.serving.lint import target as targets
from seatrial.serving.lint.checks import (
    accelerators,
    conflicts,
    defaults,
    groups,
    keys,
    limits,
    service,
    speculation,
    values,
)
from seatrial.serving.lint.redaction import secrets_of, told, without_secrets
from seatrial.serving.lint.source import ConfigSource, SourceEntry, Unreadable
from seatrial.serving.lint.subject import Subject, look_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from seatrial.catalog.engine_versions import EngineName
    from seatrial.serving.lint.finding import Finding

CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    keys.unknown,
    keys.renamed,
    keys.dropped,
    keys.twice,
    values.dtype,
    values.spelled,
    values.batching,
    values.dialect_exists,
    conflicts.own_names,
    conflicts.modes,
    conflicts.two_names,
    conflicts.tgi,
    conflicts.prefill,
    limits.tgi,
    limits.service,
    defaults.batch_size,
    defaults.degree,
    defaults.marlin,
    defaults.compiled_at_start,
    defaults.accelerate,
    defaults.model,
    defaults.frozen,
    defaults.revision,
    service.startup_timeout,
    service.ami,
    service.accelerator,
    service.isolation,
    service.secrets,
    service.eula,
    service.prefix,
    accelerators.degree,
    accelerators.dtype,
    accelerators.context,
    speculation.lmi_dist,
    speculation.vllm,
    speculation.v2_block_manager,
)
GROUP_CHECKS = (groups.two_models, groups.overruled)


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says beside the files; it overrules what they tell.

    Attributes:
        engine: The container.
        version: Its version.
        instance_type: What it runs on.
        ami_version: The instance's InferenceAmiVersion.
        startup_timeout_s: The startup health check's timeout.
    """

    engine: EngineName | None = None
    version: str | None = None
    instance_type: str | None = None
    ami_version: str | None = None
    startup_timeout_s: int | None = None

    def facts(self) -> dict[str, SourceEntry]:
        """Return the deployment's facts among them."""
        told = {
            "instance_type": self.instance_type,
            "ami_version": self.ami_version,
            "startup_timeout_s": self.startup_timeout_s,
        }
        return {name: SourceEntry("", str(value), 1, "env") for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LintReport:
    """What was found.

    Attributes:
        findings: By file, line and rule.
        readings: For each configuration, what it was read as and why.
        unreadable: Paths that could not be read.
    """

    findings: tuple[Finding, ...]
    readings: tuple[str, ...]
    unreadable: tuple[Unreadable, ...]


def lint(sources: Iterable[ConfigSource | Unreadable], given: Given | None = None) -> LintReport:
    """Apply every rule to every source.

    Raises:
        ValueError: When the given version is none of the engine's.
    """
    given = given or Given()
    every = list(sources)
    readable = [one for one in every if isinstance(one, ConfigSource)]
    variants = {one.fact("model_name"): one for one in reversed(readable) if one.kind == "endpoint config"}
    subjects = [_subject(one, variants, given) for one in readable if one.kind != "endpoint config"]
    found = [finding for subject in subjects for check in CHECKS for finding in check(subject)]
    found += _of_groups(subjects)
    order = {source.file: number for number, source in reversed(list(enumerate(readable)))}
    secrets = secrets_of(readable)
    findings = sorted(
        dict.fromkeys(told(one, secrets) for one in found),
        key=lambda one: (order[one.file], one.line, one.rule, one.key, one.message),
    )
    readings = tuple(dict.fromkeys(without_secrets(_reading(subject), secrets) for subject in subjects))
    return LintReport(tuple(findings), readings, tuple(one for one in every if isinstance(one, Unreadable)))


def _subject(source: ConfigSource, variants: Mapping[str | None, ConfigSource], given: Given) -> Subject:
    target = targets.guess(source, given.engine, given.version)
    return look_at(source, target, _facts_of_variant(source, variants) | source.facts | given.facts())


def _facts_of_variant(source: ConfigSource, variants: Mapping[str | None, ConfigSource]) -> dict[str, SourceEntry]:
    """Return what an endpoint config among the inputs says of the variant that runs this model."""
    name = source.fact("model_name")
    variant = variants.get(name) if name else None
    if variant is None:
        return {}
    return variant.facts | {"variant": SourceEntry("", variant.file, variant.line, "env")}


def _of_groups(subjects: list[Subject]) -> Iterator[Finding]:
    """Yield what the configurations of one folder make together."""
    folders: dict[str, list[Subject]] = defaultdict(list)
    for subject in subjects:
        folders[subject.source.file.rpartition("/")[0]].append(subject)
    for together in folders.values():
        for subject in together:
            beside = [other for other in together if other is not subject]
            yield from (finding for check in GROUP_CHECKS for finding in check(subject, beside))


def _reading(subject: Subject) -> str:
    target = subject.target
    if target is None:
        return f"{subject.source.file}: {subject.source.kind}; container unknown: give --engine"
    how = "assumed, the newest; give --version" if target.assumed else target.because
    why = f"{target.because}; version {how}" if target.assumed else how
    dialect = "" if target.dialect == target.engine else f", {target.dialect}"
    return f"{subject.source.file}: {subject.source.kind}, read as {target.called}{dialect} ({why})"
