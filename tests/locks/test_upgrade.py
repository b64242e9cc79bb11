"""Upgrading Seatrial changes no lock: what is committed reads and writes to the same bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import seatrial
from seatrial.documents.plan import Plan
from seatrial.locks.lock_file import document_in_lock, locked_environments, write_lock

ENDPOINTS = Path(__file__).parents[2] / "endpoints"


@pytest.mark.parametrize("spec", sorted(ENDPOINTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_committed_lock_is_written_as_it_was_read(spec: Path, tmp_path: Path) -> None:
    lock = spec.with_name(f"{spec.stem}.lock.json")
    copied = tmp_path / spec.name
    shutil.copy(lock, tmp_path / lock.name)
    for environment in locked_environments(copied):
        plan = Plan.model_validate_json(json.dumps(document_in_lock(copied, environment)))
        write_lock(plan, copied)
    assert (tmp_path / lock.name).read_bytes() == lock.read_bytes()
    assert f'"{seatrial.__version__}"' not in lock.read_text(encoding="utf-8"), "no release is part of a lock"
