"""JSON documents of unknown depth, read with their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

WRONG_TYPE = "expected {} at {}, found {!r}"

Document = Mapping[str, object]
"""A JSON object, after its validation against the service's model."""
Handlers = Mapping[str, Callable[..., object] | bool]
"""MiniStack's table of one type: `create`, `update`, `delete`, and whether `update` takes the logical ID."""


def text_member(document: Document, key: str, default: str = "") -> str:
    """Return the string at a key, or the default when the key is absent."""
    value = document.get(key, default)
    if not isinstance(value, str):
        raise TypeError(WRONG_TYPE.format("a string", key, value))
    return value


def whole(document: Document, key: str, default: int = 0) -> int:
    """Return the whole number at a key, or the default when the key is absent."""
    value = document.get(key, default)
    if not isinstance(value, int):
        raise TypeError(WRONG_TYPE.format("a whole number", key, value))
    return value


def number(document: Document, key: str) -> float:
    """Return the number at a key."""
    value = document.get(key)
    if not isinstance(value, int | float):
        raise TypeError(WRONG_TYPE.format("a number", key, value))
    return float(value)


def child(document: Document, key: str) -> Document:
    """Return the object at a key, an empty one when the key is absent."""
    value = document.get(key, {})
    if not isinstance(value, Mapping):
        raise TypeError(WRONG_TYPE.format("an object", key, value))
    return value


def children(document: Document, key: str) -> list[Document]:
    """Return the list of objects at a key, an empty one when the key is absent."""
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise TypeError(WRONG_TYPE.format("a list of objects", key, value))
    return value


def text_members(document: Document, key: str) -> list[str]:
    """Return the list of strings at a key, an empty one when the key is absent."""
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise TypeError(WRONG_TYPE.format("a list of strings", key, value))
    return value


def text_map(document: Document, key: str) -> dict[str, str]:
    """Return the map of strings at a key, an empty one when the key is absent."""
    return {name: text_member(child(document, key), name) for name in child(document, key)}


def page_of(key: str, views: Sequence[Document], request: Document, most: int) -> Document:
    """Return the response of a list operation: at most MaxResults, by default `most`, from NextToken on."""
    first, size = int(text_member(request, "NextToken", "0")), whole(request, "MaxResults", most)
    more = {"NextToken": str(first + size)} if first + size < len(views) else {}
    return {key: [*views[first : first + size]], **more}
