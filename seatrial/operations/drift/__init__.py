"""Live endpoints compared with their locks; nothing is changed."""
