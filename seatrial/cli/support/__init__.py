"""What several commands share: arguments, files, outputs, and the border to the terminal."""
