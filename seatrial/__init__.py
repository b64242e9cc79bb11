"""Seatrial: infrastructure as code for LLM endpoints on Amazon SageMaker.

The flow is load, plan, lock, render, synth, bench, gate, report; each stage is a package of its own and each hands
the next a frozen document.
"""

from seatrial_base import __version__

__all__ = ["__version__"]
