"""The file of a lock: plans committed next to their spec, one per environment, each with its digests.

Nothing of it is judged here: `seatrial.locks.locked_plan` does, for which it needs the spec.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from seatrial.documents.plan import PLAN_SCHEMA, Plan, values_digest
from seatrial.specs.spec_files import lock_path
from seatrial.specs.yaml_source import UPGRADE, compared, yaml_texts
from seatrial_base.errors import SpecError
from seatrial_base.files import changing, read_text, write_whole
from seatrial_base.frozen_model import FrozenModel, digest
from seatrial_base.secrets import holds_credential
from seatrial_base.text import json_document, replaced_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.documents.plan import Promoted
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import Yaml


LOCK_SCHEMA = "1"
_RESTORE = "plan again with this release, or restore the committed lock"
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


@dataclass(frozen=True, slots=True)
class Lock:
    """The plans of a lock and their digests, as written, by environment.

    Attributes:
        evidence: The signed results of trials on which plans were promoted, each as JSON on one line.
    """

    environments: dict[str, object]
    digests: dict[str, object]
    evidence: dict[str, str] = field(default_factory=dict)


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


def write_lock(plan: Plan, spec_path: Path, evidence: str = "") -> Path:
    """Write a plan with its digests into its spec's lock; the plans of other environments stay as they are.

    Equal plans give equal bytes.

    Args:
        evidence: The result on which it is promoted, as its service signed it. Default: what is there; none of a plan
            that was not promoted.

    Raises:
        SpecError: SEA403 when there is a lock that can't be read or replaced: it is left alone.
    """
    path = lock_path(spec_path)
    with changing_file(path, "SEA403"):
        put_plan(plan, path, evidence)
    return path


def put_plan(plan: Plan, path: Path, evidence: str = "") -> None:
    """Write a plan with its digests into a lock that its writer keeps from others (`changing_file`)."""
    # Plans of other environments are written back as they were read: another release may have had other fields.
    lock, document, name = read_lock(path), plan.model_dump(mode="json"), plan.environment
    proven = {**lock.evidence, name: evidence or lock.evidence.get(name, "")} if plan.promoted else lock.evidence
    proven = {each: text for each, text in proven.items() if text and (plan.promoted or each != name)}
    whole = {
        "schema_version": LOCK_SCHEMA,
        "environments": {**lock.environments, plan.environment: document},
        "digests": {**lock.digests, plan.environment: seal_of(document).model_dump()},
        **({"evidence": proven} if proven else {}),
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
    return frozenset(read_lock(lock_path(spec_path)).environments)


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
    document = read_lock(lock_path(spec_path)).environments.get(environment)
    return {str(key): value for key, value in document.items()} if isinstance(document, dict) else None


def locked_provenance(loaded: LoadedSpec) -> Promoted | None:
    """Return where the locked plan was promoted from; `None` where it was not, or nothing is locked.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    document = locked_document(loaded)
    return (
        None if document is None else validated_plan(document, lock_path(loaded.path), loaded.environment.name).promoted
    )


def read_lock(path: Path) -> Lock:
    """Return the plans of a lock; none when there is no lock.

    Raises:
        SpecError: SEA403 when it can't be read, SEA113 or SEA137 when it holds what no lock may.
    """
    try:
        text = read_text(path)
        document = json_document(text)
    except FileNotFoundError:
        return Lock({}, {})
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
    digests, evidence = document.get("digests"), document.get("evidence")
    texts = evidence.items() if isinstance(evidence, dict) else ()
    return Lock(
        document["environments"],
        digests if isinstance(digests, dict) else {},
        {name: text for name, text in texts if isinstance(text, str)},
    )


def validated_plan(document: object, path: Path, name: str) -> Plan:
    """Return a plan of a lock as its model.

    Raises:
        SpecError: SEA403 when it is no plan of this release.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != PLAN_SCHEMA:
        message = f"the plan's schema_version is {version}; this release reads {PLAN_SCHEMA}"
        difference = compared(version, PLAN_SCHEMA)
        migrate = f"run `seatrial migrate {path.as_posix()} --write`, or plan again with this release"
        hint = _RESTORE if difference is None else UPGRADE if difference > 0 else migrate
        raise _unreadable(path, message, name, hint)
    try:
        return Plan.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{where}: {first['msg']}", name) from error


def _unreadable(path: Path, message: str, field: str = "", hint: str = _RESTORE) -> SpecError:
    return SpecError.of("SEA403", message, hint=hint, where=path.as_posix(), field=field)
