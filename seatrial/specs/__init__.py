"""What a user writes: endpoint specs and environments, their words, bounds, defaults and rules."""
