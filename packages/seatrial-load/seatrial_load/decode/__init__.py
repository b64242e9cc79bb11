"""Responses of an endpoint, from bytes to request records; each parser accepts any split."""
