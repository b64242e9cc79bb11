"""Texts with the place of each value: JSON and YAML."""
