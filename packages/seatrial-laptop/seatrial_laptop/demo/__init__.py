"""The demonstration on a laptop: plan, deploy, trial, update, a failed trial rolled back, and nothing left."""
