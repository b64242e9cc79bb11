"""What follows from the chosen deployment: placement, batching, timeouts, limits and warnings."""
