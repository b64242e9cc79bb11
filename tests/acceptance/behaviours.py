"""What the embedded AWS does, row by row: whether it is executed, taken from a document, or assumed, and what shows it.

The table is read by the pages about the embedded AWS and by tests; `behaviours.json` holds it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from seatrial_base.catalog.rows import read_row

FILE: Final = Path(__file__).with_name("behaviours.json")
API: Final = "api:"
"""How the source of what an API reference tells begins: `api:SERVICE:NAME`, an operation or a structure."""
QUESTION: Final = "question:"
KINDS: Final = ("executed", "document", "assumed")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One thing that the embedded AWS does.

    Attributes:
        subject: What it is of.
        behaviour: What it does.
        kind: `executed`: the real thing runs; `document`: as a document of AWS says; `assumed`: nobody knows.
        source: The document: an address, or names of an API reference; with `assumed` a report, or empty.
        test: The test that shows it, as pytest names it.
        covers: Operations, resource types and settings of the control interface that it is about, and the questions
            whose answers it is taken for, as `question:NAME`.
    """

    subject: str
    behaviour: str
    kind: Literal["executed", "document", "assumed"]
    source: str
    test: str
    covers: tuple[str, ...]


@cache
def behaviours() -> tuple[Behaviour, ...]:
    """Return the table."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))["rows"]
    return tuple(read_row(Behaviour, row) for row in rows)


def api_names(behaviour: Behaviour) -> tuple[tuple[str, str], ...]:
    """Return the services and names of API references that a behaviour is taken from."""
    named = (part.removeprefix(API) for part in behaviour.source.split(", ") if part.startswith(API))
    return tuple((service, name) for service, _, name in (each.partition(":") for each in named))
