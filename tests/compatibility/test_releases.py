"""Specs, environments and locks as each release wrote them: read, migrated, and planned no other way.

A folder is never changed after its release; CONTRIBUTING.md says how to add the next one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.load import load_deployment
from seatrial.documents.plan import PLAN_SCHEMA
from seatrial.locks.lock_file import locked_environments
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.locks.migrate import migrate_lock
from seatrial.specs.load import load_spec
from seatrial.specs.pipeline import promotion_order
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
OLDER_SCHEMAS = {"schema-2"}
RELEASES = sorted(folder.name for folder in HERE.iterdir() if (folder / "endpoints").is_dir())


def specs(release: str) -> Iterator[Path]:
    return (path for path in sorted((HERE / release / "endpoints").glob("*.yaml")))


def locked(release: str) -> Iterator[tuple[str, Path, str]]:
    for spec in specs(release):
        yield from ((release, spec, name) for name in sorted(locked_environments(spec)))


CURRENT = [case for release in RELEASES if release not in OLDER_SCHEMAS for case in locked(release)]
OLDER = [case for release in RELEASES if release in OLDER_SCHEMAS for case in locked(release)]


def document_of(lock: Path, environment: str) -> dict[str, object]:
    document: dict[str, object] = json.loads(lock.read_text(encoding="utf-8"))["environments"][environment]
    return document


def test_there_is_a_lock_of_each_release() -> None:
    assert {release for release, _, _ in (*CURRENT, *OLDER)} == set(RELEASES)
    assert {"0.1.0", "schema-2"} <= set(RELEASES)


BEYOND = {
    ("0.1.0", "mixtral-8x7b", "dev"): "$50.503 per hour at list prices for 1 x ml.p4d.24xlarge and 1 more in an update"
}
"""Locks that a later release refuses: guard rails on costs count an update's instances since 0.2."""
SCALED = {("0.1.0", "mixtral-8x7b", "local")}
"""Locks of the laptop that are stale: what is not written for it is scaled to its engine since 0.2."""
DEPLOYED = [case for case in CURRENT if (case[0], case[1].stem, case[2]) not in {*BEYOND, *SCALED}]


@pytest.mark.parametrize(("key", "message"), BEYOND.items())
def test_a_lock_that_is_beyond_its_rails_today_is_told_so(key: tuple[str, str, str], message: str) -> None:
    release, name, environment = key
    with pytest.raises(SpecError) as caught:
        load_deployment(HERE / release / "endpoints" / f"{name}.yaml", HERE / release / "environments", environment)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.message.startswith(message)) == ("SEA413", True)


@pytest.mark.parametrize(("release", "name", "environment"), sorted(SCALED))
def test_a_lock_of_the_laptop_that_is_not_scaled_is_stale(release: str, name: str, environment: str) -> None:
    folder = HERE / release
    with pytest.raises(SpecError) as caught:
        load_deployment(folder / "endpoints" / f"{name}.yaml", folder / "environments", environment)
    assert [problem.rule for problem in caught.value.problems] == ["SEA402"]


@pytest.mark.parametrize(("release", "spec", "environment"), DEPLOYED, ids=lambda value: Path(str(value)).stem)
def test_a_lock_of_a_release_is_deployed_as_it_was_planned(release: str, spec: Path, environment: str) -> None:
    deployed = load_deployment(spec, HERE / release / "environments", environment)
    assert deployed.plan.model_dump(mode="json") == document_of(spec.with_suffix(".lock.json"), environment)


@pytest.mark.parametrize("release", RELEASES)
def test_environments_of_a_release_are_read(release: str) -> None:
    names = {environment.name for environment in promotion_order(HERE / release / "environments")}
    assert names == {file.stem for file in (HERE / release / "environments").glob("*.yaml")}


@pytest.mark.parametrize(("release", "spec", "environment"), OLDER, ids=lambda value: Path(str(value)).stem)
def test_a_lock_of_an_older_schema_is_migrated_without_another_decision(
    release: str, spec: Path, environment: str, tmp_path: Path
) -> None:
    copied = tmp_path / spec.name
    shutil.copy(spec, copied)
    lock = Path(shutil.copy(spec.with_suffix(".lock.json"), tmp_path))
    loaded = load_spec(copied, environment, environments=HERE / release / "environments")
    with pytest.raises(SpecError, match="seatrial migrate"):
        read_locked_plan(loaded)
    before = document_of(lock, environment)

    migrated = migrate_lock(lock)
    assert [change.partition(":")[0] for change in migrated.changes] == [environment]
    lock.write_text(migrated.text, encoding="utf-8")

    after = read_locked_plan(loaded).model_dump(mode="json")
    added = {"trial_update", "schema_version"}
    assert {name: value for name, value in after.items() if name not in added} == {
        name: value for name, value in before.items() if name != "schema_version"
    }
    assert after["schema_version"] == PLAN_SCHEMA
    again = migrate_lock(lock)
    assert (again.changes, again.text) == ((), migrated.text)


@pytest.mark.parametrize("release", [release for release in RELEASES if release not in OLDER_SCHEMAS])
def test_a_current_lock_keeps_its_bytes(release: str) -> None:
    for spec in specs(release):
        lock = spec.with_suffix(".lock.json")
        assert migrate_lock(lock).text == lock.read_text(encoding="utf-8")
