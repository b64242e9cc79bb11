"""Seatrial: infrastructure as code for LLM endpoints on Amazon SageMaker.

The flow is load, plan, lock, render, synth, bench, gate, report; each stage is a package of its own and each hands
the next a frozen document. Nothing is imported here: this package also ships in a Lambda function.
"""

__version__ = "0.1.0"
