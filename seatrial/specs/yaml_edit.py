"""Fields of a YAML text set to other values; every other line, comments too, stays as it is written."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import yaml

from seatrial.specs.yaml_source import dotted, parse_source
from seatrial_base.errors import SpecError
from seatrial_base.files import read_file_bytes, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.yaml_source import FieldPath, Yaml


_LONGEST_LIST = 80
_COMMENT = re.compile(r"(?:^|\s)#.*", re.MULTILINE)


def with_values(data: dict[str, Yaml], fields: Mapping[tuple[str, ...], Yaml]) -> dict[str, Yaml]:
    """Return a document with other values of some fields; mappings on the way to them are made."""
    other: dict[str, Yaml] = json.loads(json.dumps(data))  # what aliases share becomes values of their own
    for path, value in fields.items():
        node = other
        for part in path[:-1]:
            inner = node.get(part)
            node[part] = inner if isinstance(inner, dict) else {}
            node = node[part]  # type: ignore[assignment]  # it is a mapping now
        node[path[-1]] = value
    return other


def edited_text(text: str, fields: Mapping[tuple[str, ...], Yaml], name: str) -> str:
    """Return the text of a file with other values of some fields.

    Raises:
        SpecError: SEA568, the text is written in a way, such as by aliases, in which only its author can change it.
    """
    wanted, edited = with_values(parse_source(text, name).data, fields), text
    for path, value in fields.items():
        edited = _edited(edited, path, value)
    # An edit goes by the form of the text alone: what it means, and that no comment is gone, is held against it here.
    if parse_source(edited, name).data != wanted or not _has_all(_COMMENT.findall(edited), _COMMENT.findall(text)):
        written = "; ".join(f"{dotted(path)}: {_in_line(value)}" for path, value in fields.items())
        message = "the fields can't be set without changing what else the text says"
        raise SpecError.of("SEA568", message, where=name, hint=f"write them by hand: {written}")
    return edited


def edited_file(path: Path, fields: Mapping[tuple[str, ...], Yaml]) -> str:
    """Return the text of a file with other values of some fields, and with its own line ends.

    Raises:
        SpecError: SEA568 as `edited_text`.
    """
    text = edited_text(read_text(path), fields, path.as_posix())
    return text.replace("\n", "\r\n") if b"\r\n" in read_file_bytes(path) else text


def _has_all(after: list[str], before: list[str]) -> bool:
    return all(after.count(comment) >= before.count(comment) for comment in before)


def _edited(text: str, path: FieldPath, value: Yaml) -> str:
    node: yaml.Node = yaml.compose(text, Loader=yaml.SafeLoader)  # type: ignore[assignment]  # it was parsed before
    key, depth, in_line = node, 0, False
    while depth < len(path) and isinstance(node, yaml.MappingNode) and node.value:
        in_line = in_line or bool(node.flow_style)
        pair = next((pair for pair in node.value if pair[0].value == path[depth]), None)
        if pair is None:
            break
        (key, node), depth = pair, depth + 1
    end = _end(text, node)
    if depth < len(path) and isinstance(node, yaml.MappingNode) and node.value:
        column, new = node.value[0][0].start_mark.column, _nested(path[depth:], value)
        if in_line:
            end = len(text[: end - 1].rstrip().removesuffix(","))
            return f"{text[:end]}, {_in_line(new)[1:-1]}{text[end:]}"
        line_end = text.find("\n", end)
        end = len(text) if line_end < 0 else line_end
        return f"{text[:end]}{_in_block(new, column)}{text[end:]}"
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and isinstance(value, list):
        known = yaml.SafeLoader("").construct_object(node, deep=True)
        if known and value[: len(known)] == known:  # what is there, with its comments, stays
            line_end = text.find("\n", end)
            end = len(text) if line_end < 0 else line_end
            return f"{text[:end]}{_in_block(value[len(known) :], node.start_mark.column, is_long=True)}{text[end:]}"
    colon = text.index(":", key.end_mark.index) + 1
    new = _nested(path[depth:], value) if depth < len(path) else value
    return text[:colon] + (f" {_in_line(new)}" if in_line else _in_block(new, key.start_mark.column + 2)) + text[end:]


def _nested(path: FieldPath, value: Yaml) -> Yaml:
    return {str(path[0]): _nested(path[1:], value)} if path else value


def _end(text: str, node: yaml.Node) -> int:
    """Return where the last character of a value is passed; the mark of a block is that of what follows it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    end: int = node.end_mark.index
    return len(text[:end].rstrip())


def _in_line(value: Yaml) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _in_block(value: Yaml, column: int, *, is_long: bool = False) -> str:
    """Return what stands after a key: mappings, and lists of mappings or long texts, on lines of their own."""
    begin = "\n" + " " * column
    if isinstance(value, dict) and value:
        return "".join(f"{begin}{key}:{_in_block(inner, column + 2)}" for key, inner in value.items())
    is_long = is_long or (isinstance(value, list) and len(f"{value}") > _LONGEST_LIST)
    if isinstance(value, list) and (is_long or any(isinstance(each, dict) for each in value)):
        return "".join(f"{begin}- {_in_line(each)}" for each in value)
    return f" {_in_line(value)}"
