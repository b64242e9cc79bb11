"""Messages of containers and SageMaker when an endpoint fails, and their meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from seatrial_base.catalog.rows import CatalogTable

# Rules of the causes by which AWS has no instance to give, the account may have no more, or no instance has room.
LACK_OF_CAPACITY: Final = ("SEA752", "SEA753")


@dataclass(frozen=True, slots=True)
class Symptom:
    """A text that tells a cause.

    Attributes:
        pattern: Regular expression of the text, whatever its case.
        cause: What is wrong, as a sentence.
        mend: How to fix it, as an imperative.
    """

    name: str
    rule: str
    pattern: str
    cause: str
    mend: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class SymptomFound:
    """A symptom, and the line in which it is."""

    symptom: Symptom
    line: str


# The more a text says, the earlier it comes.
SYMPTOMS: Final = CatalogTable(Symptom, "symptoms.json")


def find_symptom(lines: tuple[str, ...]) -> SymptomFound | None:
    """Return the first symptom that a line has, with the last such line; None when no line has one."""
    for symptom in SYMPTOMS.rows:
        pattern = _compiled(symptom.pattern)
        for line in reversed(lines):
            if pattern.search(line):
                return SymptomFound(symptom, line.strip())
    return None


def is_lack_of_capacity(reason: str) -> bool:
    """Return whether a failure says that no instance has room for a copy, or that the account may have no more."""
    symptom = find_symptom(tuple(reason.splitlines()))
    return symptom is not None and symptom.symptom.rule in LACK_OF_CAPACITY


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
