"""Answers to the prompts of an evaluation set, and their scores; it ships in the trial's function."""
