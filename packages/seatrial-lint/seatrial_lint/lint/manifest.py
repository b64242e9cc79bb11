"""Reads the containers of docker-compose files and Kubernetes manifests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_lint.lint.literal import scalar_text
from seatrial_lint.lint.source import ConfigSource, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_lint.text.json_text import Node

_INTERPOLATED = re.compile(r"(?<!\$)\$(?:\{|\(|[A-Za-z_])")  # `${NAME}` and `$NAME` of compose, `$(NAME)` of Kubernetes
_ARGUMENTS = ("command", "args", "entrypoint")


def is_manifest(root: Node) -> bool:
    """Say whether a document is a docker-compose file or a Kubernetes object."""
    return root.member("services") is not None or (
        root.member("apiVersion") is not None and root.member("kind") is not None
    )


def read_manifest(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers of a document that have an image and an environment."""
    services = root.member("services")
    written = (one.node for one in services.members()) if services else _containers(root)
    for node in written:
        environment = node.member("environment") or node.member("env")
        if environment is None:
            continue
        image = node.member("image")
        text = scalar_text(image) if image else None
        facts = {"image": SourceEntry("image", text, image.line, "env")} if image and text and _is_known(text) else {}
        taken = next((name for name in _ARGUMENTS if node.member(name) is not None), "")
        yield ConfigSource(
            file,
            "container manifest",
            tuple(_variables(environment)),
            facts,
            is_json=True,
            line=node.line,
            is_fixable=False,
            is_partial=True,  # the image, files and arguments may give more
            unread=f"its {taken} is not read" if taken else "",
        )


def _containers(root: Node) -> Iterator[Node]:
    """Yield the containers of a pod, wherever its template stands."""
    for name, inner in ((one.name, one.node) for one in root.members()):
        if name == "containers":
            yield from (one for one in inner.items() if one.is_object)
        elif name in ("spec", "template", "jobTemplate", "predictor", "model", "items"):
            for one in (inner, *inner.items()):
                yield from _containers(one)


def _variables(environment: Node) -> Iterator[SourceEntry]:
    for one in environment.members():
        value = scalar_text(one.node)
        yield SourceEntry(one.name, value or "", one.line, "env", is_known=value is not None and _is_known(value))
    for node in environment.items():
        if (pair := node.text()) is not None:
            name, equals, value = pair.partition("=")
            yield SourceEntry(name, value, node.line, "env", is_known=bool(equals) and _is_known(value))
        else:
            yield from _named_variable(node)


def _named_variable(node: Node) -> Iterator[SourceEntry]:
    """Yield the variable of a mapping with `name` and `value`, as Kubernetes writes one."""
    name_node, value_node = node.member("name"), node.member("value")
    text = scalar_text(value_node) if value_node else None
    if name_node is not None and (name := name_node.text() or ""):
        yield SourceEntry(name, text or "", node.line, "env", is_known=text is not None and _is_known(text))


def _is_known(value: str) -> bool:
    return _INTERPOLATED.search(value) is None
