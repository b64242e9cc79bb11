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
        (("deploy", "ENV=prod"), 'cdk deploy --all -c "environment=prod"'),
        (("deploy", "ENV=prod", "CDK_ARGS=--concurrency 2"), 'cdk deploy --all -c "environment=prod" --concurrency 2'),
        (("deploy", "ENV=prod", "ENDPOINT=chat"), "seatrial deploy chat -e prod"),
        (("deploy", "ENV=prod", "ENDPOINT=chat", "CDK_ARGS=--force"), "seatrial deploy chat -e prod -- --force"),
    ],
)
def test_a_target_runs_its_command_for_its_environment(arguments: tuple[str, ...], command: str) -> None:
    last = run_make(ROOT, "--dry-run", *arguments).stdout.splitlines()[-1]
    assert " ".join(last.split()) == f".venv/bin/{command}"
