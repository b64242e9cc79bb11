"""Spellings of the engines' options: read, converted, written."""
