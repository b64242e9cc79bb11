"""The load client: event loop, connections, arrivals, retries, and the processes that share a load."""
