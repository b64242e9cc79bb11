"""Input of one stack's synthesis: spec, locked plan, serving configuration and trial, checked together."""
