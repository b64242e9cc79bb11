from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.engines.render import render
from seatrial.locks.lock_file import read_locked_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import RenderError

ROOT = Path(__file__).parents[2]
NAME = "lmi/serving.properties.j2"


def rendered(own: Path | None) -> dict[str, str]:
    loaded = load_spec(
        ROOT / "examples/one_endpoint/chat.yaml", "dev", environments=ROOT / "examples/one_endpoint/environments"
    )
    return dict(render(loaded, read_locked_plan(loaded), templates=own).files)


def written(folder: Path, text: str, name: str = NAME) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_file_of_ones_own_is_read_in_place_of_ours(tmp_path: Path) -> None:
    own = written(tmp_path, '{% include "_team.txt" %}{% for key, text in pairs %}{{ key }}={{ text }}\n{% endfor %}')
    written(tmp_path, "# of our team\n", "_team.txt")
    before, after = rendered(None)["serving.properties"], rendered(own)["serving.properties"]
    assert after.startswith("# of our team\n")
    assert [line.partition("=")[0] for line in before.splitlines() if not line.startswith("#")] == [
        line.partition("=")[0] for line in after.splitlines() if not line.startswith("#")
    ]


def test_an_empty_folder_overrides_nothing(tmp_path: Path) -> None:
    assert rendered(tmp_path) == rendered(None)


@pytest.mark.parametrize(
    ("text", "line"), [("one\n{{ unknown }}\n", 2), ("{% for %}", 1), ("\n\n{{ header + 1 }}", 3), ("{{ 1 / 0 }}", 1)]
)
def test_one_that_breaks_is_told_with_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    own = written(tmp_path, text)
    with pytest.raises(RenderError) as refused:
        rendered(own)
    (problem,) = refused.value.problems
    assert (problem.rule, problem.where) == ("SEA301", f"{(own / NAME).as_posix()}:{line}")


def test_every_file_that_overrides_nothing_is_told(tmp_path: Path) -> None:
    written(written(tmp_path, "", "lmi/serving.properties"), "", "tgi/env.j2")
    written(tmp_path, "", "README.md")
    with pytest.raises(RenderError) as refused:
        rendered(tmp_path)
    assert [(problem.rule, problem.where) for problem in refused.value.problems] == [
        ("SEA301", (tmp_path / name).as_posix()) for name in ("lmi/serving.properties", "tgi/env.j2")
    ]


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="SEA301: there is no such folder"):
        rendered(tmp_path / "none")
