"""Two templates in which no rule finds anything: components that scale to zero, and an asynchronous endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from seatrial_lint.cloudformation.template import template_of
from seatrial_lint.template_rules.check import check_templates

if TYPE_CHECKING:
    from pydantic import JsonValue

    from seatrial_base.findings import Finding

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
DELETE = object()


def components() -> dict[str, JsonValue]:
    """Return a template of one endpoint with one component, in a copy of its own."""
    return _read("components")


def single() -> dict[str, JsonValue]:
    """Return a template of an asynchronous endpoint of one model, in a copy of its own."""
    return _read("single")


def _read(name: str) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
    return document


def changed(document: dict[str, JsonValue], path: str, value: object) -> dict[str, JsonValue]:
    """Return a template with another value at a dotted path below `Resources`; `DELETE` takes it away."""
    *above, last = path.split(".")
    at = cast("dict[str, object]", document["Resources"])
    for name in above:
        below = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
        at = cast("dict[str, object]", below)
    if value is DELETE:
        del at[last]
    else:
        at[last] = value
    return document


def found(*documents: dict[str, JsonValue], region: str | None = "us-east-1") -> tuple[Finding, ...]:
    """Return the findings of templates, called `0`, `1` and so on."""
    templates = {
        f"{number}": template_of(document, name=f"{number}", region=region or "")
        for number, document in enumerate(documents)
    }
    return check_templates(templates, region)
