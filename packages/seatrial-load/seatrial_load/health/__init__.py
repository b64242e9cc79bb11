"""Whether a level measured the endpoint or its own client."""
