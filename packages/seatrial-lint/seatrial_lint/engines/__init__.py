"""How engines spell their options: read, converted, written."""
