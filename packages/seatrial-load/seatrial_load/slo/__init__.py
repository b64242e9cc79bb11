"""Levels held against objectives: evaluation, verdict, comparison with the last release."""
