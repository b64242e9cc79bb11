"""What the tests of a lock share with those of the planner that made it."""

from tests.planner.conftest import ask

__all__ = ["ask"]
