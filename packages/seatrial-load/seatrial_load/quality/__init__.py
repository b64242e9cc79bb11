"""Answers to the prompts of an evaluation set, and what they are worth; it ships in the trial's function."""
