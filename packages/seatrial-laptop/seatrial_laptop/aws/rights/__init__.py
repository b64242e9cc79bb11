"""Rights: who calls, what a call needs, and whether the caller's policies allow it."""
