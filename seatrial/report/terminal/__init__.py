"""Plans and trials on a terminal: tables, sentences, and one plot drawn with characters."""
