"""Which options an engine really reads: LMI drops an unknown one without a word."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from seatrial_base.catalog.rows import nearest_names, read_rows


@dataclass(frozen=True, slots=True)
class KnownOptions:
    """The options of one build.

    Attributes:
        lmi: Number of the LMI build; `None` for the names that LMI reads in every build.
        vllm: The bundled vLLM whose engine arguments they are.
        options: Their names, without `option.`.
        source: Where they were read.
        date: When.
    """

    lmi: int | None
    vllm: str | None
    options: tuple[str, ...]
    source: str
    date: str


@cache
def all_known_options() -> tuple[KnownOptions, ...]:
    """Return all rows."""
    return read_rows("engine_options.json", KnownOptions)


def unknown(names: tuple[str, ...], lmi: int) -> dict[str, tuple[str, ...]]:
    """Return the names that an LMI build does not know, each with the nearest known; none for an unread build."""
    own, passed = (next((row for row in all_known_options() if row.lmi == number), None) for number in (None, lmi))
    if own is None or passed is None:
        return {}
    known = {*own.options, *passed.options}
    return {name: nearest_names(name, sorted(known)) for name in names if name not in known}


def bundled_vllm(lmi: int) -> str | None:
    """Return the vLLM version that an LMI build bundles; `None` when it was not read."""
    return next((row.vllm for row in all_known_options() if row.lmi == lmi), None)
