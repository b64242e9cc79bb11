"""YAML text that remembers where each value stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from seatrial.errors import Problem
from seatrial.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FieldPath = tuple[str | int, ...]
Yaml = None | bool | int | float | str | list["Yaml"] | dict[str, "Yaml"]

_PARSER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_NO_JSON = {"timestamp": "YAML reads it as a date", "binary": "it is written as binary data"}


class _Loader(_PARSER):  # type: ignore[misc, valid-type]  # the base is the C parser where there is one
    """YAML as people write it: `1e-3` is a number (as in YAML 1.2), dates and binary data stay text to be refused."""


_EXPONENT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+")
_Loader.add_implicit_resolver(f"{_TAG}float", _EXPONENT, list("-+.0123456789"))
for _name in _NO_JSON:
    _Loader.add_constructor(f"{_TAG}{_name}", yaml.SafeLoader.construct_yaml_str)
for _name in ("set", "omap", "pairs"):
    _Loader.add_constructor(f"{_TAG}{_name}", yaml.SafeLoader.construct_undefined)


MAX_DEPTH, MAX_VALUES = 40, 20_000  # a spec has a handful of levels and some dozens of values
_TOO_LARGE = ("the text is nested too deeply, or its aliases unfold to too much", "a spec has a handful of levels")


@dataclass(frozen=True, slots=True)
class Source:
    """The content of one YAML file.

    Attributes:
        path: The file as the user named it.
        data: The mapping at the top; empty when the file holds problems only.
        lines: The 1-based line of every field, by its path.
        problems: What is wrong with the text itself.
    """

    path: str
    data: dict[str, Yaml]
    lines: dict[FieldPath, int]
    problems: tuple[Problem, ...] = ()


def read_source(path: Path) -> Source:
    """Read one YAML file; what is wrong with it is returned, not raised."""
    name = path.as_posix()
    try:
        text = read_text(path)
    except FileNotFoundError:
        return _broken(name, "SEA101", "the file does not exist", "check the path")
    except (OSError, UnicodeDecodeError) as error:
        return _broken(name, "SEA101", f"the file can't be read: {error}", "it must be readable UTF-8 text")
    return parse_source(text, name)


def parse_source(text: str, name: str) -> Source:
    """Parse YAML text under the name of its file; what is wrong with it is returned, not raised."""
    try:
        if _depth(text) > MAX_DEPTH:
            return _broken(name, "SEA102", *_TOO_LARGE)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        return _broken_yaml(name, error)
    if not isinstance(root, yaml.MappingNode):
        return _broken(name, "SEA102", "the file is not a mapping of fields", "begin with `name: …`")
    if _is_too_large(root):
        return _broken(name, "SEA102", *_TOO_LARGE)
    problems = tuple(_endless(root, name)) or tuple(_non_string_keys(root, name))
    return Source(name, {}, {}, problems) if problems else _constructed(root, text, name)


def _constructed(root: yaml.MappingNode, text: str, name: str) -> Source:
    loader = _Loader(text)
    try:
        data: dict[str, Yaml] = loader.construct_document(root)
    except yaml.YAMLError as error:
        return _broken_yaml(name, error)
    finally:
        loader.dispose()
    return Source(name, data, dict(_walk(root, ())), (*_duplicates(root, name), *_no_json(root, name)))


def _depth(text: str) -> int:
    """Return how deeply the text nests, counted before it is composed: composing deep text ends the process."""
    depth = deepest = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            return deepest
    return deepest


def _broken(name: str, rule: str, message: str, hint: str) -> Source:
    return Source(name, {}, {}, (Problem(name, "", rule, message, hint),))


def _broken_yaml(name: str, error: yaml.YAMLError) -> Source:
    mark = getattr(error, "problem_mark", None)
    where, hint = (f"{name}:{mark.line + 1}", "mend the YAML syntax at this line") if mark else (name, "")
    what = getattr(error, "problem", None) or "the text can't be parsed"
    return Source(name, {}, {}, (Problem(where, "", "SEA102", str(what), hint),))


def _is_too_large(root: yaml.Node) -> bool:
    """Return whether the text, its aliases unfolded, is deeper or larger than any spec."""
    waiting: list[tuple[yaml.Node, tuple[yaml.Node, ...]]] = [(root, ())]
    count = 0
    while waiting:
        node, above = waiting.pop()
        count += 1
        if len(above) > MAX_DEPTH or count > MAX_VALUES:
            return True
        outer = (*above, node)
        inner = (child for _, child in _children(node))
        waiting.extend((child, outer) for child in inner if not any(child is known for known in outer))
    return False


def _endless(node: yaml.Node, name: str, above: tuple[yaml.Node, ...] = ()) -> Iterator[Problem]:
    """Yield each alias that refers to what contains it."""
    for line, child in _children(node):
        if any(child is outer for outer in (*above, node)):
            message = "the alias refers to what contains it"
            yield Problem(f"{name}:{line}", "", "SEA102", message, "write the value out instead of the alias")
        else:
            yield from _endless(child, name, (*above, node))


def _children(node: yaml.Node) -> Iterator[tuple[int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            yield from ((line, key), (line, value))
    elif isinstance(node, yaml.SequenceNode):
        yield from ((node.start_mark.line + 1, value) for value in node.value)


def _no_json(root: yaml.Node, name: str) -> Iterator[Problem]:
    """Yield every value that is neither text, number, truth, list nor mapping."""
    for path, node in _scalars(root, ()):
        what = _NO_JSON.get(node.tag.removeprefix(_TAG))
        if what:
            where = f"{name}:{node.start_mark.line + 1}"
            yield Problem(
                where, dotted(path), "SEA105", f"{node.value} is no text: {what}", f'quote it: "{node.value}"'
            )


def _scalars(node: yaml.Node, path: FieldPath) -> Iterator[tuple[FieldPath, yaml.ScalarNode]]:
    if isinstance(node, yaml.ScalarNode):
        yield path, node
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _scalars(value, (*path, index))


def _walk(node: yaml.Node, path: FieldPath) -> Iterator[tuple[FieldPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _walk(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1
            yield from _walk(value, (*path, index))


def _mappings(root: yaml.Node, path: FieldPath = ()) -> Iterator[tuple[FieldPath, yaml.MappingNode]]:
    if isinstance(root, yaml.MappingNode):
        yield path, root
        for key, value in root.value:
            yield from _mappings(value, (*path, str(key.value)))
    elif isinstance(root, yaml.SequenceNode):
        for index, value in enumerate(root.value):
            yield from _mappings(value, (*path, index))


def _duplicates(root: yaml.Node, name: str) -> Iterator[Problem]:
    for path, mapping in _mappings(root):
        first: dict[str, int] = {}
        for key, _ in mapping.value:
            line = key.start_mark.line + 1
            if key.value in first:
                message = f"written a second time (first on line {first[key.value]})"
                yield Problem(f"{name}:{line}", dotted((*path, key.value)), "SEA103", message, "keep one of them")
            first.setdefault(key.value, line)


def _non_string_keys(root: yaml.Node, name: str) -> Iterator[Problem]:
    for path, mapping in _mappings(root):
        for key, _ in mapping.value:
            if not isinstance(key, yaml.ScalarNode):
                where = f"{name}:{key.start_mark.line + 1}"
                yield Problem(where, dotted(path), "SEA105", "a key is a list or a mapping", "write `name: value`")
            elif key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                where = f"{name}:{key.start_mark.line + 1}"
                yield Problem(where, dotted(path), "SEA105", f"the key {key.value!r} is not a string", "quote it")


def dotted(path: FieldPath) -> str:
    """Write a path as users read it: `serving.instance_types[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def texts(node: Yaml, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield every text and number with its path and the name of its field; names themselves too: they have no name.

    An item of a list has the name of the list, or of the option before it, as in `["--api-key", "…"]`.
    """
    if isinstance(node, str | int | float) and not isinstance(node, bool):
        yield path, next((str(name) for name in reversed(path) if isinstance(name, str)), ""), str(node)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key), "", key
            yield from texts(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            option = node[index - 1] if index else None
            if isinstance(value, str) and isinstance(option, str) and option.startswith("-"):
                yield (*path, index), option, value
            else:
                yield from texts(value, (*path, index))
