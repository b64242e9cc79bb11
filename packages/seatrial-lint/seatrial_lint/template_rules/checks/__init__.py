"""The checks of the rule book: one file per kind of resource."""
