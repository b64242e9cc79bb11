"""Each package needs what its pyproject names and nothing else: the contract that its installation alone makes."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from aws_cdk import cloud_assembly_schema

from seatrial_base import __version__

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(folder.name for folder in (ROOT / "packages").iterdir() if (folder / "pyproject.toml").is_file())
OURS = {name: name.replace("-", "_") for name in PACKAGES}
ABOVE = {"seatrial_laptop.demo": "seatrial"}
"""The demo alone drives the whole: spec, plan, `cdk deploy`."""
IMPORT_ALL = """
import importlib, importlib.machinery, pkgutil, sys

class Declared(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        is_declared = top in allowed or top in sys.stdlib_module_names or top.startswith("_sysconfig")
        return super().find_spec(name, path, target) if is_declared else None

sys.meta_path = [Declared if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path]
package = importlib.import_module(package_name)
for module in pkgutil.walk_packages(package.__path__, package_name + "."):
    if not module.name.endswith("__main__") and not module.name.startswith(above):
        importlib.import_module(module.name)
"""


def project(name: str) -> dict[str, object]:
    file = ROOT / "packages" / name / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]  # type: ignore[no-any-return]  # TOML


def requirements(lines: list[str]) -> set[str]:
    """Return the names of distributions that these lines bring, and those that these need, extras included."""
    brought: set[tuple[str, str]] = set()
    waiting = list(lines)
    while waiting:
        line = waiting.pop()
        found = re.match(r"([A-Za-z0-9_.-]+)(?:\[([^\]]*)\])?", line)
        assert found is not None, line
        name = found[1].lower()
        for extra in ("", *(found[2] or "").split(",")):
            if (name, extra) not in brought:
                brought.add((name, extra))
                waiting += _needed(name, extra)
    return {name for name, _ in brought}


def _needed(name: str, extra: str) -> list[str]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    marked = [line.partition(";") for line in lines]
    return [line for line, _, mark in marked if ("extra" in mark) == bool(extra) and (not extra or extra in mark)]


def modules_of(distributions: set[str]) -> list[str]:
    homes = metadata.packages_distributions()
    normal = {re.sub(r"[-_.]+", "-", name) for name in distributions}
    held = {top for top, names in homes.items() if normal & {re.sub(r"[-_.]+", "-", name).lower() for name in names}}
    return sorted(held | {name.replace("-", "_") for name in normal if name in OURS})


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_imports_what_it_declares(name: str) -> None:
    declared = project(name)
    lines = [str(line) for line in declared["dependencies"]]  # type: ignore[attr-defined]  # a list of TOML
    if name == "seatrial-base":  # who needs its frozen documents asks for the extra
        lines.append("seatrial-base[documents]")
    allowed = [*modules_of(requirements(lines)), OURS[name]]
    code = f"allowed = {allowed!r}\npackage_name = {OURS[name]!r}\nabove = {tuple(ABOVE)!r}\n{IMPORT_ALL}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_a_readme_and_the_version_of_the_whole(name: str) -> None:
    folder = ROOT / "packages" / name
    assert project(name)["version"] == __version__
    assert (folder / "README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")
    assert (folder / OURS[name] / "py.typed").is_file()
    assert any((folder / "tests").rglob("test_*.py"))


def test_the_file_that_two_packages_of_the_cdk_bring_is_that_of_aws_cdk_lib() -> None:
    """uv installs them side by side; where the other one comes last, jsii knows no annotation (scripts/install.sh)."""
    assert "aws-cdk-lib.cloud_assembly_schema.MetadataEntry" in Path(cloud_assembly_schema.__file__).read_text("utf-8")
