"""Turns a clause of a result into a sentence of the report."""

from __future__ import annotations


def sentence(clause: str) -> str:
    """Return a clause as a sentence: its first letter raised, unless it is a metric's name, and a full stop.

    Of nothing it makes nothing.
    """
    named = "_" in clause.partition(" ")[0]
    return f"{clause[:1] if named else clause[:1].upper()}{clause[1:].rstrip('.')}." if clause else ""
