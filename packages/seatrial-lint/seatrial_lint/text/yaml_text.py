"""Reads YAML and remembers where each value stands, in the nodes of `json_text`; CloudFormation's short forms too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from seatrial_lint.text.json_text import MAX_DEPTH, MAX_VALUES, Member, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"
_NO_TEXTS = {_NULL, *(f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))}
_MERGE = "<<"


def read_yaml(text: str, *, takes_aliases: bool = True) -> tuple[Node, ...]:
    """Read the documents of a YAML text.

    Args:
        text: The text.
        takes_aliases: Whether an alias may stand for a value.

    Raises:
        ValueError: When the text is not YAML, nested deeper than `MAX_DEPTH`, of more than `MAX_VALUES` values, or has
            an alias that is not taken.
    """
    try:
        _check_events(text, takes_aliases=takes_aliases)
        documents = [node for node in yaml.compose_all(text, Loader=_LOADER) if node is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"line {line}: {error.problem or 'it can not be read'}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{error}".partition("\n")[0]) from error
    reader = _YamlReader()
    return tuple(reader.node(one) for one in documents)


def _check_events(text: str, *, takes_aliases: bool) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        if isinstance(event, yaml.AliasEvent) and not takes_aliases:
            raise ValueError("CloudFormation takes no YAML aliases")
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
            value = None if node.tag == _NULL else node.value
            return Node(value, quoted=node.tag not in _NO_TEXTS, line=line, span=span)
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
