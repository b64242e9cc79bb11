"""Dashboards and the budget of an environment."""
