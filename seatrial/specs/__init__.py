"""Endpoint specs and environments as users write them: their words, bounds, defaults and rules."""
