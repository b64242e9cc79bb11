"""Copies a model's files to S3, pinned and checked, so that an isolated endpoint needs no hub."""
