"""Whether live endpoints are what their locks say; nothing is changed."""
