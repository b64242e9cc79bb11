"""Where more load stops paying, and the scaling target that follows."""
