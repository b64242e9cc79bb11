"""The trial from start to end: preflight, steps, finalize."""
