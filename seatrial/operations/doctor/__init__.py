"""Explains a stuck or failed endpoint, and unsticks it in order."""
