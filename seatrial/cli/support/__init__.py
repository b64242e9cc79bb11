"""Arguments, files, outputs and the border to the terminal, for several commands."""
