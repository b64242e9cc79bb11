"""The scaling of copies and instances."""
