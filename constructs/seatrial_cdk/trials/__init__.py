"""The sea trial: its custom resources in an endpoint's stack, and the environment's service."""
