"""Guard rails: what an environment may state, what a spec breaks of it, and what they are held against."""
