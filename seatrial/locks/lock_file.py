"""The lock: plans committed beside their spec, one per environment, and whether they still are the plan of it."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from pydantic import ValidationError

from seatrial.documents.plan import PLAN_SCHEMA, Plan, values_digest
from seatrial.locks.changes import change_text
from seatrial.locks.guard_rails import limit_problems, rail_problems
from seatrial.locks.pins import promotion_command, provenance_problems
from seatrial.specs.spec_files import lock_path
from seatrial.specs.yaml_source import UPGRADE, compared, yaml_texts
from seatrial_base.errors import SpecError
from seatrial_base.files import changing, read_text, write_whole
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel, digest
from seatrial_base.secrets import holds_credential
from seatrial_base.text import json_document, replaced_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from seatrial.documents.plan import Promoted
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import Yaml
    from seatrial_base.errors import SeatrialError


LOCK_SCHEMA = "1"
_LONGEST_SHOWN = 120
_WRITABLE = "the folder of the spec must be writable"


def replace_file(path: Path, text: str, rule: str) -> None:
    """Write a file so that a reader sees the old one or the new one, whole; what fails leaves nothing behind.

    Raises:
        SpecError: The rule, when the folder is not writable or full.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        message = f"can't be written: {error.strerror}"
        raise SpecError.of(rule, message, hint=_WRITABLE, where=path.as_posix()) from error


@contextmanager
def changing_file(path: Path, rule: str) -> Iterator[None]:
    """Keep others from changing a file while it is read, changed and replaced; waits until they are done.

    Raises:
        SpecError: The rule, when the folder can't be read.
    """
    with ExitStack() as held:
        try:
            held.enter_context(changing(path))
        except OSError as error:
            message = f"can't be written: {error.strerror}"
            raise SpecError.of(rule, message, hint=_WRITABLE, where=path.as_posix()) from error
        yield


class Seal(FrozenModel):
    """What a plan was when it was written into its lock.

    Attributes:
        plan: Digest of the plan without its texts, the one that the stack and the report show.
        fields: Digest of each of its fields, texts included.
    """

    plan: str
    fields: dict[str, str]


def seal_of(document: Mapping[str, object]) -> Seal:
    """Return the digests of a plan as it is written in JSON."""
    return Seal(
        plan=values_digest(document),
        fields={
            name: digest(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
            for name, value in document.items()
        },
    )


def changed_fields(document: Mapping[str, object], seal: Seal) -> tuple[str, ...]:
    """Return the fields that were changed, added or removed since a plan was written, sorted; empty for none.

    Where the digests themselves were changed, these are among them, as `digests`.
    """
    now = seal_of(document)
    names = {*now.fields, *seal.fields}
    changed = {name for name in names if now.fields.get(name) != seal.fields.get(name)}
    if not changed and now.plan != seal.plan:
        return ("digests",)
    return tuple(sorted(changed))


def write_lock(plan: Plan, spec_path: Path) -> Path:
    """Write a plan with its digests into its spec's lock; the plans of other environments stay as they are.

    Equal plans give equal bytes.

    Returns:
        The lock's path.

    Raises:
        SpecError: SEA403 when there is a lock that can't be read or replaced: it is left alone.
    """
    path = lock_path(spec_path)
    with changing_file(path, "SEA403"):
        _write(plan, path)
    return path


def change_locked_plan(loaded: LoadedSpec, change: Callable[[Plan], Plan]) -> Path:
    """Read the locked plan, change it, and write it; nobody else writes the lock meanwhile.

    Returns:
        The lock's path.

    Raises:
        SpecError: What `read_locked_plan` and `write_lock` raise.
    """
    path = lock_path(loaded.path)
    with changing_file(path, "SEA403"):
        _write(change(read_locked_plan(loaded)), path)
    return path


def _write(plan: Plan, path: Path) -> None:
    # Plans of other environments are written back as they were read: another release may have had other fields.
    lock, document = _read(path), plan.model_dump(mode="json")
    whole = {
        "schema_version": LOCK_SCHEMA,
        "environments": {**lock.environments, plan.environment: document},
        "digests": {**lock.digests, plan.environment: seal_of(document).model_dump()},
    }
    replace_file(path, lock_text(whole), "SEA403")


def lock_text(whole: Mapping[str, object]) -> str:
    """Return a lock as it is written; equal locks give equal bytes."""
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def locked_environments(spec_path: Path) -> frozenset[str]:
    """Return the environments for which a spec has a plan, fresh or stale; none when it has no lock.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    return frozenset(_read(lock_path(spec_path)).environments)


def is_locked(loaded: LoadedSpec) -> bool:
    """Return whether there is a plan for the environment, fresh or stale.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    return loaded.environment.name in locked_environments(loaded.path)


def locked_document(loaded: LoadedSpec) -> dict[str, object] | None:
    """Return the locked plan of the environment as it is written, by whichever release; `None` when there is none.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    return document_in_lock(loaded.path, loaded.environment.name)


def document_in_lock(spec_path: Path, environment: str) -> dict[str, object] | None:
    """Return the plan that a spec's lock holds for an environment, as it is written; `None` when there is none.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    document = _read(lock_path(spec_path)).environments.get(environment)
    return {str(key): value for key, value in document.items()} if isinstance(document, dict) else None


def locked_provenance(loaded: LoadedSpec) -> Promoted | None:
    """Return where the locked plan was promoted from; `None` where it was not, or nothing is locked.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    document = locked_document(loaded)
    return None if document is None else _validate(document, lock_path(loaded.path), loaded.environment.name).promoted


def read_locked_plan(loaded: LoadedSpec, *, stale: bool = False) -> Plan:
    """Return the plan that was locked for a spec in its environment, as it was planned or adopted.

    Args:
        stale: Take the plan also when the spec or the environment changed since; their limits are not checked then.

    Raises:
        SpecError: SEA401 when there is none, SEA403 when the lock can't be read. Else with every problem of SEA402
            when it is stale and may not be, SEA411 when it was changed by hand, SEA413 to SEA415 when it is beyond
            what the environment and the spec allow, and SEA478 when it was not promoted and must be.
    """
    plan, changed = read_edited_plan(loaded)
    problems = list(changed.problems)
    # A stale plan breaks limits of a spec that it was not made for: only the environment's rails are told of it
    # then.
    if not stale:
        stale_by = _stale(plan, loaded)
        problems += (*stale_by, *rail_problems(plan, loaded)) if stale_by else limit_problems(plan, loaded)
        problems += provenance_problems(plan, loaded)
    if problems:
        raise SpecError(problems)
    return plan


def read_edited_plan(loaded: LoadedSpec) -> tuple[Plan, Changed]:
    """Return the locked plan with what was changed by hand since it was written.

    Raises:
        SpecError: SEA401 when there is none, SEA403 when it can't be read.
    """
    path, name = lock_path(loaded.path), loaded.environment.name
    lock = _read(path)
    if name not in lock.environments:
        message = f"there is no plan for {name}" if lock.environments else "there is no lock"
        raise SpecError.of("SEA401", message, hint=_plan_again(loaded), where=path.as_posix(), field=name)
    document = lock.environments[name]
    # The document as written is compared, not the plan: the model would add fields of a later release.
    plan = _validate(document, path, name)
    return plan, _changed(document, lock.digests.get(name), loaded)


@dataclass(frozen=True, slots=True)
class Changed:
    """What was changed by hand in a locked plan since it was written.

    Attributes:
        fields: The fields, sorted; empty for none.
        problems: One for each of them, or one that says why nothing can be told.
        seal: The digests with which it was written; `None` where they are missing.
    """

    fields: tuple[str, ...]
    problems: tuple[Finding, ...]
    seal: Seal | None


@dataclass(frozen=True, slots=True)
class _Lock:
    """The plans of a lock and their digests, as written, by environment."""

    environments: dict[str, object]
    digests: dict[str, object]


def _changed(document: object, digests: object, loaded: LoadedSpec) -> Changed:
    where, name = lock_path(loaded.path).as_posix(), loaded.environment.name
    try:
        seal = Seal.model_validate(digests)
    except ValidationError:
        message = "the plan has no digest, so changes by hand can't be detected"
        return Changed((), (Finding("SEA411", Place.at(where, name), message, _plan_again(loaded)),), None)
    fields = document if isinstance(document, dict) else {}
    hint = (
        f"restore the committed lock, plan again (`{_command(loaded)} --write`), or adopt the changes "
        f"(`{_command(loaded)} --adopt`)"
    )
    changed = changed_fields(fields, seal)
    problems = (
        Finding("SEA411", Place.at(where, f"{name}.{field}"), f"changed by hand{_shown(field, fields)}", hint)
        for field in changed
    )
    return Changed(changed, tuple(problems), seal)


def _shown(field: str, document: Mapping[str, object]) -> str:
    """Return what a changed field holds now, as far as it fits into a message."""
    if field not in document:
        return ": removed" if field != "digests" else ""
    value = change_text(document[field])
    return f": now {value}" if len(value) <= _LONGEST_SHOWN else ""


def _stale(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return what changed since the plan was made; none when it is fresh."""
    where, name = lock_path(loaded.path).as_posix(), loaded.environment.name
    if plan.spec_digest != loaded.digest:
        message = f"the spec changed after planning: digest {loaded.digest}, planned {plan.spec_digest}"
        return (Finding("SEA402", Place.at(where, name), message, _plan_again(loaded)),)
    # The key is only deployed, so it is in no digest; yet a volume in service can't change it.
    key, planned = loaded.environment.kms_key_arn, plan.volume_kms_key_arn
    if plan.volume_size_gb is not None and key != planned:
        message = f"the volume key changed after planning: {change_text(key)}, planned {change_text(planned)}"
        return (Finding("SEA402", Place.at(where, f"{name}.volume_kms_key_arn"), message, _plan_again(loaded)),)
    return ()


def _plan_again(loaded: LoadedSpec) -> str:
    if loaded.environment.promotion.required:
        return f"run `{promotion_command(loaded)}`"
    return f"run `{_command(loaded)} --write`"


def _command(loaded: LoadedSpec) -> str:
    return f"seatrial plan {loaded.path.as_posix()} --environment {loaded.environment.name}"


def _read(path: Path) -> _Lock:
    """Return the plans of a lock; none when there is no lock."""
    try:
        text = read_text(path)
        document = json_document(text)
    except FileNotFoundError:
        return _Lock({}, {})
    except OSError as error:
        raise _unreadable(path, f"can't be read: {error.strerror}") from error
    except ValueError as error:
        raise _unreadable(path, f"not JSON: {error}") from error
    # The lock is committed and shown in reviews, so it is refused before anything of it is repeated in a message.
    if holds_credential(text):
        message, hint = "looks like a credential in plain text", "revoke it, remove it, and plan again"
        raise SpecError.of("SEA113", message, where=path.as_posix(), hint=hint)
    if reference := next(filter(None, (replaced_text(each) for _, _, each in yaml_texts(cast("Yaml", document)))), ""):
        message, hint = f"the text holds {reference}", "remove it, and plan again"
        raise SpecError.of("SEA137", message, where=path.as_posix(), hint=hint)
    if not isinstance(document, dict) or not isinstance(document.get("environments"), dict):
        raise _unreadable(path, "not a lock")
    version = document.get("schema_version")
    if version != LOCK_SCHEMA:
        message = f"schema_version is {version}; this release reads {LOCK_SCHEMA}"
        raise _unreadable(path, message, hint=UPGRADE if (compared(version, LOCK_SCHEMA) or 0) > 0 else _RESTORE)
    digests = document.get("digests")
    return _Lock(document["environments"], digests if isinstance(digests, dict) else {})


def _validate(document: object, path: Path, name: str) -> Plan:
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != PLAN_SCHEMA:
        message = f"the plan's schema_version is {version}; this release reads {PLAN_SCHEMA}"
        difference = compared(version, PLAN_SCHEMA)
        hint = _RESTORE if difference is None else UPGRADE if difference > 0 else _migrate(path)
        raise _unreadable(path, message, name, hint)
    try:
        return Plan.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{where}: {first['msg']}", name) from error


def _migrate(path: Path) -> str:
    return f"run `seatrial migrate {path.as_posix()} --write`, or plan again with this release"


_RESTORE = "plan again with this release, or restore the committed lock"


def _unreadable(path: Path, message: str, field: str = "", hint: str = _RESTORE) -> SpecError:
    return SpecError.of("SEA403", message, hint=hint, where=path.as_posix(), field=field)


State = Literal["fresh", "stale", "missing", "edited", "unreadable", "beyond limits", "awaiting promotion"]
# What the first of these rules among a lock's problems means; any other is a limit that the plan breaks.
_STATES: Mapping[str, State] = {
    "SEA403": "unreadable",
    "SEA113": "unreadable",
    "SEA137": "unreadable",
    "SEA401": "missing",
    "SEA411": "edited",
    "SEA402": "stale",
}


@dataclass(frozen=True, slots=True)
class Freshness:
    """What is to be said of a lock in one environment.

    Attributes:
        loaded: The spec in its environment.
        state: `fresh`, or what is wrong with it.
        problems: Everything that is wrong with it.
    """

    loaded: LoadedSpec
    state: State
    problems: tuple[Finding, ...] = ()


# What is wrong with a lock until a tried plan is promoted to it.
_PROMOTION_ENDS = frozenset({"SEA401", "SEA402", "SEA478"})


def awaits_promotion(error: SeatrialError, loaded: LoadedSpec) -> bool:
    """Return whether all that is wrong with a lock ends with a promotion, which its environment requires.

    A changed spec makes the locks of every environment stale; where a promotion is required, the new plan comes only
    after its trial in the environment before. Until then what is deployed stays.
    """
    rules = {problem.rule for problem in error.problems}
    return loaded.environment.promotion.required and bool(rules) and rules <= _PROMOTION_ENDS


def freshness_of(loaded: LoadedSpec) -> Freshness:
    """Return whether the lock of a spec is the plan of the spec as it is now."""
    try:
        read_locked_plan(loaded)
    except SpecError as error:
        if awaits_promotion(error, loaded):
            return Freshness(loaded, "awaiting promotion", error.problems)
        rules = {problem.rule for problem in error.problems}
        state: State = next((state for rule, state in _STATES.items() if rule in rules), "beyond limits")
        return Freshness(loaded, state, error.problems)
    return Freshness(loaded, "fresh")
