"""A rule is a row of the table and a check that registers itself with it; the one is never without the other."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import sys
from typing import TYPE_CHECKING

import pytest

import seatrial_lint.lint.checks
import seatrial_lint.template_rules.checks
from seatrial_base.findings import lint_rules, template_rules
from seatrial_lint.lint import lint, rules
from seatrial_lint.lint.checks import traps
from seatrial_lint.template_rules import check, hosting

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

LINT = {one.judge: one.rules for one in rules.CHECKS}
TEMPLATES = dict(hosting.CHECKS)
IDS = re.compile(r"SEA\d{3}")


def written_in(function: Callable[..., object]) -> set[str]:
    """Return the IDs that a function and what it calls of its own file write; a check calls no other check."""
    tree = ast.parse(inspect.getsource(sys.modules[function.__module__]))
    others = {one.__name__ for one in (*LINT, *TEMPLATES) if one is not function}
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in others}
    waiting, seen = [function.__name__], set[str]()
    while waiting:
        name = waiting.pop()
        if name in defined and name not in seen:
            seen.add(name)
            waiting += [node.id for node in ast.walk(defined[name]) if isinstance(node, ast.Name)]
    bodies = (statement for name in seen for statement in defined[name].body)
    texts = (node.value for body in bodies for node in ast.walk(body) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and IDS.fullmatch(text)}


def registered(function: Callable[..., object]) -> frozenset[str]:
    (found,) = (rules for known in (LINT.items(), TEMPLATES.items()) for judge, rules in known if judge is function)
    return found


def named(function: Callable[..., object]) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def test_every_registered_rule_has_a_row_and_every_row_a_check() -> None:
    assert set().union(*LINT.values()) == {rule.id for rule in lint_rules()}
    assert set().union(*TEMPLATES.values()) == {rule.id for rule in template_rules()}
    assert len(LINT) == len(rules.CHECKS)


@pytest.mark.parametrize("judge", [one for one in (*LINT, *TEMPLATES) if one is not traps.every], ids=named)
def test_a_check_registers_the_rules_that_it_gives_and_no_other(judge: Callable[..., object]) -> None:
    assert registered(judge) == written_in(judge)


def test_the_check_of_traps_registers_the_rules_of_its_rows() -> None:
    assert LINT[traps.every] == {row.rule for row in traps.TRAPS.rows}


@pytest.mark.parametrize(
    ("package", "reader"), [(seatrial_lint.lint.checks, lint), (seatrial_lint.template_rules.checks, check)]
)
def test_who_applies_the_checks_imports_every_file_of_them(package: ModuleType, reader: ModuleType) -> None:
    assert {module.name for module in pkgutil.iter_modules(package.__path__)} <= set(vars(reader))
