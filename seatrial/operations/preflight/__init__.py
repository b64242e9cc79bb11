"""Asks an account, before a deployment, whether it has what the deployment needs."""
