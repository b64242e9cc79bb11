"""Where the lock of a spec lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def lock_path(spec_path: Path) -> Path:
    """Return the lock of a spec: `chat.yaml` has `chat.lock.json`."""
    return spec_path.with_name(f"{spec_path.stem}.lock.json")
