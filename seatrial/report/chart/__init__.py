"""A small SVG writer: panels of curves over concurrency."""
