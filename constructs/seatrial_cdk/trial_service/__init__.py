"""The trial service of an environment: its function, its workflow, its bucket and its permissions."""
