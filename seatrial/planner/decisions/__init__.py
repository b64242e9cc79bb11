"""Decisions that follow from the chosen deployment: placement, batching, timeouts, limits and warnings."""
