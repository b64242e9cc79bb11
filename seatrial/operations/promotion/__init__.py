"""The promotion of a tried plan to the next environment: the trial, what it proves, the plan that follows."""
