"""The wheel alone, with the lowest and the highest versions of what it needs; opt-in, since it downloads them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_library.sh"


@pytest.mark.skipif("SEATRIAL_ALL_VERSIONS" not in os.environ, reason="opt-in: SEATRIAL_ALL_VERSIONS=1")
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_the_examples_are_synthesized_with(resolution: str) -> None:
    ended = subprocess.run(["/bin/sh", SCRIPT, resolution], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count(": synthesized\n") == len([*(SCRIPT.parents[1] / "examples").glob("*/app.py")])
