"""The laptop: an embedded AWS and a real, small LLM engine, so that a deployment can be tried without an account."""
