"""Brings the plans of a lock to the schema of this release, without changing anything that they decide."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.documents.plan import PLAN_SCHEMA, Plan
from seatrial.locks.lock_file import LOCK_SCHEMA, Seal, changed_fields, changing_file, lock_text, replace_file, seal_of
from seatrial.specs.yaml_source import UPGRADE, compared
from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seatrial.specs.yaml_source import Yaml
    from seatrial_base.findings import Finding

    PlanDocument = dict[str, Yaml]


@dataclass(frozen=True, slots=True)
class MigratedLock:
    """A lock in the schema of this release.

    Attributes:
        text: What it is to hold.
        changes: One line for each plan that was of an older schema; none when the file is current.
    """

    path: Path
    text: str
    changes: tuple[str, ...]


def migrate_lock(path: Path) -> MigratedLock:
    """Return a lock in the schema of this release; one that is current keeps its bytes.

    Raises:
        SpecError: SEA403 when it can't be read, or holds a plan that can't be brought to the schema, SEA122 when a
            newer release wrote it, SEA411 when a plan that would be written again was changed by hand: the digests that
            show it would be lost.
    """
    text, whole = _read(path)
    plans, digests = _mapping(whole, "environments"), _mapping(whole, "digests")
    changes: list[str] = []
    problems: list[Finding] = []
    for name, plan in sorted(plans.items()):
        try:
            document, lines = _migrated(path, name, plan, digests.get(name))
        except SpecError as error:
            problems += error.problems
            continue
        if lines:
            changes.append(f"{name}: {lines}")
            plans[name], digests[name] = document, seal_of(document).model_dump()
    if problems:
        raise SpecError(problems)
    return MigratedLock(
        path, lock_text({**whole, "environments": plans, "digests": digests}) if changes else text, tuple(changes)
    )


def write_migrated(path: Path) -> None:
    """Bring a lock to the schema of this release, as it is by then.

    Raises:
        SpecError: As `migrate_lock`; SEA403 when it can't be replaced.
    """
    with changing_file(path, "SEA403"):
        replace_file(path, migrate_lock(path).text, "SEA403")


def _read(path: Path) -> tuple[str, PlanDocument]:
    try:
        text = read_text(path)
        whole = json_document(text)
    except OSError as error:
        raise _refused(path, "", "SEA403", f"can't be read: {error.strerror}", "check the path") from error
    except ValueError as error:
        raise _refused(path, "", "SEA403", f"not JSON: {error}", _RESTORE) from error
    if not isinstance(whole, dict) or not isinstance(whole.get("environments"), dict):
        raise _refused(path, "", "SEA403", "not a lock", _RESTORE)
    version = whole.get("schema_version")
    if version != LOCK_SCHEMA:
        newer = (compared(version, LOCK_SCHEMA) or 0) > 0
        message = f"schema_version is {version}; this release reads {LOCK_SCHEMA}"
        rule, hint = ("SEA122", UPGRADE) if newer else ("SEA403", _RESTORE)
        raise _refused(path, "schema_version", rule, message, hint)
    return text, whole


def _migrated(path: Path, name: str, plan: Yaml, digests: Yaml) -> tuple[PlanDocument, str]:
    """Return the plan of one environment in the schema of this release, and what was done; nothing when current."""
    document = dict(plan) if isinstance(plan, dict) else {}
    version = str(document.get("schema_version"))
    if version == PLAN_SCHEMA:
        return document, ""
    if (compared(version, PLAN_SCHEMA) or 0) > 0:
        message = f"the plan's schema_version is {version}; this release reads {PLAN_SCHEMA}"
        raise _refused(path, name, "SEA122", message, UPGRADE)
    if version not in _STEPS:
        raise _refused(path, name, "SEA403", f"a plan of schema {version} can't be migrated", _PLAN_AGAIN)
    _check_unchanged(path, name, document, digests)
    lines = [f"schema {version} to {PLAN_SCHEMA}"]
    while version != PLAN_SCHEMA:
        document, version, what = _STEPS[version](document)
        lines.append(what)
    try:
        Plan.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise _refused(path, name, "SEA403", message, _PLAN_AGAIN) from error
    return document, ", ".join(lines)


def _check_unchanged(path: Path, name: str, document: PlanDocument, digests: Yaml) -> None:
    """Refuse a plan that was changed by hand: of an older schema, only the digests of its fields still hold."""
    try:
        seal = Seal.model_validate(digests)
    except ValidationError as error:
        message = "the plan has no digest, so changes by hand can't be detected"
        raise _refused(path, name, "SEA411", message, _PLAN_AGAIN) from error
    changed = [field for field in changed_fields(document, seal) if field != "digests"]
    if changed:
        message = f"changed by hand: {', '.join(changed)}"
        raise _refused(path, name, "SEA411", message, "restore the committed lock, or plan again")


def _to_3(document: PlanDocument) -> tuple[PlanDocument, str, str]:
    """Add how an update is tried: plans of schema 2 knew one way only, that of the field's default."""
    update: Yaml = {
        "value": "candidate",
        "because": "The default: the plan was locked before updates could be tried otherwise.",
    }
    return {**document, "trial_update": update, "schema_version": "3"}, "3", "trial_update: candidate"


# What brings a plan of a schema to a later one: the plan, its schema, and what was done.
_STEPS: Mapping[str, Callable[[PlanDocument], tuple[PlanDocument, str, str]]] = MappingProxyType({"2": _to_3})
_RESTORE = "restore the committed lock, or plan again"
_PLAN_AGAIN = "plan again with this release"


def _mapping(whole: PlanDocument, name: str) -> PlanDocument:
    member = whole.get(name)
    return dict(member) if isinstance(member, dict) else {}


def _refused(path: Path, field: str, rule: str, message: str, hint: str) -> SpecError:
    return SpecError.of(rule, message, hint=hint, where=path.as_posix(), field=field)
