"""Stacks: they create constructs and connect them, nothing else."""
