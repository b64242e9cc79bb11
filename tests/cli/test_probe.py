"""`seatrial probe` as a user runs it, up to where it asks AWS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SPECS, files
from tests.cli.test_images import NOBODY
from tests.cli.test_preflight import account

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

SPEC = SPECS[1]
ON_DEV = ("probe", SPEC, "-e", "dev")


@pytest.fixture
def locked(seatrial: Seatrial, project: Path) -> Path:
    """Lock plans whose price does not decide, so that none is in doubt."""
    text = (project / SPEC).read_text()
    assert "objective: cost" in text
    (project / SPEC).write_text(text.replace("objective: cost", "objective: latency"))
    (project / "cdk.json").write_text('{"app": "python app.py"}')
    for environment in ("dev", "local"):
        done = seatrial("plan", SPEC, "-e", environment, "--write", "--format", "json")
        assert done.returncode == 0, done.stderr
    return project


def test_a_plan_that_is_not_in_doubt_is_not_probed(seatrial: Seatrial, locked: Path) -> None:
    before = files(locked)
    done = seatrial(*ON_DEV)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The plan is not in doubt: ")
    assert {name: text for name, text in files(locked).items() if not name.endswith(".lock")} == before


@pytest.mark.parametrize(
    ("arguments", "rule", "code"),
    [
        (("--candidate", "g5"), "SEA524", 2),
        (("--candidate", "ml.nope9.large:1"), "SEA110", 2),
        (("--component", "x"), "needs --endpoint", 2),
        (("--level", "0"), "--level", 2),
        (("--level", "5000"), "--level", 2),
    ],
)
def test_what_can_not_be_probed_is_refused(
    seatrial: Seatrial, locked: Path, arguments: tuple[str, ...], rule: str, code: int
) -> None:
    done = seatrial(*ON_DEV, *arguments, env=NOBODY)
    assert done.returncode == code
    assert rule in done.stderr
    assert not list((locked / ".seatrial" / "probe").glob("*/*"))


def test_the_cost_is_told_and_needs_a_confirmation(seatrial: Seatrial, locked: Path) -> None:
    with account({}) as env:
        done = seatrial(*ON_DEV, "--candidate", "ml.g5.2xlarge:1", env=env)
    assert done.returncode == 2
    assert "SEA526" in done.stderr
    chance, first, second, total = done.stdout.splitlines()
    assert re.fullmatch(r"plan: 1 x ml\.\S+, TP \d+: (over |under )?\d+ % to meet the SLO", chance)
    assert first.startswith("seatrial-dev-llama-2-7b-chat-probe-plan: 1 instance of ml.")
    assert second.startswith("seatrial-dev-llama-2-7b-chat-probe-candidate: 1 instance of ml.g5.2xlarge, TP 1, $")
    assert total.startswith("cost of the probe: up to $")
    assert locked.is_dir()


def test_without_credentials_nothing_is_deployed(seatrial: Seatrial, locked: Path) -> None:
    done = seatrial("probe", SPEC, "-e", "local", "--candidate", "ml.g5.2xlarge:1", env=NOBODY)
    assert done.returncode == 1
    assert "SEA503" in done.stderr
    assert not list(locked.rglob("cdk.out"))


def test_credentials_of_another_account_are_refused(seatrial: Seatrial, locked: Path) -> None:
    with account({}) as env:
        done = seatrial("probe", SPEC, "-e", "local", "--candidate", "ml.g5.2xlarge:1", env=env)
    assert (done.returncode, "SEA455" in done.stderr) == (2, True)
    assert locked.is_dir()


def test_a_local_engine_calibrates_nothing(seatrial: Seatrial, locked: Path) -> None:
    before = files(locked)
    done = seatrial("probe", SPEC, "-e", "local", "--level", "2", "--write")
    assert (done.returncode, "SEA615" in done.stderr) == (2, True)
    assert files(locked) == before


def test_outside_of_an_app_nothing_can_be_deployed(seatrial: Seatrial, locked: Path) -> None:
    (locked / "cdk.json").unlink()
    done = seatrial(*ON_DEV, "--level", "2", env=NOBODY)
    assert (done.returncode, "SEA450" in done.stderr) == (2, True)


def test_without_a_lock_there_is_nothing_to_probe(seatrial: Seatrial, project: Path) -> None:
    (project / "endpoints" / "llama-2-7b-chat.lock.json").unlink()
    done = seatrial(*ON_DEV)
    assert (done.returncode, "SEA401" in done.stderr) == (2, True)
