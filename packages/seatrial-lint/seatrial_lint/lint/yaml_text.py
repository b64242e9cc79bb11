"""Reads YAML and remembers where each value stands, in the nodes of `json_text`; CloudFormation's short forms too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from seatrial_lint.lint.json_text import MAX_DEPTH, MAX_VALUES, Member, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"
_MERGE = "<<"


def read_yaml(text: str) -> tuple[Node, ...]:
    """Read the documents of a YAML text.

    Raises:
        ValueError: When the text is not YAML, nested deeper than `MAX_DEPTH`, or of more than `MAX_VALUES` values.
    """
    try:
        _check_depth(text)
        documents = [node for node in yaml.compose_all(text, Loader=_LOADER) if node is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"line {line}: {error.problem or 'it can not be read'}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{error}".partition("\n")[0]) from error
    reader = _YamlReader()
    return tuple(reader.node(one) for one in documents)


def _check_depth(text: str) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        if count > 2 * MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values")


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
            return _function(node.tag[1:], plain)
        return plain

    def _plain(self, node: yaml.Node) -> Node:
        line, span = node.start_mark.line + 1, (node.start_mark.index, node.end_mark.index)
        if isinstance(node, yaml.ScalarNode):
            quoted = node.style in ("'", '"')
            return Node(None if node.tag == _NULL and not quoted else node.value, quoted=quoted, line=line, span=span)
        if isinstance(node, yaml.SequenceNode):
            return Node(tuple(self.node(one) for one in node.value), quoted=False, line=line, span=span)
        return Node(tuple(self._members(node)), quoted=False, line=line, span=span, is_object=True)

    def _members(self, node: yaml.Node) -> Iterator[Member]:
        for key, value in node.value:
            if key.value == _MERGE and not key.style:
                read = self.node(value)
                for one in (read, *read.items()):
                    yield from one.members()
            elif isinstance(key, yaml.ScalarNode):
                span = (key.start_mark.index, key.end_mark.index)
                yield Member(key.value, key.start_mark.line + 1, span, self.node(value))


def _function(name: str, value: Node) -> Node:
    """Return `!Name value` in its long form."""
    long = name if name in ("Ref", "Condition") else f"Fn::{name}"
    member = Member(long, value.line, value.span, value)
    return Node((member,), quoted=False, line=value.line, span=value.span, is_object=True)
