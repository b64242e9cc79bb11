"""`seatrial compare` as a user runs it: two stored results, and a spec up to where it asks AWS."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.quality.recipe_result import keep_recipe_result
from tests.cli.conftest import SPECS, files
from tests.cli.test_images import NOBODY
from tests.cli.test_preflight import account
from tests.quality.conftest import measured

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

SPEC = SPECS[1]
ON_DEV = ("compare", SPEC, "none", "kv_fp8", "-e", "dev")


@pytest.fixture
def stored(project: Path) -> list[str]:
    """Keep a recipe, a worse one and one that is as good; without references, which need a library's slow import."""
    results = [measured("none", 40), measured("awq", 40, tok_s=200.0), measured("fp8", 40, tok_s=150.0)]
    prompts = tuple(replace(prompt, reference=None) for prompt in results[0].prompts)
    results = [replace(each, prompts=prompts) for each in results]
    unsure = tuple(replace(each, log_probabilities=(-1.0, -1.0)) for each in results[1].answers)
    results[1] = replace(results[1], answers=unsure)
    return [keep_recipe_result(project / "results", each).relative_to(project).as_posix() for each in results]


def test_two_stored_results_are_compared(seatrial: Seatrial, stored: list[str], project: Path) -> None:
    done = seatrial("compare", stored[0], stored[2], "--format", "json", "--output", "out")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["a"]["recipe"], told["b"]["recipe"], told["accepted"]) == ("none", "fp8", True)
    assert told["figures"][0]["ratio"] == 1.5
    assert json.loads((project / "out" / "comparison.json").read_text()) == told
    assert (project / "out" / "sheet.html").is_file()


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_worse_recipe_exits_with_1(seatrial: Seatrial, stored: list[str], form: str) -> None:
    done = seatrial("compare", *stored[:2], "--format", form)
    assert (done.returncode, done.stderr) == (1, "")
    assert "awq serves 2.00 times the output tokens per second of none" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("compare", SPEC), "SEA532"),
        (("compare", SPEC, "none", "awq", "fp8", "-e", "dev"), "SEA532"),
        (("compare", SPEC, "none", "fp8"), "SEA532"),
        (("compare", "a.json", "b.json", "--again"), "SEA532"),
        (("compare", SPEC, "fp8+kv_fp8", "kv_fp8+fp8", "-e", "dev"), "SEA532"),
        (("compare", SPEC, "none", "fp9", "-e", "dev"), "SEA104"),
        (("compare", "a.json", "b.json"), "SEA529"),
        ((*ON_DEV, "--on", "g5"), "SEA524"),
        ((*ON_DEV, "--evaluation-set", "none.jsonl"), "SEA527"),
        ((*ON_DEV, "--max-tokens", "0"), "--max-tokens"),
    ],
)
def test_what_can_not_be_compared_is_refused(
    seatrial: Seatrial, project: Path, arguments: tuple[str, ...], rule: str
) -> None:
    done = seatrial(*arguments, env=NOBODY)
    assert done.returncode == 2
    assert rule in done.stderr
    assert not list(project.rglob("*.recipe.json"))


def test_the_cost_is_told_and_needs_a_confirmation(seatrial: Seatrial, project: Path) -> None:
    (project / "cdk.json").write_text('{"app": "python app.py"}')
    with account({}) as env:
        done = seatrial(*ON_DEV, env=env)
    assert (done.returncode, "SEA526" in done.stderr) == (2, True)
    assert done.stdout.splitlines()[-1].startswith("cost of the comparison: up to $")


def test_an_output_never_replaces_a_result(seatrial: Seatrial, stored: list[str], project: Path) -> None:
    (project / stored[0]).rename(project / "results" / "comparison.json")
    before = files(project)
    done = seatrial("compare", "results/comparison.json", stored[1], "--output", "results")
    assert (done.returncode, "SEA514" in done.stderr) == (2, True)
    assert files(project) == before


def test_results_of_other_sets_are_not_compared(seatrial: Seatrial, project: Path) -> None:
    other = replace(measured("awq", 5), evaluation_set="x")
    paths = [keep_recipe_result(project, each).name for each in (measured("none", 5), other)]
    done = seatrial("compare", *paths)
    assert (done.returncode, "SEA531" in done.stderr) == (2, True)
