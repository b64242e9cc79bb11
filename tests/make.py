"""Make, as a user starts it: not as a part of the `make test` that runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_OF_THE_CALLER = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "ENV", "ENDPOINT"}


def run_make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder."""
    make = shutil.which("make")
    assert make is not None
    variables = {name: value for name, value in os.environ.items() if name not in _OF_THE_CALLER}
    return subprocess.run([make, *arguments], cwd=folder, env=variables, capture_output=True, text=True, check=False)
