"""Accelerators: what a data sheet says of the chip alone, whatever instance it is in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from seatrial_base.catalog.rows import read_rows


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One GPU, or one NeuronCore.

    Attributes:
        name: As the instances name it.
        multiprocessors: Streaming multiprocessors (SMs); 1 for a NeuronCore.
        flops_4bit: Dense operations per second with 4-bit operands; `None` where it has no such arithmetic.
        source: Where it was read.
        date: When.
    """

    name: str
    multiprocessors: int
    flops_4bit: int | None
    source: str
    date: str


def multiprocessors(name: str) -> int:
    """Return the streaming multiprocessors of an accelerator.

    Raises:
        KeyError: When the catalog lacks it; a test keeps every accelerator of the instances in it.
    """
    return _by_name()[name].multiprocessors


def flops_4bit(name: str) -> int | None:
    """Return the operations per second with 4-bit operands; `None` without such arithmetic."""
    return _by_name()[name].flops_4bit


@cache
def all_accelerators() -> tuple[Accelerator, ...]:
    """Return every accelerator of the catalog."""
    return read_rows("accelerators.json", Accelerator)


@cache
def _by_name() -> dict[str, Accelerator]:
    return {accelerator.name: accelerator for accelerator in all_accelerators()}
