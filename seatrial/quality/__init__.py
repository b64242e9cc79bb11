"""Quality of two recipes: what their answers to an evaluation set are worth, and whether the difference is real."""
