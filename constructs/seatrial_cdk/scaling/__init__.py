"""How copies and instances are scaled."""
