"""Optimization jobs: their service, and their artifacts in an endpoint's stack."""
