"""Where the local mode keeps what outlives it."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder of cached weights: `$XDG_CACHE_HOME/seatrial`, by default `~/.cache/seatrial`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seatrial"
