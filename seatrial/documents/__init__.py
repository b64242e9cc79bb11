"""Documents between makers and readers: frozen data, read and written, without behaviour."""
