"""Levels compared with objectives: evaluation, verdict, comparison with the last release."""
