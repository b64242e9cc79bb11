"""Reads serving configurations that people already have, and says what their container makes of each key."""
