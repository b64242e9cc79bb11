"""What real Chromium found in a page, read from the answer of a script beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
from pydantic import BaseModel

FOLDER = Path(__file__).parent
TIMEOUT_S = 300.0


class Shown(BaseModel):
    """One cell of a table: what people read, the exact number behind it, and the ends of its interval."""

    shown: str
    exact: str
    interval: list[str]


class Figure(BaseModel):
    """One chart: its size, what is drawn in it, the names that reach beyond its edge or overlap."""

    anchor: str
    label: str
    role: str
    width: float
    height: float
    curves: int
    points: int
    hollow: int
    bars: int
    marks: int
    labels: list[str]
    outside: list[str]
    overlapping: list[str]


class Look(BaseModel):
    """One page, as the browser has it."""

    version: str
    console: list[str]
    requests: list[str]
    failed: list[str]
    folded: bool
    decisive_px: int
    hover: list[str]
    downloads: dict[str, str]
    opened: bool
    figures: list[Figure]
    narrow_figures: list[Figure]
    tables: dict[str, list[list[Shown]]]
    headings: list[int]
    landmarks: list[str]
    sticky: float
    overflow: dict[str, list[str]]
    light: str
    dark: str
    pdf_pages: int
    accessibility: dict[str, list[str]]


class Unavailable(BaseModel):
    """Why there is no browser."""

    unavailable: str


class Learned(BaseModel):
    """What a page could learn of each answer to its requests: type, status and text, or the name of the error."""

    learned: list[str]


def look_at(page: Path) -> Look:
    """Open a page in Chromium; skip the test where none can start, but fail it in CI."""
    return Look.model_validate_json(_seen("look.mjs", str(page)))


def requests_of_a_page(address: str, requests: list[dict[str, object]]) -> list[str]:
    """Let a page in Chromium send requests and return what it could learn; skips and fails like `look_at`."""
    return Learned.model_validate_json(_seen("foreign.mjs", address, json.dumps(requests))).learned


def _seen(script: str, *arguments: str) -> str:
    if not (FOLDER / "node_modules" / "playwright-core").is_dir():
        _absent("the browser's packages are not installed: make test installs them")
    node = shutil.which("node")
    if node is None:
        _absent("node is not on PATH")
    done = subprocess.run(
        [node, script, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith('{"unavailable"'):
        _absent(Unavailable.model_validate_json(done.stdout).unavailable)
    return done.stdout


def _absent(because: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(because)
    pytest.skip(because)
