"""What an endpoint answers, from bytes to request records; each parser accepts any split."""
