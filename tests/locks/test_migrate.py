"""What can't be migrated: newer, changed by hand, or no lock at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.lock_file import seal_of
from seatrial.locks.migrate import migrate_lock, write_migrated
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


def test_a_lock_of_an_older_schema_keeps_what_it_decides_and_tells_what_was_done(tmp_path: Path) -> None:
    lock = Path(shutil.copy(OLD, tmp_path))
    before = json.loads(OLD.read_text(encoding="utf-8"))
    migrated = migrate_lock(lock)
    assert migrated.path == lock
    assert migrated.changes == tuple(
        f"{name}: schema 2 to 3, trial_update: candidate" for name in sorted(before["environments"])
    )
    after = json.loads(migrated.text)
    for name, plan in before["environments"].items():
        update = {"value": "candidate", "because": after["environments"][name]["trial_update"]["because"]}
        assert after["environments"][name] == {**plan, "schema_version": "3", "trial_update": update}
        assert after["digests"][name] == seal_of(after["environments"][name]).model_dump()
    write_migrated(lock)
    assert lock.read_text(encoding="utf-8") == migrated.text
    again = migrate_lock(lock)
    assert (again.text, again.changes) == (migrated.text, ())


def test_a_current_lock_keeps_its_bytes_however_they_are_laid_out(tmp_path: Path) -> None:
    lock = Path(shutil.copy(OLD, tmp_path))
    write_migrated(lock)
    compact = json.dumps(json.loads(lock.read_text(encoding="utf-8")))
    lock.write_text(compact, encoding="utf-8")
    assert (migrate_lock(lock).text, migrate_lock(lock).changes) == (compact, ())


def test_only_the_plans_of_an_older_schema_are_written_anew(tmp_path: Path) -> None:
    lock = Path(shutil.copy(OLD, tmp_path))
    write_migrated(lock)
    current = json.loads(lock.read_text(encoding="utf-8"))
    old = json.loads(OLD.read_text(encoding="utf-8"))
    name = next(iter(old["environments"]))
    for part in ("environments", "digests"):
        current[part]["old"] = old[part][name]
    lock.write_text(json.dumps(current), encoding="utf-8")
    assert [change.partition(":")[0] for change in migrate_lock(lock).changes] == ["old"]


def test_every_plan_that_cannot_be_migrated_is_told_at_once(tmp_path: Path) -> None:
    def edit(whole: dict[str, dict[str, dict[str, Yaml]]]) -> None:
        plan = whole["environments"]["dev"]
        whole["environments"]["new"] = {**plan, "schema_version": "99"}
        whole["environments"]["none"] = {}
        plan["max_copies"] = 99

    assert refused(edited(tmp_path, edit)) == [("dev", "SEA411"), ("new", "SEA122"), ("none", "SEA403")]


def test_the_digest_of_the_plan_itself_is_of_another_schema_and_does_not_count(tmp_path: Path) -> None:
    lock = edited(tmp_path, lambda whole: whole["digests"]["dev"].update(plan="0" * 16))
    assert "dev" in migrate_lock(lock).changes[0]
