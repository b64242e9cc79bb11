"""What every package of Seatrial shares: errors, findings, rules and facts."""

__version__ = "0.1.0"
