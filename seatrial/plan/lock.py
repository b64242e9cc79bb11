"""The lock: plans committed beside their spec, one per environment, so that nothing changes without a diff."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.errors import SpecError
from seatrial.files import read_text
from seatrial.plan.document import PLAN_SCHEMA, Plan
from seatrial.plan.replace_file import replace_file
from seatrial.secrets import holds_credential

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.spec.load import LoadedSpec

LOCK_SCHEMA = "1"


def lock_path(spec_path: Path) -> Path:
    """Return the lock of a spec: `chat.yaml` has `chat.lock.json`."""
    return spec_path.with_name(f"{spec_path.stem}.lock.json")


def write_lock(plan: Plan, spec_path: Path) -> Path:
    """Write a plan into its spec's lock; the plans of other environments stay. Equal plans give equal bytes.

    Returns:
        The lock's path.

    Raises:
        SpecError: SEA403 when there is a lock that can't be read or replaced: it is left alone.
    """
    path = lock_path(spec_path)
    environments = _read(path)
    environments[plan.environment] = plan.model_dump(mode="json")
    document = {"schema_version": LOCK_SCHEMA, "environments": environments}
    replace_file(path, json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "SEA403")
    return path


def is_locked(loaded: LoadedSpec) -> bool:
    """Return whether there is a plan for the environment, fresh or stale.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    return loaded.environment.name in _read(lock_path(loaded.path))


def locked_document(loaded: LoadedSpec) -> dict[str, object] | None:
    """Return the locked plan of the environment as it is written, by whichever release; `None` when there is none.

    Raises:
        SpecError: SEA403 when the lock can't be read.
    """
    document = _read(lock_path(loaded.path)).get(loaded.environment.name)
    return {str(key): value for key, value in document.items()} if isinstance(document, dict) else None


def read_locked_plan(loaded: LoadedSpec, *, stale: bool = False) -> Plan:
    """Return the plan that was locked for a spec in its environment.

    Args:
        loaded: The spec in its environment.
        stale: Take the plan also when the spec or the environment changed since.

    Raises:
        SpecError: SEA401 when there is none, SEA402 when it is stale and may not be, SEA403 when the lock can't be
            read.
    """
    path, name = lock_path(loaded.path), loaded.environment.name
    hint = f"run `seatrial plan {loaded.path.as_posix()} --environment {name} --write`"
    environments = _read(path)
    if name not in environments:
        message = f"there is no plan for {name}" if environments else "there is no lock"
        raise SpecError.of("SEA401", message, hint=hint, where=path.as_posix(), field=name)
    plan = _validate(environments[name], path, name)
    if plan.spec_digest != loaded.digest and not stale:
        message = f"the plan was made from {plan.spec_digest}, and the spec is now {loaded.digest}"
        raise SpecError.of("SEA402", message, hint=hint, where=path.as_posix(), field=name)
    return plan


def _read(path: Path) -> dict[str, object]:
    """Return the plans of a lock by environment; none when there is no lock."""
    try:
        text = read_text(path)
        document = json.loads(text)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, f"it can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"it is not JSON: {error}") from error
    if holds_credential(text):
        message, hint = "this looks like a credential in plain text", "revoke it, remove it and plan again"
        raise SpecError.of("SEA113", message, where=path.as_posix(), hint=hint)
    if not isinstance(document, dict) or not isinstance(document.get("environments"), dict):
        raise _unreadable(path, "it is not a lock")
    version = document.get("schema_version")
    if version != LOCK_SCHEMA:
        raise _unreadable(path, f"its schema_version is {version}, and this release reads {LOCK_SCHEMA}")
    return {str(name): plan for name, plan in document["environments"].items()}


def _validate(document: object, path: Path, name: str) -> Plan:
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != PLAN_SCHEMA:
        message = f"the plan's schema_version is {version}, and this release reads {PLAN_SCHEMA}"
        raise _unreadable(path, message, name)
    try:
        return Plan.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"{where}: {first['msg']}", name) from error


def _unreadable(path: Path, message: str, field: str = "") -> SpecError:
    hint = "plan again with this release, or restore the committed lock"
    return SpecError.of("SEA403", message, hint=hint, where=path.as_posix(), field=field)
