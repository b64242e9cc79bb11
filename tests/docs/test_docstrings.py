"""Names of modules and classes in the docstrings of the source resolve: a docstring outlives what it names."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

from scripts.structure import source_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE: Final = re.compile(r"\bseatrial(?:_[a-z]+)?(?:\.[A-Za-z_]\w*)+")
CLASS: Final = re.compile(r"`([a-z_]+)\.([A-Z]\w*)`")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FILES = source_files()


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names that a module defines or imports at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name for each in node.names}
    return frozenset(found)


def resolves(name: str) -> bool:
    """Tell whether a dotted name is a module or a package, or a name at the top level of one."""
    module, _, attribute = name.rpartition(".")
    return name in FILES or (module in FILES and attribute in names_in(FILES[module]))


def is_class(module: str, name: str) -> bool:
    """Tell whether a module of this last name defines a class; one of a library may be named, too."""
    return find_spec(module) is not None or any(
        each.rpartition(".")[2] == module and name in names_in(path) for each, path in FILES.items()
    )


def unresolved(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        text = ast.get_docstring(node, clean=False) if isinstance(node, DOCUMENTED) else None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = node.value.value  # of a constant: a string that follows it
        if text is not None:
            yield from (name for name in MODULE.findall(text) if not resolves(name))
            yield from (f"{module}.{name}" for module, name in CLASS.findall(text) if not is_class(module, name))


@pytest.mark.parametrize("package", sorted({name.partition(".")[0] for name in FILES}))
def test_names_in_docstrings_resolve(package: str) -> None:
    wrong = {name: sorted({*unresolved(path)}) for name, path in FILES.items() if name.partition(".")[0] == package}
    assert {name: names for name, names in wrong.items() if names} == {}
