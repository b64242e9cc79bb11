"""What an update does to an endpoint that serves, and whether the account has room for it."""
