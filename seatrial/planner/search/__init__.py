"""The search for a deployment: candidates, what each can take, and which is best."""
