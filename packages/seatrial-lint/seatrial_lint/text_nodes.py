"""JSON and YAML with the place of each value; the depth is bounded, so that no text can end the process."""

from __future__ import annotations

import bisect
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from seatrial_lint.lint.source import Span

MAX_DEPTH = 64
"""Deeper texts are refused."""
# A template of 1 MiB has fewer.
MAX_VALUES = 200_000
# Control characters pass.
_STRINGS = json.JSONDecoder(strict=False)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = re.compile(r"[ \t\r\n]*")
_LONGEST_NUMBER = 100
_YAML_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float")}
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"
_NO_TEXTS = {_NULL, *(f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))}


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a JSON text.

    Attributes:
        value: Members of an object, items of an array, or the scalar as text; `None` for null.
        quoted: The scalar is a string, with or without quotes.
        line: Line on which it begins.
    """

    value: tuple[Member, ...] | tuple[Node, ...] | str | None
    quoted: bool
    line: int
    span: Span
    is_object: bool = False

    def member(self, name: str) -> Node | None:
        """Return an object's member, the last one of this name as JSON readers do."""
        nodes = [member.node for member in self.members() if member.name == name]
        return nodes[-1] if nodes else None

    def members(self) -> tuple[Member, ...]:
        """Return an object's members; none for anything else."""
        return tuple(one for one in self.value if isinstance(one, Member)) if isinstance(self.value, tuple) else ()

    def items(self) -> tuple[Node, ...]:
        """Return an array's items; none for anything else."""
        return tuple(one for one in self.value if isinstance(one, Node)) if isinstance(self.value, tuple) else ()

    def text(self) -> str | None:
        """Return a scalar as text; `None` for null, objects and arrays."""
        return self.value if isinstance(self.value, str) else None


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its name, where that stands, and its value."""

    name: str
    line: int
    span: Span
    node: Node


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text holds half of a character, as an escape of one surrogate makes: UTF-8 can't write it."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def plain_value(node: Node) -> JsonValue:
    """Return the value of a node as a JSON reader gives it; a number or a flag of YAML 1.1 too."""
    if isinstance(node.value, tuple):
        if node.is_object:
            return {member.name: plain_value(member.node) for member in node.members()}
        return [plain_value(item) for item in node.items()]
    return node.value if node.quoted or node.value is None else _scalar(node.value)


def _scalar(text: str) -> JsonValue:
    """Return a number or a flag of JSON or YAML 1.1; the text where it is neither, or too long for one."""
    if len(text) > _LONGEST_NUMBER:
        return text
    value: JsonValue = text
    if _SCALAR.fullmatch(text):
        value = json.loads(text)
    else:
        loader = yaml.SafeLoader("")
        tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # of the stubs
        if tag in _YAML_SCALARS:
            value = loader.construct_object(yaml.ScalarNode(tag, text))
    return value


def read_json(text: str) -> Node:
    """Read a JSON text.

    Raises:
        ValueError: When the text is not JSON, nested deeper than `MAX_DEPTH`, or of more than `MAX_VALUES` values.
    """
    reader = _JsonReader(text)
    node = reader.value(reader.blank(0), 0)
    if reader.blank(node.span[1]) != len(text):
        raise ValueError(f"line {reader.line(node.span[1])}: something follows the JSON text")
    return node


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.values = 0
        self.starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def line(self, at: int) -> int:
        return bisect.bisect_right(self.starts, at)

    def blank(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> Node:
        char = self.text[at : at + 1]
        if depth > MAX_DEPTH:
            raise ValueError(f"line {self.line(at)}: nested deeper than {MAX_DEPTH}")
        self.values += 1
        if self.values > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values")
        if char == "{":
            return self.object(at, depth)
        if char == "[":
            return self.array(at, depth)
        if char == '"':
            value, end = self.string(at)
            return Node(value, quoted=True, line=self.line(at), span=(at, end))
        match = _SCALAR.match(self.text, at)
        if match is None:
            raise ValueError(f"line {self.line(at)}: a value is missing")
        scalar = None if match[0] == "null" else match[0]
        return Node(scalar, quoted=False, line=self.line(at), span=match.span())

    def string(self, at: int) -> tuple[str, int]:
        try:
            value, end = _STRINGS.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {error.lineno}: {error.msg}") from error
        if has_lone_surrogate(value):
            raise ValueError(f"line {self.line(at)}: a text holds half a character, which no file can hold")
        return str(value), end

    def object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        position = self.blank(at + 1)
        while self.text[position : position + 1] != "}":
            position = self.separator(position) if members else position
            if self.text[position : position + 1] != '"':
                raise ValueError(f"line {self.line(position)}: a name in quotes is missing")
            name, end = self.string(position)
            colon = self.blank(end)
            if self.text[colon : colon + 1] != ":":
                raise ValueError(f"line {self.line(colon)}: a colon is missing")
            node = self.value(self.blank(colon + 1), depth + 1)
            members.append(Member(name, self.line(position), (position, end), node))
            position = self.blank(node.span[1])
        return Node(tuple(members), quoted=False, line=self.line(at), span=(at, position + 1), is_object=True)

    def array(self, at: int, depth: int) -> Node:
        items: list[Node] = []
        position = self.blank(at + 1)
        while self.text[position : position + 1] != "]":
            position = self.separator(position) if items else position
            items.append(self.value(position, depth + 1))
            position = self.blank(items[-1].span[1])
        return Node(tuple(items), quoted=False, line=self.line(at), span=(at, position + 1))

    def separator(self, at: int) -> int:
        if self.text[at : at + 1] != ",":
            raise ValueError(f"line {self.line(at)}: a comma is missing")
        return self.blank(at + 1)


def read_yaml(text: str, *, takes_aliases: bool = True) -> tuple[Node, ...]:
    """Read the documents of a YAML text.

    Raises:
        ValueError: When the text is not YAML, nested deeper than `MAX_DEPTH`, of more than `MAX_VALUES` values, or has
            an alias that is not taken.
    """
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ValueError(f"nested deeper than {MAX_DEPTH}")
            if isinstance(event, yaml.AliasEvent) and not takes_aliases:
                raise ValueError("CloudFormation takes no YAML aliases")
            if count > 2 * MAX_VALUES:
                raise ValueError(f"more than {MAX_VALUES:,} values")
        documents = [node for node in yaml.compose_all(text, Loader=_LOADER) if node is not None]
    except yaml.MarkedYAMLError as error:
        line, problem, _ = yaml_mistake(text, error)
        raise ValueError(f"line {line}: {problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{error}".partition("\n")[0]) from error
    reader = _YamlReader()
    return tuple(reader.node(document) for document in documents)


_NO_COLON = ("no colon behind a name", "write `name: value`, with a space behind the colon")


def yaml_mistake(text: str, error: yaml.MarkedYAMLError) -> tuple[int, str, str]:
    """Return the line on which a text was mistaken, what is wrong there, and how it is mended.

    The parser names the line on which it noticed. No text is repeated: it may be a password.
    """
    at, begun, context = error.problem_mark, error.context_mark, str(error.context)
    lines = [*text.splitlines(), ""]
    mistake = (0 if at is None else at.line), error.problem or "it can't be read", "fix the YAML syntax on this line"
    if begun is not None and "flow" in context and "," in mistake[1]:
        unclosed = f"the {lines[begun.line][begun.column]} is not closed"
        mistake = begun.line, unclosed, "close it, or put the comma that is missing between its values"
    elif begun is not None and "quoted" in context:
        mistake = begun.line, "the quote is not closed", "close it"
    elif begun is not None and "simple key" in context:
        mistake = begun.line, *_NO_COLON
    elif at is not None and "any token" in mistake[1]:
        sign = lines[at.line][at.column]
        wrong = ("a tab before the text", "indent with spaces")
        mistake = at.line, *(wrong if sign == "\t" else (f"a text can't begin with {sign}", "quote it"))
    elif at is not None and "mapping values" in mistake[1] and ": " in lines[at.line][: at.column]:
        mistake = at.line, "two colons", "begin a line for the second name; a text with `: ` needs quotes"
    elif at is not None:
        mistake = _indentation_mistake(lines, at.line, mistake)
    return mistake[0] + 1, *mistake[1:]


def _indentation_mistake(lines: list[str], at: int, mistake: tuple[int, str, str]) -> tuple[int, str, str]:
    """Return how a line contradicts the indentation of those above, or that one has no colon; else the mistake."""
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    above: dict[int, int] = {}  # the last line of each level that is still open
    for index in range(at - 1, -1, -1):
        if re.match(r" *[^ #]", lines[index]) and indents[index] < min(above, default=1000):
            above[indents[index]] = index
    deepest, own = max(above, default=0), indents[at]
    if above and ("mapping values" in mistake[1] or own > deepest) and not re.search(r":(\s|$)", lines[above[deepest]]):
        return above[deepest], *_NO_COLON
    if not above or own in above:
        return mistake
    if own > deepest:
        wrong = f"indented deeper than line {above[deepest] + 1}, which has a value"
        return at, wrong, f"indent it by {deepest} spaces"
    known = " or ".join(", ".join(map(str, sorted(above))).rsplit(", ", 1))
    wrong = f"indented by {own} space{'s' * (own != 1)}; the lines above begin with {known}"
    return at, wrong, "indent it by one of these"


class _YamlReader:
    def __init__(self) -> None:
        self.values = 0

    def node(self, node: yaml.Node) -> Node:
        """Return a node; what an alias stands for is read again, within the bound of values."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values")
        plain = self._plain(node)
        if node.tag.startswith("!") and len(node.tag) > 1:
            # `!Name value` in its long form.
            name = node.tag[1:]
            long = name if name in ("Ref", "Condition") else f"Fn::{name}"
            member = Member(long, plain.line, plain.span, plain)
            return replace(plain, value=(member,), quoted=False, is_object=True)
        return plain

    def _plain(self, node: yaml.Node) -> Node:
        line, span = node.start_mark.line + 1, (node.start_mark.index, node.end_mark.index)
        if isinstance(node, yaml.ScalarNode):
            value = None if node.tag == _NULL else node.value
            return Node(value, quoted=node.tag not in _NO_TEXTS, line=line, span=span)
        if isinstance(node, yaml.SequenceNode):
            return Node(tuple(self.node(one) for one in node.value), quoted=False, line=line, span=span)
        return Node(tuple(self._members(node)), quoted=False, line=line, span=span, is_object=True)

    def _members(self, node: yaml.Node) -> Iterator[Member]:
        for key, value in node.value:
            if key.value == "<<" and not key.style:
                read = self.node(value)
                for one in (read, *read.items()):
                    yield from one.members()
            elif isinstance(key, yaml.ScalarNode):
                span = (key.start_mark.index, key.end_mark.index)
                yield Member(key.value, key.start_mark.line + 1, span, self.node(value))
