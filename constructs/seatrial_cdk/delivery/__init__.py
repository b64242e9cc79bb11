"""How an app is checked and delivered: rule book, plain errors, pipeline."""
