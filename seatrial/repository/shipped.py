"""Parts that a team's repository shares with this one: app, feature flags, and the versions of every dependency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

CDK_CLI: Final = "aws-cdk"
_LOCKFILE_VERSION: Final = 3  # https://docs.npmjs.com/cli/configuring-npm/package-lock-json


def shipped_text(name: str) -> str:
    """Return a file of this repository's root, which an installed wheel carries next to this module."""
    package = Path(__file__).resolve().parent
    installed = package / "shipped" / name
    return (installed if installed.is_file() else package.parents[1] / name).read_text(encoding="utf-8")


def constraints_text() -> str:
    """Return the tested version of every Python package, as constraints: what is not needed is not installed."""
    lines = shipped_text("requirements.txt").splitlines()
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("-"))


def package_json(name: str) -> str:
    """Return a package.json with the pinned CDK CLI."""
    return _json(_package(name))


def package_lock_json(name: str) -> str:
    """Return its lock: the CDK CLI has no dependencies, and its hash is the one of our lock."""
    locked = json.loads(shipped_text("package-lock.json"))["packages"][f"node_modules/{CDK_CLI}"]
    package = _package(name)
    packages = {"": {"name": name, "devDependencies": package["devDependencies"]}, f"node_modules/{CDK_CLI}": locked}
    return _json({"name": name, "lockfileVersion": _LOCKFILE_VERSION, "requires": True, "packages": packages})


def cdk_cli_version() -> str:
    """Return the version of the CDK CLI that fits the constraints: one that reads the assembly of aws-cdk-lib."""
    return str(json.loads(shipped_text("package.json"))["devDependencies"][CDK_CLI])


def _package(name: str) -> dict[str, object]:
    return {"name": name, "private": True, "devDependencies": {CDK_CLI: cdk_cli_version()}}


def _json(document: dict[str, object]) -> str:
    return json.dumps(document, indent=2) + "\n"
