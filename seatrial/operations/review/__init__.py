"""Everything that a change of the repository does: every endpoint in every environment, against another revision."""
