"""The environment that another one is promoted from: it must exist, and the order must have a beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.specs.yaml_source import merge_environment, read_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.yaml_source import Document
    from seatrial_base.findings import Finding


_SOURCE = ("promotion", "source")


def source_problems(environments: Path, known: tuple[str, ...], name: str, document: Document) -> Iterator[Finding]:
    """Yield the source of an environment that has no file, or that is promoted, in the end, from the environment.

    Args:
        environments: The folder of environments.
        known: The names of those.
        name: The environment.
        document: Its document.
    """
    source = document.value(*_SOURCE)
    if not isinstance(source, str):
        return
    if source not in known:
        message = f"there is no environment {source}"
        hint = f"known environments: {', '.join(known) or 'none'} (in {environments.as_posix()})"
        yield document.problem(_SOURCE, "SEA109", message, hint)
        return
    order = _sources(environments, known, [name, source])
    if order[-1] == name:
        message = f"the promotion order is a cycle: {' → '.join(reversed(order))}"
        yield document.problem(_SOURCE, "SEA121", message, "leave out the source of the first environment")


def _sources(environments: Path, known: tuple[str, ...], order: list[str]) -> list[str]:
    """Return an environment with its source, the source's source and so on, up to the first that stands there twice."""
    while order[-1] not in order[:-1]:
        file = environments / f"{order[-1]}.yaml"
        before = merge_environment(read_source(file), None).value(*_SOURCE)
        if not isinstance(before, str) or before not in known:
            break
        order = [*order, before]
    return order
