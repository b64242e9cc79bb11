"""What each team runs, and what it costs."""
