"""What runs in the function."""
