"""A folder of weights as the hub has them: its `config.json`, and the index that tells their size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_base.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: Final = "config.json"
_INDEX: Final = "model.safetensors.index.json"
_SPECS: Final = ("*.yaml", "*.yml")
_EMBEDS: Final = "modules.json"  # of sentence-transformers, whose models give embeddings


def is_weights_folder(path: Path) -> bool:
    """Tell whether a path is a folder with a `config.json` and without specs."""
    return (path / CONFIG).is_file() and not any(any(path.glob(each)) for each in _SPECS)


def gives_embeddings(folder: Path) -> bool:
    """Tell whether a folder holds a model of sentence-transformers, which generates no text."""
    return (folder / _EMBEDS).is_file()


def indexed_bytes(folder: Path) -> int | None:
    """Return the size of the weights by the index of their shards, in bytes; `None` without a readable index."""
    try:
        index = json.loads(read_text(folder / _INDEX))
    except (OSError, ValueError):
        return None
    metadata = index.get("metadata") if isinstance(index, dict) else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return size if isinstance(size, int) and size > 0 else None
