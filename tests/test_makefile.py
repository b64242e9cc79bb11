"""The targets that deploy: which command they run, and what they say without an environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.make import run_make

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("target", ["synth", "diff", "deploy"])
def test_an_environment_must_be_named(target: str) -> None:
    done = run_make(ROOT, target)
    first, *rest = done.stderr.splitlines()
    assert (done.returncode, first, done.stdout) == (2, f"name the environment: make {target} ENV=prod", "")
    assert all(line.startswith("make: ***") for line in rest)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("synth", "ENV=dev"), 'cdk synth --quiet -c "environment=dev"'),
        (("diff", "ENV=prod", "ENDPOINT=chat"), 'cdk diff -c "environment=prod" -c "endpoint=chat"'),
        (("deploy", "ENV=prod"), "seatrial deploy endpoints -e prod"),
        (("deploy", "ENV=prod", "CDK_ARGS=--concurrency 2"), "seatrial deploy endpoints -e prod -- --concurrency 2"),
        (("deploy", "ENV=prod", "ENDPOINT=chat"), "seatrial deploy chat -e prod"),
        (("deploy", "ENV=prod", "ENDPOINT=chat", "CDK_ARGS=--force"), "seatrial deploy chat -e prod -- --force"),
    ],
)
def test_a_target_runs_its_command_for_its_environment(arguments: tuple[str, ...], command: str) -> None:
    last = run_make(ROOT, "--dry-run", *arguments).stdout.splitlines()[-1]
    assert " ".join(last.split()) == f".venv/bin/{command}"


def test_another_python_than_that_of_the_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    for python, version in ((".venv/bin/python", "3.11.7"), ("other", "3.13.0")):
        (tmp_path / python).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / python).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / python).chmod(0o755)
    done = run_make(tmp_path, "--dry-run", "test", "PYTHON=./other")
    told = ".venv has Python 3.11.7, ./other is 3.13.0: give another environment (VENV=.venv-other), or make clean"
    assert (done.returncode, told in done.stderr) == (2, True)
    assert run_make(tmp_path, "--dry-run", "clean", "PYTHON=./other").returncode == 0
    assert told not in run_make(tmp_path, "--dry-run", "test", "PYTHON=.venv/bin/python").stderr
    assert told not in run_make(tmp_path, "--dry-run", "test", "PYTHON=./other", "VENV=.venv-other").stderr
