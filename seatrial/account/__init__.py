"""The one way to AWS: calls, errors, pages, and what an account holds."""
