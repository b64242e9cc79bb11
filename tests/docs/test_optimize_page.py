"""The table of recipes in the how-to is what the command shows."""

from __future__ import annotations

import os
import re
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from seatrial.planner.comparisons import recipe_rows
from seatrial.report.terminal.alternatives import first_recipes_view
from seatrial.specs.load import load_spec

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "optimize.md"
SPEC = re.compile(r"```yaml\n(name: chat\n.*?)```", re.DOTALL)
MARKED = re.compile(r"(<!-- begin recipes: .*? -->\n)(.*?)(<!-- end recipes -->)", re.DOTALL)
WIDTH = 100


def test_the_table_of_recipes_is_what_the_command_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    spec, marked = SPEC.search(text), MARKED.search(text)
    assert spec is not None
    assert marked is not None
    monkeypatch.chdir(tmp_path)
    Path("environments").mkdir()
    Path("environments/dev.yaml").write_text("name: dev\nregion: us-east-1\n", encoding="utf-8")
    Path("chat.yaml").write_text(spec[1], encoding="utf-8")
    loaded = load_spec(Path("chat.yaml"), "dev", environments=Path("environments"))

    shown = Console(file=StringIO(), width=WIDTH)
    shown.print(first_recipes_view(recipe_rows(loaded), "Recipes for chat in dev"))
    assert isinstance(shown.file, StringIO)
    lines = "".join(f"{line.rstrip()}\n" for line in shown.file.getvalue().splitlines())
    expected = f"\n```\n{lines}```\n\n"

    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(MARKED.sub(lambda found: found[1] + expected + found[3], text), encoding="utf-8")
        return
    assert marked[2] == expected
