"""Every wrong line that the operators make of a source: `make mutants` draws of them.

Skipped is what decides nothing: docstrings, annotations, variables of types, decorators, imports for types, what is
written to a log, and prose (a string with a blank, an f-string). A wrong one of these is a matter of golden files.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SWAPPED: Final[Mapping[type[ast.AST], tuple[type[ast.AST], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_SWAPPED_NAMES: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TYPES: Final = frozenset({"dict", "frozenset", "list", "set", "tuple", "type"})
_NO_DECISION: Final = frozenset({"annotation", "returns", "decorator_list", "type_params"})
"""Fields of nodes."""
_ASSURANCES: Final = frozenset({"strict", "encoding"})
"""Keyword arguments that repeat what holds anyway: as long as both, UTF-8."""
_PROSE: Final = frozenset({"because", "description", "help", "hint", "message", "title"})
"""Keyword arguments for people."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A piece of a source, in bytes from its beginning, with what stands there instead and the operator."""

    start: int
    end: int
    text: str
    operator: str


def edits(source: str) -> list[Edit]:
    """Return every edit of the operators, in the order of the source; a few of them are no Python."""
    return sorted(set(_Source(source).edits(ast.parse(source))))


class _Source:
    def __init__(self, text: str) -> None:
        self._bytes = text.encode("utf-8")
        self._lines = [0, *(match.end() for match in re.finditer(rb"\n", self._bytes))]

    def edits(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edits of a node and of all below it."""
        if not _is_idle(node):
            yield from self._of(node)
            for child in _deciding(node):
                yield from self.edits(child)

    def _of(self, node: ast.AST) -> Iterator[Edit]:  # noqa: C901, PLR0912 (a table of operators, one branch each)
        match node:
            case ast.Compare(ops=ops):
                for place, swaps in enumerate(map(_swaps, ops)):
                    for other in swaps:
                        yield self._edit(node, _written(node, ops=_put(ops, place, other)), "comparison")
            case ast.BoolOp(op=op, values=values):
                yield self._edit(node, _written(node, op=_swaps(op)[0]), "and, or")
                for place in range(len(values)):
                    rest = values[:place] + values[place + 1 :]
                    left = _written(node, values=rest) if len(rest) > 1 else f"({ast.unparse(rest[0])})"
                    yield self._edit(node, left, "removed condition")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._edit(node, f"({ast.unparse(operand)})", "not")
            case ast.BinOp(op=op) if _swaps(op):
                yield self._edit(node, _written(node, op=_swaps(op)[0]), "arithmetic")
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield from self._negated(test)
            case ast.comprehension(ifs=ifs):
                for each in ifs:
                    yield self._edit(each, "True", "removed filter")
                    yield from self._negated(each)
            case ast.Constant():
                for text in _other_constants(node.value):
                    yield self._edit(node, text, "constant")
            case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED_NAMES:
                yield self._edit(node.func, _SWAPPED_NAMES[name], "function")
            case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper) as cut):
                if lower is not None:
                    yield self._edit(cut, _written(cut, lower=None), "slice")
                if upper is not None:
                    yield self._edit(cut, _written(cut, upper=None), "slice")
            case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
                yield self._edit(value, "None", "returned value")
            case (
                ast.Expr(value=ast.Call())
                | ast.Raise()
                | ast.Continue()
                | ast.Break()
                | ast.AugAssign()
                | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            ):
                yield self._edit(node, "pass", "removed statement")
        if isinstance(node, ast.List | ast.Tuple | ast.Set) and not isinstance(getattr(node, "ctx", None), ast.Store):
            yield from self._removed(list(map(self._span, node.elts)), node)
        if isinstance(node, ast.Dict) and None not in node.keys:
            starts = (self._span(key)[0] for key in node.keys if key is not None)
            ends = (self._span(value)[1] for value in node.values)
            yield from self._removed(list(zip(starts, ends, strict=True)), node)
        if isinstance(node, ast.Call):
            items = sorted(map(self._span, (*node.args, *node.keywords)))
            names = {self._span(each) for each in node.keywords if _is_choice(each)}
            yield from self._removed(items, node, {place for place, item in enumerate(items) if item in names})

    def _negated(self, test: ast.expr) -> Iterator[Edit]:
        """Yield the opposite of a condition that no other operator turns round."""
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            yield self._edit(test, f"not ({ast.unparse(test)})", "condition")

    def _removed(self, items: list[tuple[int, int]], node: ast.AST, places: set[int] | None = None) -> Iterator[Edit]:
        """Yield the removals of single items of a list, with the comma beside each."""
        for place in range(len(items)) if places is None else sorted(places):
            if places is None and len(items) == 1:
                continue  # empty is another list: mostly an error
            start, end = items[place]
            is_pair = isinstance(node, ast.Tuple) and len(items) == 2
            comma = "" if not is_pair or self._bytes[items[1][1] :].lstrip().startswith(b",") else ","
            if place:
                yield Edit(items[place - 1][1], end, comma, "removed element")
            elif comma:
                yield Edit(start, items[1][1], f"{self._bytes[slice(*items[1])].decode()},", "removed element")
            else:
                yield Edit(start, items[1][0] if len(items) > 1 else end, "", "removed element")

    def _edit(self, node: ast.AST, text: str, operator: str) -> Edit:
        return Edit(*self._span(node), text, operator)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._lines[getattr(node, "lineno") - 1] + getattr(node, "col_offset")  # noqa: B009 (not of every node)
        end = self._lines[getattr(node, "end_lineno") - 1] + getattr(node, "end_col_offset")  # noqa: B009
        return start, end


def _is_idle(node: ast.AST) -> bool:
    """Tell whether neither a node nor what is below it decides anything."""
    match node:
        case (
            ast.JoinedStr()
            | ast.Expr(value=ast.Constant() | ast.Call(func=ast.Name(id="log")))
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.Assign(targets=[ast.Name(id="__all__")])
            | ast.AnnAssign(annotation=ast.Name(id="TypeAlias"))
            | ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec" | "NewType")))
        ):
            return True
    return False


def _deciding(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one that may decide anything."""
    match node:
        case ast.Subscript(value=ast.Name(id=name)) if name in _TYPES or (name[0].isupper() and not name.isupper()):
            return
        case ast.Call(func=ast.Name(id="cast"), args=[_, value]):
            yield value
        case ast.Return(value=ast.Tuple(elts=elements)):
            yield from elements  # one fewer is another function: any test notices
        case ast.keyword(arg=name) if name in _ASSURANCES | _PROSE:
            return
        case _:
            for field, value in ast.iter_fields(node):
                if field not in _NO_DECISION:
                    yield from (each for each in (value if isinstance(value, list) else [value]) if _is_node(each))


def _is_node(value: object) -> bool:
    return isinstance(value, ast.AST)


def _is_choice(keyword: ast.keyword) -> bool:
    """Tell whether a keyword argument decides: it is no prose, and no assurance."""
    return keyword.arg not in {None, *_ASSURANCES, *_PROSE} and not isinstance(keyword.value, ast.JoinedStr)


def _other_constants(value: object) -> Sequence[str]:
    match value:
        case bool():
            return (repr(not value),)
        case int():
            return repr(value + 1), repr(value - 1)
        case float():
            return (repr(value * 2.0), repr(value / 2.0)) if value else ("1.0",)
        case str() if not any(map(str.isspace, value)):
            return (repr(f"XX{value}"),)
    return ()


def _swaps(operator: ast.AST) -> list[ast.AST]:
    return [other() for other in _SWAPPED.get(type(operator), ())]


def _put(items: Sequence[ast.AST], place: int, item: ast.AST) -> list[ast.AST]:
    return [*items[:place], item, *items[place + 1 :]]


def _written(node: ast.AST, **fields: object) -> str:
    """Return the text of a node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return ast.unparse(other)
