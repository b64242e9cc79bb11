"""`seatrial teams` as a user runs it."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial


@pytest.mark.usefixtures("project")
def test_every_unknown_environment_is_told_and_no_table_is_shown(seatrial: Seatrial) -> None:
    """It showed an empty table, as if nothing were locked there."""
    done = seatrial("teams", "--no-account", "-e", "pord", "-e", "dev", "-e", "tset")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.partition(": ")[0] for line in done.stderr.splitlines() if "SEA109" in line] == [
        "environments/pord.yaml",
        "environments/tset.yaml",
    ]


@pytest.mark.usefixtures("project")
def test_the_locks_alone_need_no_account(seatrial: Seatrial) -> None:
    done = seatrial("teams", "--no-account", "-e", "dev", "--format", "csv")
    assert done.returncode == 0
    assert "falcon-40b" in done.stdout


def test_a_hosted_model_has_no_cost_of_its_own(seatrial: Seatrial, project: Path) -> None:
    (project / "endpoints" / "host.yaml").write_text("name: host\nhosting: {more_models: [falcon-40b]}\n")
    done = seatrial("teams", "--no-account", "-e", "dev", "--format", "csv")
    rows = {row["endpoint"]: row for row in csv.DictReader(done.stdout.splitlines())}
    assert float(rows["falcon-40b"]["usd_per_hour"]) == 0
    assert float(rows["llama-2-7b-chat"]["usd_per_hour"]) > 0
