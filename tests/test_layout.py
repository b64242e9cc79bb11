"""The folders of source hide nobody's package, each layer keeps to its work, and each class name means one thing."""

from __future__ import annotations

import ast
import importlib.util
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import constructs
import pytest

from scripts.structure import circles, idioms, read_module, source_files

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
SOURCE_ROOTS = {"constructs": "seatrial_cdk", "stacks": "seatrial_stacks"}
STACKS = sorted((ROOT / "stacks" / "seatrial_stacks").glob("*.py"))


@pytest.mark.parametrize(("folder", "package"), SOURCE_ROOTS.items())
def test_a_source_root_is_no_package_but_holds_one(folder: str, package: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()
    assert [path.parent.name for path in (ROOT / folder).glob("*/__init__.py")] == [package]


def test_the_wheel_installs_no_name_but_ours() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    expected = {"seatrial", *(f"{folder}/{package}" for folder, package in SOURCE_ROOTS.items())}
    assert set(wheel["packages"]) == expected
    assert {target.partition("/")[0] for target in wheel["force-include"].values()} == {"seatrial"}


def test_constructs_is_the_package_from_pypi() -> None:
    assert not Path(constructs.__file__ or "").is_relative_to(ROOT / "constructs")
    assert not hasattr(constructs, "seatrial_cdk")


def test_the_app_fits_on_a_screen() -> None:
    assert len((ROOT / "app.py").read_text().splitlines()) <= 30


def test_cdk_starts_the_app() -> None:
    assert json.loads((ROOT / "cdk.json").read_text())["app"] == "python app.py"


@pytest.mark.parametrize("stack", STACKS, ids=lambda path: path.stem)
def test_a_stack_only_composes(stack: Path) -> None:
    tree = ast.parse(stack.read_text())
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    level_one = {name for name in names | imported if name.startswith("Cfn")} - {"CfnOutput", "CfnParameter"}
    services = {name for name in imported if name.startswith("aws_")}
    assert (level_one, services) == (set(), set())


@pytest.mark.parametrize("package", ["seatrial_cdk/endpoint", "seatrial_cdk/jobs", "seatrial_cdk/trials"])
def test_packages_on_the_way_to_the_lambda_hold_a_docstring_only(package: str) -> None:
    tree = ast.parse((ROOT / "constructs" / package / "__init__.py").read_text())
    assert [type(node) for node in tree.body] == [ast.Expr]


def test_the_stub_of_the_constructs_has_each_public_name_from_its_module() -> None:
    """`ContainerAlarms` was in the table alone: a type checker took it for missing."""
    library = ROOT / "constructs" / "seatrial_cdk"
    table = next(
        ast.literal_eval(node.value)
        for node in ast.parse((library / "__init__.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES"
    )
    stub = {
        (node.module, alias.name, alias.asname)
        for node in ast.parse((library / "__init__.pyi").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stub == {(f"seatrial_cdk.{module}", name, name) for module in table for name in table[module].split()}


def test_no_more_than_two_files_of_the_constructs_import_one_another() -> None:
    files = {name: path for name, path in source_files().items() if name.startswith("seatrial_cdk")}
    modules = {name: read_module(name, path, frozenset(files)) for name, path in files.items()}
    assert [group for group in circles(modules) if len(group) > 2] == []


def test_a_public_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for pattern in ("seatrial", *SOURCE_ROOTS, "packages/*/seatrial_*"):
        for file in (file for folder in ROOT.glob(pattern) for file in folder.rglob("*.py")):
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(file.relative_to(ROOT).as_posix())
    assert {name: sorted(files) for name, files in homes.items() if len(files) > 1} == {}


READ_BY_OTHERS = {"aws_cdk._jsii", "aws_cdk.interfaces"}


def test_every_module_of_the_cdk_that_is_used_has_its_types_checked() -> None:
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    followed = next(each["module"] for each in overrides if each.get("follow_imports") == "normal")
    assert set(followed) == READ_BY_OTHERS.union(*map(cdk_modules, sources()))


def sources() -> Iterator[Path]:
    """Return the checked files that name the CDK."""
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    paths = (
        path for each in checked for path in ([ROOT / each] if each.endswith(".py") else (ROOT / each).rglob("*.py"))
    )
    return (path for path in paths if "aws_cdk" in path.read_text(encoding="utf-8"))


def cdk_modules(path: Path) -> set[str]:
    """Return the modules of the CDK that a file imports."""
    imports = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    ]
    ours = [node for node in imports if (node.module or "").partition(".")[0] == "aws_cdk"]
    services = {f"aws_cdk.{alias.name}" for node in ours for alias in node.names if node.module == "aws_cdk"}
    return {f"{node.module}" for node in ours} | {name for name in services if importlib.util.find_spec(name)}


def test_the_source_keeps_its_bounds() -> None:
    """`found`, `asked`, `told` and `said` stay where another's API or a document has the word; a new one is a noun."""
    counts = idioms(source_files())
    assert len(source_files()) <= 560
    assert counts["private_functions_called_once_percent"] <= 25
    assert counts["copies_by_hand"] <= 500
    assert counts["protocols"] <= 45
    assert counts["comment_lines_percent"] >= 0.8
    assert counts["vague_words_in_identifiers"] <= 120
