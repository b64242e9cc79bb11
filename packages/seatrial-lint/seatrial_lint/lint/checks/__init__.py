"""The rules' own code: one file for each kind of question."""
