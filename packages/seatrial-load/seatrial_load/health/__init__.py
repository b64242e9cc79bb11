"""The health of the client: whether a level measured the endpoint or its own client."""
