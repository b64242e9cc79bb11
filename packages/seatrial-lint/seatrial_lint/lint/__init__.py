"""Reads serving configurations that users already have, and says what their container makes of each key."""
