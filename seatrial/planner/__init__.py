"""From what is asked to what is deployed, and why."""
