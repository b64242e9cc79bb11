"""One range of Pythons: of the classifiers, the documentation, the workflows, and what functions run on."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from scripts.other_pythons import QUICK, main, python_of, supported
from seatrial.repository.write import NEWEST_PYTHON, OLDEST_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PROJECTS = (ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml")))
LEAST = "3.11.4"
"""The first with filters for archives (`tarfile`, `filter="data"`)."""
PAGES = ("README.md", "CONTRIBUTING.md", "docs/start/install.md", "docs/start/laptop.md")
SOURCES = (
    "seatrial",
    "constructs",
    "stacks",
    *(f"packages/{each.parent.name}/{each.parent.name.replace('-', '_')}" for each in PROJECTS[1:]),
)


def project(file: Path) -> dict[str, object]:
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]  # type: ignore[no-any-return]  # TOML


@pytest.mark.parametrize("file", PROJECTS, ids=lambda file: file.parent.name)
def test_every_package_names_the_same_range(file: Path) -> None:
    declared = project(file)
    classifiers = declared["classifiers"]
    assert isinstance(classifiers, list)
    named = [line.rpartition(" ")[2] for line in classifiers if line.startswith("Programming Language :: Python ::")]
    assert (declared["requires-python"], named) == (f">={LEAST}", list(supported()))


def test_the_range_has_no_hole() -> None:
    minors = [int(each.partition(".")[2]) for each in supported()]
    assert minors == [*range(int(LEAST.split(".")[1]), minors[-1] + 1)]


def test_it_runs_on_a_python_that_is_named() -> None:
    assert f"3.{sys.version_info.minor}" in supported()


@pytest.mark.parametrize("page", PAGES)
def test_the_documentation_names_it(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert f"Python {LEAST} or newer" in text


def test_the_page_of_the_installation_names_what_is_tested() -> None:
    text = " ".join((ROOT / "docs/start/install.md").read_text(encoding="utf-8").split())
    assert f"tested with {supported()[0]} to {supported()[-1]}" in text


def test_the_installation_refuses_an_older_one() -> None:
    assert f"sys.version_info < ({LEAST.replace('.', ', ')})" in (ROOT / "scripts" / "install.sh").read_text()


def test_workflows_run_both_ends() -> None:
    assert (supported()[0], supported()[-1]) == (OLDEST_PYTHON, NEWEST_PYTHON)


def test_what_runs_on_one_python_runs_on_one_that_is_named() -> None:
    action = yaml.safe_load((ROOT / "lint-action" / "action.yml").read_text(encoding="utf-8"))
    setup, *_ = action["runs"]["steps"]
    pipeline = (ROOT / "constructs/seatrial_cdk/delivery/delivery_pipeline.py").read_text(encoding="utf-8")
    functions = {
        name.replace("_", ".")
        for path in sorted((ROOT / "constructs").rglob("*.py"))
        for name in re.findall(r"Runtime\.PYTHON_(\d_\d+)", path.read_text(encoding="utf-8"))
    }
    built = re.findall(r'^PYTHON: Final = "(.+)"$', pipeline, re.MULTILINE)
    assert len(functions) == len(built) == 1
    assert {setup["with"]["python-version"], *functions, *built} <= set(supported())


def calls(path: Path) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))


def test_links_are_followed_in_one_place() -> None:
    """`Path.resolve` tells a link to itself in another way on each Python; `follow_links` does not."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*.py"))
        for call in calls(path)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "resolve"
        and not call.args
        and ast.unparse(call.func.value) != "Path(__file__)"
    ]
    assert found == []


def interpreter(path: Path, prints: str, exit_code: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\nexit {exit_code}\n")
    path.chmod(0o755)


class TestOtherPythons:
    def test_a_shim_that_runs_nothing_is_passed_over(self, tmp_path: Path) -> None:
        interpreter(tmp_path / "shims" / "python3.13", "pyenv: python3.13: command not found", 127)
        made = tmp_path / "pyenv" / "versions"
        for patch in ("3.13.9", "3.13.10"):
            interpreter(made / patch / "bin" / "python3.13", patch)
        variables = {"PATH": f"{tmp_path / 'shims'}:/usr/bin:/bin", "PYENV_ROOT": f"{tmp_path / 'pyenv'}"}
        assert python_of("3.13", variables) == (made / "3.13.10" / "bin" / "python3.13", "3.13.10")

    def test_one_of_uv_is_used(self, tmp_path: Path) -> None:
        path = tmp_path / ".local/share/uv/python/cpython-3.98.2-linux-x86_64-gnu/bin/python3.98"
        interpreter(path, "3.98.2")
        assert python_of("3.98", {"PATH": "/usr/bin:/bin", "HOME": f"{tmp_path}"}) == (path, "3.98.2")

    def test_another_version_than_its_name_says_is_passed_over(self, tmp_path: Path) -> None:
        interpreter(tmp_path / "python3.98", "3.11.7")
        assert python_of("3.98", {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": f"{tmp_path}"}) is None

    def test_none_is_told_and_no_failure(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("scripts.other_pythons.python_of", lambda _minor: None)
        monkeypatch.setattr(sys, "argv", ["other_pythons.py"])
        assert main() == 0
        others = ", ".join(minor for minor in reversed(supported()) if minor != f"3.{sys.version_info.minor}")
        assert capsys.readouterr().out == f"no other Python here: neither PATH, pyenv nor uv has {others}\n"

    @pytest.mark.parametrize(("codes", "code"), [((0, 0), 0), ((0, 2), 1), ((1, 0), 1)])
    def test_a_failure_on_one_of_them_is_one(
        self, codes: tuple[int, int], code: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = iter(codes)
        here = [minor for minor in supported() if minor != f"3.{sys.version_info.minor}"][:2]
        monkeypatch.setattr(
            "scripts.other_pythons.python_of", lambda minor: (Path(minor), minor) if minor in here else None
        )
        monkeypatch.setattr("scripts.other_pythons.run_quick_part", lambda *_: next(left))
        monkeypatch.setattr(sys, "argv", ["other_pythons.py"])
        assert (main(), list(left)) == (code, [])

    def test_what_it_runs_is_there(self) -> None:
        assert [part for part in QUICK if not (ROOT / part.partition("::")[0]).exists()] == []

    def test_the_gate_runs_it(self) -> None:
        assert "make test-pythons" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
