"""From request records to the numbers of a level."""
