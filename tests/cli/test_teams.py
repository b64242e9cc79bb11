"""`seatrial teams` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
