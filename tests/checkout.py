"""A checkout of the repository, as a user has one: what is committed and what would be."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def copy_repository(folder: Path) -> Path:
    """Copy the repository's files into a folder, with what Python has compiled of them; return the folder."""
    git = shutil.which("git")
    assert git, "git is needed to tell the repository's files"
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        compiled = cache_from_source(name) if name.endswith(".py") else name
        for each in {name, compiled}:
            if (ROOT / each).is_file():
                (folder / each).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / each, folder / each)  # with its time, by which Python knows what it compiled
    return folder
