"""What can't be migrated: newer, changed by hand, or no lock at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.lock_file import seal_of
from seatrial.locks.migrate import migrate_lock
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.specs.yaml_source import Yaml

OLD = Path(__file__).parents[1] / "compatibility" / "schema-2" / "endpoints" / "llama-2-7b-chat.lock.json"


def refused(lock: Path) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as caught:
        migrate_lock(lock)
    return [(problem.field, problem.rule) for problem in caught.value.problems]


def edited(tmp_path: Path, edit: Callable[[dict[str, dict[str, dict[str, Yaml]]]], object]) -> Path:
    lock = Path(shutil.copy(OLD, tmp_path))
    document = json.loads(lock.read_text(encoding="utf-8"))
    edit(document)
    lock.write_text(json.dumps(document), encoding="utf-8")
    return lock


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"environments": []}', '{"environments": {}}', "[" * 100_000])
def test_a_file_that_is_no_lock(text: str, tmp_path: Path) -> None:
    lock = tmp_path / "chat.lock.json"
    lock.write_text(text, encoding="utf-8")
    assert [rule for _, rule in refused(lock)] == ["SEA403"]


def test_a_lock_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "chat.lock.json") == [("", "SEA403")]


@pytest.mark.parametrize(
    ("version", "rule"),
    [("99", "SEA122"), ("1", "SEA403"), ("0", "SEA403"), (None, "SEA403"), ("9" * 5000, "SEA403"), ("two", "SEA403")],
)
def test_a_plan_that_no_step_leads_from(version: str | None, rule: str, tmp_path: Path) -> None:
    def edit(lock: dict[str, dict[str, dict[str, Yaml]]]) -> None:
        lock["environments"]["dev"]["schema_version"] = version

    assert refused(edited(tmp_path, edit)) == [("dev", rule)]


def test_a_lock_of_a_newer_release(tmp_path: Path) -> None:
    lock = tmp_path / "chat.lock.json"
    lock.write_text('{"schema_version": "2", "environments": {}}', encoding="utf-8")
    assert refused(lock) == [("schema_version", "SEA122")]


def test_a_plan_that_was_changed_by_hand_stays_so(tmp_path: Path) -> None:
    lock = edited(tmp_path, lambda whole: whole["environments"]["dev"].update(max_copies=99))
    assert refused(lock) == [("dev", "SEA411")]


def test_a_plan_without_digests_can_not_be_vouched_for(tmp_path: Path) -> None:
    assert refused(edited(tmp_path, lambda whole: whole.pop("digests"))) == [("dev", "SEA411")]


def test_a_plan_that_has_another_shape_is_told(tmp_path: Path) -> None:
    def edit(whole: dict[str, dict[str, dict[str, Yaml]]]) -> None:
        plan = whole["environments"]["dev"]
        del plan["knee"]
        whole["digests"]["dev"] = json.loads(seal_of(plan).model_dump_json())

    assert refused(edited(tmp_path, edit)) == [("dev", "SEA403")]
