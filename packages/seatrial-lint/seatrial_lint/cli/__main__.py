"""`python -m seatrial_lint.cli`."""

from seatrial_lint.cli import main

main()
