"""What the terminal shows of plans: tables, sentences, and one plot drawn with characters."""
