"""Renews tables of the catalog from what publishes their facts; `scripts/renew.py` is the command."""
