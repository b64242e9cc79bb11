"""`python -m seatrial.cli`."""

from seatrial.cli import main

main()
