"""An archive made at synth, as the file that CDK wants to stage."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def archive_file(name: str, content: bytes) -> Iterator[str]:
    """Write an archive to a temporary file and return its path; inside the block CDK must have staged its copy."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield str(path)
