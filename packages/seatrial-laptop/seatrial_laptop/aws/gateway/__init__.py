"""The HTTP border of the embedded AWS: signatures, access, and which service answers."""
