"""Errors, findings, rules and facts that every package of Seatrial shares."""

__version__ = "0.1.0"
