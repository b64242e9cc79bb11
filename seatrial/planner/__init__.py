"""From requirements to a deployment, and why."""
