"""A checkout of nothing but what the demo looks for, and a plan and a result written out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_laptop.demo.workspace import ENDPOINT, workspace_of
from tests.constructs.conftest import passing_result
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial_laptop.demo.workspace import Workspace
    from seatrial_load.documents.result import TrialResult


@pytest.fixture
def plan() -> Plan:
    return sample_plan()


@pytest.fixture
def passed() -> TrialResult:
    return passing_result()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "checkout"
    for name in ("app.py", "cdk.json", f"endpoints/{ENDPOINT}.yaml", "environments/local.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return workspace_of(root)
