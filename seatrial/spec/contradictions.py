"""Fields that exclude or need one another, looked up in the raw document so that they show beside other errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.spec.merge import Document
    from seatrial.spec.source import FieldPath, Yaml

# The shapes of hub and AWS credentials: Hugging Face user tokens, AWS access key ids.
_SECRET = re.compile(r"\bhf_[A-Za-z0-9]{20,}\b|\b(AKIA|ASIA)[A-Z0-9]{16}\b")


def contradictions(document: Document) -> Iterator[Problem]:
    """Yield every contradiction, missing file and plain-text secret of an endpoint's document."""
    for rule in _RULES:
        yield from rule(document)


def _value(document: Document, *path: str) -> Yaml:
    node: Yaml = document.data
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _given(document: Document, parent: str, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if _value(document, parent, name) is not None]


def _problem(document: Document, path: FieldPath, rule: str, message: str, hint: str) -> Problem:
    return Problem(document.where(path), document.field(path), rule, message, hint)


def _model_source(document: Document) -> Iterator[Problem]:
    if not isinstance(_value(document, "model"), dict):
        return
    given = _given(document, "model", ("hub_id", "s3_uri", "jumpstart_id"))
    if given == ["s3_uri", "jumpstart_id"]:
        return
    if not given:
        yield _problem(document, ("model",), "SEA106", "the model has no source", "give hub_id, s3_uri or jumpstart_id")
    if len(given) > 1:
        message = f"{' and '.join(given)} exclude each other"
        yield _problem(document, ("model", given[1]), "SEA108", message, "keep the source that is meant")


def _model_details(document: Document) -> Iterator[Problem]:
    revision, hub = _value(document, "model", "revision"), _value(document, "model", "hub_id")
    if revision is not None and hub is None:
        message = "a revision belongs to a hub_id, and there is none"
        yield _problem(document, ("model", "revision"), "SEA108", message, "remove it, or give the hub_id")
    jumpstart, eula = _value(document, "model", "jumpstart_id"), _value(document, "model", "accept_eula")
    if jumpstart is not None and eula is not True:
        message = f"the licence of {jumpstart} has not been accepted"
        yield _problem(document, ("model",), "SEA112", message, "read it, then write `accept_eula: true`")


def _traffic(document: Document) -> Iterator[Problem]:
    if not isinstance(_value(document, "workload"), dict):
        return
    given = _given(document, "workload", ("concurrency", "requests_per_second"))
    if not given:
        hint = "give concurrency or requests_per_second"
        yield _problem(document, ("workload",), "SEA106", "the workload has no traffic", hint)
    if len(given) > 1:
        message = "concurrency and requests_per_second exclude each other"
        hint = "keep one; the other follows by Little's law"
        yield _problem(document, ("workload", "requests_per_second"), "SEA108", message, hint)


def _copies(document: Document) -> Iterator[Problem]:
    low, high = _value(document, "scaling", "min_copies"), _value(document, "scaling", "max_copies")
    low, high = 1 if low is None else low, 1 if high is None else high
    if isinstance(low, int) and isinstance(high, int) and low > high:
        message = f"min_copies {low} exceeds max_copies {high}"
        path = ("scaling", "min_copies")
        yield _problem(document, path, "SEA108", message, f"set max_copies to at least {low}")


def _context(document: Document) -> Iterator[Problem]:
    lengths = [_value(document, "workload", name) for name in ("input_tokens", "output_tokens")]
    longest = _value(document, "serving", "overrides", "max_model_len")
    numbers = [value for value in (*lengths, longest) if isinstance(value, int)]
    if len(numbers) == len(lengths) + 1 and numbers[0] + numbers[1] > numbers[2]:
        message = f"max_model_len {numbers[2]} is below the workload's {numbers[0]} + {numbers[1]} tokens"
        hint = f"set it to at least {numbers[0] + numbers[1]}"
        yield _problem(document, ("serving", "overrides", "max_model_len"), "SEA108", message, hint)


def _files(document: Document) -> Iterator[Problem]:
    name = _value(document, "model", "config_file")
    if isinstance(name, str) and not (Path(document.path).parent / name).is_file():
        message = f"the file {name} does not exist"
        yield _problem(document, ("model", "config_file"), "SEA101", message, "the path is relative to the spec")


def _secrets(document: Document) -> Iterator[Problem]:
    for path, text in _strings(document.data, ()):
        if _SECRET.search(text):
            hint = "store it in Secrets Manager and give model.hub_token_secret; revoke this one"
            yield _problem(document, path, "SEA113", "this looks like a credential in plain text", hint)


def _strings(node: Yaml, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _strings(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _strings(value, (*path, index))


_RULES: tuple[Callable[[Document], Iterator[Problem]], ...] = (
    _model_source,
    _model_details,
    _traffic,
    _copies,
    _context,
    _files,
    _secrets,
)
