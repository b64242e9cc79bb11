"""A function that splits requests over components, for callers without the client."""
