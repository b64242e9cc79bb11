"""What several tests read of the documentation: its pages, their code, their headings."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "ARCHITECTURE.md")
PAGES = tuple(sorted([*map(ROOT.joinpath, ROOT_PAGES), *DOCS.rglob("*.md")]))


@pytest.fixture(params=PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path
