"""The reference of `seatrial_cdk`, read from its source: importing it would start Node."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Function = ast.FunctionDef
Node = TypeVar("Node", ast.ClassDef, ast.FunctionDef)
Group = Literal["endpoint", "scaling", "trials", "observability", "vending", "jobs", "delivery"]

CONSTRUCTS = Path(__file__).resolve().parent.parent / "constructs" / "seatrial_cdk"
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):\n((?:(?: {4}.*)?\n?)*)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}([\w, ]+): (.+(?:\n {8}.+)*)", re.MULTILINE)
_GROUPS = frozenset(get_args(Group))


def group_text(group: Group, table: Callable[[tuple[str, ...], Iterable[tuple[str, ...]]], str]) -> str:
    """Return the classes and functions of a group, each with its arguments, methods, results and errors.

    Args:
        group: Which.
        table: Writes a table of Markdown.
    """
    page = _Page(table)
    modules = {CONSTRUCTS / f"{name.replace('.', '/')}.py": names for name, names in _public_names(group)}
    classes = [
        page.class_text(_whole(node)) for path, names in modules.items() for node in _named(path, names, ast.ClassDef)
    ]
    functions = [
        page.function_text(node) for path, names in modules.items() for node in _named(path, names, ast.FunctionDef)
    ]
    return _with_public_names("\n\n".join([*classes, *functions]))


@cache
def _classes() -> dict[str, ast.ClassDef]:
    """Return every class of the library by name."""
    trees = (_tree(path) for path in sorted(CONSTRUCTS.rglob("*.py")))
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


@cache
def _all_public_names() -> frozenset[str]:
    return frozenset(name for names in _name_table().values() for name in names.split())


def _hidden_bases(node: ast.ClassDef) -> list[ast.ClassDef]:
    """Return the bases that have no page of their own, the nearest first."""
    named = (ast.unparse(base) for base in node.bases)
    bases = [_classes()[name] for name in named if name in _classes() and name not in _all_public_names()]
    return [each for base in bases for each in (base, *_hidden_bases(base))]


def _whole(node: ast.ClassDef) -> ast.ClassDef:
    """Return a class with what it inherits of bases that have no page of their own."""
    inherited = [part for base in _hidden_bases(node) for part in base.body if isinstance(part, ast.FunctionDef)]
    whole = ast.ClassDef(node.name, node.bases, node.keywords, [*node.body, *inherited], node.decorator_list)
    return ast.copy_location(whole, node)


def _with_public_names(text: str) -> str:
    """Name classes without a page by those that they are the base of."""
    for name in _classes().keys() - _all_public_names():
        heirs = [heir for heir in sorted(_all_public_names() & _classes().keys()) if _inherits(heir, name)]
        if heirs:
            text = re.sub(rf"\b{name}\b", r" \| ".join(heirs), text)
    return text


def _inherits(heir: str, base: str) -> bool:
    return any(each.name == base for each in _hidden_bases(_classes()[heir]))


def _public_names(group: Group) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the modules of a group with their public names; what lies in no folder is shown with the checks."""
    for module, names in _name_table().items():
        folder = module.partition(".")[0]
        if (folder if folder in _GROUPS else "delivery") == group:
            yield module, frozenset(names.split())


@cache
def _name_table() -> dict[str, str]:
    """Return the public names of the library, by module."""
    table = next(
        node.value
        for node in _tree(CONSTRUCTS / "__init__.py").body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NAMES"
    )
    named: dict[str, str] = ast.literal_eval(table)
    return named


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _named(path: Path, names: frozenset[str], kind: type[Node]) -> Iterator[Node]:
    return (node for node in _tree(path).body if isinstance(node, kind) and node.name in names)


@dataclass(frozen=True, slots=True)
class _Docstring:
    """A docstring in Google's style: the text, and its sections by name."""

    text: str
    sections: dict[str, str]

    @classmethod
    def of(cls, node: ast.ClassDef | Function) -> _Docstring:
        whole = f"{ast.get_docstring(node) or ''}\n"
        sections = dict(_SECTION.findall(whole))
        return cls(_SECTION.sub("", whole).strip(), sections)

    def entries(self, *names: str) -> dict[str, str]:
        """Return what sections say, by the name of what they describe."""
        found: dict[str, str] = {}
        for section in names:
            for entry, text in _ENTRY.findall(self.sections.get(section, "")):
                found |= {name.strip(): re.sub(r"\s+", " ", text) for name in entry.split(",")}
        return found


@dataclass(frozen=True, slots=True)
class _Page:
    """Writes classes and functions."""

    table: Callable[[tuple[str, ...], Iterable[tuple[str, ...]]], str]

    def class_text(self, node: ast.ClassDef) -> str:
        """Return a class: text, arguments, attributes, methods."""
        told = _Docstring.of(node)
        blocks = [f"### {node.name}", f"`from seatrial_cdk import {node.name}`", told.text]
        if rows := [*_fields(node, told.entries("Args", "Attributes"))]:
            blocks.append(self.table(("argument", "type", "default", "description"), rows))
        blocks += self._raised(told)
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
        if held := _attributes(node):
            blocks.append(f"Attributes: {', '.join(f'`{name}`' for name in held)}.")
        blocks += [self._method_text(node.name, method) for method in methods]
        return "\n\n".join(filter(None, blocks))

    def function_text(self, node: Function) -> str:
        """Return a function of a module."""
        head = f"### {node.name}\n\n`from seatrial_cdk import {node.name}`"
        return f"{head}\n\n{self._called(node)}"

    def _method_text(self, owner: str, node: Function) -> str:
        kinds = {ast.unparse(each) for each in node.decorator_list}
        kind = "property" if "property" in kinds else "class method" if "classmethod" in kinds else "method"
        return f"#### {owner}.{node.name}\n\n{self._called(node, kind)}".replace("returns `Self`", f"returns `{owner}`")

    def _called(self, node: Function, kind: str = "function") -> str:
        told = _Docstring.of(node)
        result = ast.unparse(node.returns) if node.returns else "None"
        blocks = [f"{kind.capitalize()}, returns `{result}`.", told.text]
        if rows := [*_arguments(node, told.entries("Args"))]:
            blocks.append(self.table(("argument", "type", "default", "description"), rows))
        if returned := told.sections.get("Returns"):
            blocks.append(f"Returns: {' '.join(returned.split())}")
        return "\n\n".join(filter(None, [*blocks, *self._raised(told)]))

    def _raised(self, told: _Docstring) -> list[str]:
        rows = [(f"`{name}`", text) for name, text in told.entries("Raises").items()]
        return [self.table(("raises", "when"), rows)] if rows else []


def _fields(node: ast.ClassDef, described: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the arguments of a class: the keyword-only ones of its constructor, else the fields of a dataclass."""
    constructors = (made for made in node.body if isinstance(made, ast.FunctionDef) and made.name == "__init__")
    if (constructor := next(constructors, None)) is not None:  # a base's comes behind the class's own
        yield from _arguments(constructor, described)
    for made in node.body:
        if isinstance(made, ast.AnnAssign) and isinstance(made.target, ast.Name) and _is_dataclass(node):
            name = made.target.id
            default = "**required**" if made.value is None else f"`{ast.unparse(made.value)}`"
            yield f"`{name}`", f"`{ast.unparse(made.annotation)}`", default, described.get(name, "")


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(each) for each in node.decorator_list)


def _arguments(node: Function, described: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield arguments: those by position (without scope and ID of a constructor), then those by keyword."""
    missing = len(node.args.args) - len(node.args.defaults)
    defaults = [*[None] * missing, *node.args.defaults]
    by_position = [*zip(node.args.args, defaults, strict=True)]
    by_position = [each for each in by_position if each[0].arg not in {"self", "cls"}]
    if node.name == "__init__":
        by_position = []
    for one, default in [*by_position, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]:
        kind = ast.unparse(one.annotation) if one.annotation else ""
        shown = "**required**" if default is None else f"`{ast.unparse(default)}`"
        yield f"`{one.arg}`", f"`{kind}`", shown, described.get(one.arg, "")


def _attributes(node: ast.ClassDef) -> list[str]:
    """Return the public names that a constructor keeps, in their order."""
    made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    targets = [
        target
        for each in made
        for statement in ast.walk(each)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for part in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        for target in (part.elts if isinstance(part, ast.Tuple) else [part])
    ]
    names = [
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    ]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]
