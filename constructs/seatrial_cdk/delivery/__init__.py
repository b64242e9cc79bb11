"""Checks and delivery of an app: rule book, plain errors, pipeline."""
