"""Reads the models that Python files and notebooks make with boto3 or the SageMaker SDK, as far as literals go.

Nothing is run. A name stands for what was last assigned to it above, unless a branch or a loop assigns it.
"""

from __future__ import annotations

import ast
import json
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from seatrial_lint.lint.definitions import components, models, variant_sources
from seatrial_lint.lint.source import HOLE, ConfigSource, SourceEntry, as_object, scalar_text, unknown_node
from seatrial_lint.text_nodes import Member, Node, has_lone_surrogate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MARKS = (b"create_model", b"create_inference_component", b"create_endpoint_config", b"Model(", b"%%writefile")
MOST_SIZE = 4_096
"""Nodes of a value that is followed; so many characters of a text count as one. A larger value is unknown."""
MOST_STEPS = 200_000
"""Nodes that are followed in a file: values within values, as of `a=[a,a]`, have more than a machine can hold."""
MOST_BRACES = 20_000
"""In a file: CPython 3.11 parses an f-string in a time that grows with the square of its fields."""
_TEXT_OF_NODE = 32
# As a member's name: further names may come.
_OPAQUE = "**"
# SageMaker Python SDK 2: model.py and djl_inference/model.py, Model.deploy.
_DEPLOYED = {
    "instance_type": "instance_type",
    "container_startup_health_check_timeout": "startup_timeout_s",
    "inference_ami_version": "ami_version",
}
_FRAMEWORKS = {
    "djl-lmi": "lmi",
    "djl-deepspeed": "deepspeed",
    "djl-fastertransformer": "fastertransformer",
    "djl-neuronx": "neuronx",
    "djl-tensorrtllm": "tensorrtllm",
}


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A piece of Python.

    `lines`: the line of the file of each of its lines.
    """

    text: str
    lines: Sequence[int]


def read_python(
    cells: Sequence[CodeCell], file: str
) -> tuple[tuple[ConfigSource, ...], list[str], tuple[SourceEntry, ...]]:
    """Return the containers and variants that calls make, why cells can't be read, and the images that helpers give."""
    if sum(cell.text.count("{") for cell in cells) > MOST_BRACES:
        return (), [f"more than {MOST_BRACES:,} braces"], ()
    reader = _CallReader(file)
    wrong: list[str] = []
    for cell in cells:
        try:
            # Of escapes in texts that aren't ours.
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(cell.text)
            reader.lines = cell.lines
            reader.visit(tree)
        except SyntaxError as error:
            line = cell.lines[min((error.lineno or 1), len(cell.lines)) - 1] if cell.lines else 1
            wrong.append(f"not Python: line {line}: {error.msg}")
        except ValueError as error:
            # A zero byte, before Python 3.11.4.
            wrong.append(f"not Python: {error}")
        except (RecursionError, MemoryError):
            wrong.append("not Python: nested too deep")
    unread = "its values are followed to a bound" if reader.steps_left <= 0 else ""
    sources = (
        replace(one, is_fixable=False, unread=", ".join(filter(None, (one.unread, unread)))) for one in reader.found
    )
    return tuple(sources), wrong, tuple(reader.images)


def notebook_cells(root: Node) -> Iterator[CodeCell]:
    """Yield the code cells of a notebook; shell commands and magics are left out."""
    cells = root.member("cells")
    for cell in cells.items() if cells else ():
        kind, source = cell.member("cell_type"), cell.member("source")
        if kind is not None and source is not None and kind.text() == "code":
            pieces = [(one.text() or "", one.line) for one in source.items()] or [(source.text() or "", source.line)]
            lines: list[int] = []
            for text, line in pieces:
                lines += [line] * max(1, len(text.splitlines()))
            yield CodeCell("".join(text for text, _ in pieces), lines)


def written_file(cell: CodeCell) -> tuple[str, CodeCell] | None:
    """Return name and content of the file that a cell writes (`%%writefile NAME`); `None` of another cell."""
    first, _, rest = cell.text.partition("\n")
    words = first.split()
    if len(words) < 2 or words[0] != "%%writefile":  # noqa: PLR2004 (the magic and the name)
        return None
    return words[-1], CodeCell(rest, cell.lines[1:])


def without_magics(cell: CodeCell) -> CodeCell:
    """Return a cell in which lines for the notebook are empty statements."""
    if cell.text.startswith("%%") and not cell.text.startswith("%%time"):
        return CodeCell("", cell.lines)
    lines = (
        line[: len(line) - len(line.lstrip())] + "pass" if line.lstrip().startswith(("%", "!")) else line
        for line in cell.text.split("\n")
    )
    return CodeCell("\n".join(lines), cell.lines)


class _CallReader(ast.NodeVisitor):
    """Follows a program from top to bottom."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: Sequence[int] = ()
        self.names: dict[str, Node] = {}
        # Name of an SDK model to the places in `found`.
        self.made: dict[str, list[int]] = {}
        self.found: list[ConfigSource] = []
        self.images: list[SourceEntry] = []
        self.steps_left = MOST_STEPS

    def line(self, node: ast.AST) -> int:
        at = getattr(node, "lineno", 1)
        return self.lines[at - 1] if 0 < at <= len(self.lines) else at

    def visit_Assign(self, node: ast.Assign) -> None:
        before = len(self.found)
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value, range(before, len(self.found)))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            before = len(self.found)
            self.visit(node.value)
            self._bind(node.target, node.value, range(before, len(self.found)))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._forget(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._forget(node)

    def _bind(self, target: ast.expr, value: ast.expr, made: range) -> None:
        match target:
            case ast.Name(id=name):
                self.names[name] = self.value(value)
                self.made[name] = list(made)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if name in self.names:
                self._set(name, key, self.value(value), self.line(target))
            case _:
                self._forget(target)

    def _forget(self, node: ast.AST) -> None:
        for one in ast.walk(node):
            name = one.id if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del) else ""
            match one:
                case ast.Subscript(value=ast.Name(id=known), slice=ast.Constant(value=str(key)), ctx=ast.Store()):
                    self._set(known, key, unknown_node(self.line(one)), self.line(one))
                case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                    name = next((each.id for each in ast.walk(one) if isinstance(each, ast.Name)), "")
            if name:
                self.names[name] = unknown_node(self.line(node))
                self.made.pop(name, None)

    def _set(self, name: str, key: str, value: Node, line: int) -> None:
        known = self.names.get(name, unknown_node(line))
        if _is_dict(known):
            others = tuple(member for member in known.members() if member.name != key)
            known = replace(known, value=(*others, Member(key, line, (0, 0), value)))
        self.names[name] = self._bounded(known, line)

    def _bounded(self, node: Node, line: int) -> Node:
        """Return a value; an unknown one when it is too large, or when enough was followed."""
        size = _size(node, MOST_SIZE) if self.steps_left > 0 else 0
        self.steps_left -= size
        return node if size <= MOST_SIZE and self.steps_left > 0 else unknown_node(line)

    def _branch(self, node: ast.AST) -> None:
        self.generic_visit(node)
        self._forget(node)

    visit_If = visit_For = visit_While = visit_Match = visit_AsyncFor = _branch  # noqa: N815 (names of the standard library)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.steps_left -= len(self.names)
        outer = dict(self.names) if self.steps_left > 0 else {}
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.names[argument.arg] = unknown_node(self.line(node))
        self.generic_visit(node)
        self.names = outer

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815 (as above)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = _called(node)
        given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        of = getattr(node.func, "value", None)
        if name in ("update", "deploy") and isinstance(of, ast.Name):
            if name == "update":
                self._update(of.id, node)
            else:
                self._deploy(of.id, given)
        elif name in _OF_BOTO3:
            members = {key: self.value(value) for key, value in given.items()}
            self.found += _OF_BOTO3[name](as_object(members, self.line(node)), self.file)
        elif name.endswith("Model") and ("env" in given or "image_uri" in given):
            members = {"Environment": self.value(given["env"])} if "env" in given else {}
            if "image_uri" in given:
                members["Image"] = self.value(given["image_uri"])
            elif name == "HuggingFaceModel":
                # Without an image, that of Hugging Face's toolkit.
                members["Image"] = Node("huggingface-pytorch-inference", quoted=True, line=self.line(node), span=(0, 0))
            if "model_data" in given:
                data = self.value(given["model_data"])
                members["ModelDataSource" if _is_dict(data) else "ModelDataUrl"] = data
            container = as_object(members, self.line(node))
            self.found.append(next(models(as_object({"PrimaryContainer": container}, self.line(node)), self.file)))

    def _update(self, name: str, node: ast.Call) -> None:
        known = self.names.get(name)
        parts = [self.value(one) for one in node.args]
        parts += [
            as_object({keyword.arg: self.value(keyword.value)}, self.line(node))
            for keyword in node.keywords
            if keyword.arg
        ]
        if known is None:
            return
        for part in parts:
            if not _is_dict(known):
                break
            members = part.members() if _is_dict(part) else (_opaque(self.line(node)),)
            known = self._bounded(replace(known, value=(*known.members(), *members)), self.line(node))
        self.names[name] = known

    def _deploy(self, name: str, given: dict[str, ast.expr]) -> None:
        facts = {}
        for argument, fact in _DEPLOYED.items():
            value = scalar_text(self.value(given[argument])) if argument in given else None
            if value is not None and HOLE not in value:
                facts[fact] = SourceEntry(argument, value, self.line(given[argument]), "env")
        for index in self.made.get(name, ()):
            self.found[index] = replace(self.found[index], facts=self.found[index].facts | facts)

    def value(self, node: ast.expr) -> Node:
        """Return what an expression is, as JSON; unknown where it is no literal, or too large to be followed."""
        line = self.line(node)
        return self._bounded(self._literal(node, line), line) if self.steps_left > 0 else unknown_node(line)

    def _literal(self, node: ast.expr, line: int) -> Node:  # noqa: PLR0911 (one for each kind of expression)
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                text = node.value if isinstance(node.value, str) else json.dumps(node.value)
                if has_lone_surrogate(text):
                    return unknown_node(line)
                return Node(text, quoted=isinstance(node.value, str), line=line, span=(0, 0))
            case ast.Constant(value=None):
                return Node(None, quoted=False, line=line, span=(0, 0))
            case ast.Name(id=name):
                return self.names.get(name, unknown_node(line))
            case ast.Dict():
                members = tuple(islice(self._members(node), MOST_SIZE + 1))
                return Node(members, quoted=False, line=line, span=(0, 0), is_object=True)
            case ast.List() | ast.Tuple():
                return Node(tuple(self.value(element) for element in node.elts), quoted=False, line=line, span=(0, 0))
            case ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                return self._joined(node)
            case ast.Call():
                return self._called(node)
        return unknown_node(line)

    def _members(self, node: ast.Dict) -> Iterator[Member]:
        for key, value in zip(node.keys, node.values, strict=True):
            read = self.value(value)
            name = scalar_text(self.value(key)) if key is not None else None
            if key is None and _is_dict(read):
                yield from read.members()
            elif key is None or name is None or HOLE in name:
                yield _opaque(self.line(value))
            else:
                yield Member(name, self.line(key), (0, 0), read)

    def _joined(self, node: ast.JoinedStr | ast.BinOp) -> Node:
        parts: list[ast.expr] = [node.left, node.right] if isinstance(node, ast.BinOp) else list(node.values)
        inner = (part.value if isinstance(part, ast.FormattedValue) else part for part in parts)
        text, line = "", self.line(node)
        for one in inner:
            text += scalar_text(self.value(one)) or HOLE
            if len(text) > (MOST_SIZE if HOLE in text else MOST_SIZE * _TEXT_OF_NODE):
                return unknown_node(line)
        return unknown_node(line, text) if HOLE in text else Node(text, quoted=True, line=line, span=(0, 0))

    def _called(self, node: ast.Call) -> Node:
        line, name = self.line(node), _called(node)
        given = {keyword.arg: scalar_text(self.value(keyword.value)) for keyword in node.keywords if keyword.arg}
        first = scalar_text(self.value(node.args[0])) if node.args else None
        if name in ("str", "dumps") and len(node.args) == 1 and not node.keywords:
            is_text = isinstance(getattr(node.args[0], "value", None), str)
            if first is not None and HOLE not in first and not (is_text and name == "dumps"):
                return Node(first, quoted=True, line=line, span=(0, 0))
        framework = first if node.args else given.get("framework") or given.get("backend")
        image = _image(name, framework or "", given.get("version") or "")
        if not image:
            return unknown_node(line)
        self.images.append(SourceEntry("image", image, line, "env"))
        return Node(image, quoted=True, line=line, span=(0, 0))


def _image(call: str, framework: str, version: str) -> str:
    """Return an image as the SDK's helpers give it, with the parts that tell container and version; empty for none."""
    if call == "retrieve" and framework in _FRAMEWORKS and HOLE not in version:
        return f"djl-inference:{version}-{_FRAMEWORKS[framework]}"
    if call == "get_huggingface_llm_image_uri" and framework == "huggingface" and HOLE not in version:
        return f"huggingface-pytorch-tgi-inference:tgi{version}" if version else "huggingface-pytorch-tgi-inference"
    return ""


_OF_BOTO3: dict[str, Callable[[Node, str], Iterator[ConfigSource]]] = {
    "create_model": models,
    "create_inference_component": components,
    "create_endpoint_config": variant_sources,
}


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _is_dict(node: Node) -> bool:
    return node.is_object and node.member("Fn::Sub") is None


def _size(node: Node, most: int) -> int:
    """Return how many nodes a value has, counted to one more than `most`: within itself, a node counts each time."""
    waiting, size = [node], 0
    while waiting and size <= most:
        value = waiting.pop().value
        size += 1
        if isinstance(value, str):
            size += len(value) // _TEXT_OF_NODE
        elif value:
            waiting += [one.node if isinstance(one, Member) else one for one in value[:most]]
    return size


def _opaque(line: int) -> Member:
    return Member(_OPAQUE, line, (0, 0), unknown_node(line))
