"""Repositories as `seatrial init` writes them: one for each CI, written once."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from seatrial.repository.answers import Answers, Ci, new_targets
from seatrial.repository.write import write_repository

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNTS = {"dev": "111111111111", "staging": "222222222222", "prod": "333333333333"}
CONNECTION = "arn:aws:codeconnections:us-east-1:111111111111:connection/0f0e0d0c-0000-4000-8000-000000000000"


def answers(ci: Ci) -> Answers:
    return Answers(
        name="endpoints",
        ci=ci,
        targets=new_targets(ACCOUNTS, "us-east-1"),
        source="acme/endpoints",
        owner="@acme/platform",
        connection_arn=CONNECTION if ci == "codepipeline" else None,
    )


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[Ci, Path]:
    folder = tmp_path_factory.mktemp("repositories")
    for ci in get_args(Ci):
        write_repository(folder / ci, answers(ci))
    return {ci: folder / ci for ci in get_args(Ci)}
