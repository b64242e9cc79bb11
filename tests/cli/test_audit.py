"""An auditor's questions, answered from files of records: what served when, on what evidence, and who says so."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial_load.documents.served_record import ServedModel, ServedRecord
from seatrial_load.documents.strict_json import write_document
from tests.constructs.conftest import EvidenceKey

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_load.documents.served_record import Change
    from tests.cli.conftest import Seatrial

KEY = EvidenceKey()
CHANGE_SET = "arn:aws:cloudformation:us-east-1:123456789012:changeSet/ci--4f2b--17--ada/1"


def record(change: Change, at: str, model: str = "acme/one", endpoint: str = "chat") -> ServedRecord:
    facts = dict.fromkeys(ServedModel.__slots__, "unknown")
    facts |= {"endpoint": endpoint, "environment": "dev", "model": model, "licence": "mit"}
    return ServedRecord(
        change=change,
        at=at,
        endpoint_name="dev-chat",
        component="dev-chat-model",
        served=ServedModel(**facts),
        verdict="pass",
        result_uri="s3://results/trials/1.json",
        result_digest="0a",
        result_signature="s",
        stack_id="arn:stack",
        request_id=f"{change}-{at}",
        change_set=CHANGE_SET,
    )


def signed(each: ServedRecord) -> str:
    return KEY.seal(write_document(each), each.request_id)


HISTORY = (
    record("create", "2026-01-01T10:00:00+00:00"),
    record("update", "2026-02-01T10:00:00+00:00", "acme/two"),
    record("rollback", "2026-02-01T10:05:00+00:00"),
    record("create", "2026-02-02T00:00:00+00:00", "acme/guest", endpoint="guest"),
    record("delete", "2026-03-01T10:00:00+00:00"),
)


@pytest.fixture
def records(project: Path) -> Path:
    """Return a file of records, in a folder whose prod trusts the key of dev."""
    shutil.rmtree(project / "environments")
    (project / "environments").mkdir()
    for name, promotion in (("dev", {}), ("prod", {"source": "dev", "public_keys": [KEY.public]})):
        place = {"name": name, "region": "us-east-1", "promotion": promotion}
        (project / "environments" / f"{name}.yaml").write_text(yaml.safe_dump(place), encoding="utf-8")
    file = project / "records.json"
    file.write_text("\n".join(map(signed, reversed(HISTORY))), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("at", "models"),
    [
        ("2025-12-31", []),
        ("2026-01-15", ["acme/one"]),
        ("2026-02-01", ["acme/one", "acme/two", "acme/one"]),
        ("2026-02-01T10:02:00Z", ["acme/two"]),
        ("2026-02-15", ["acme/one", "acme/guest"]),
        ("2026-03-02", ["acme/guest"]),
    ],
)
def test_it_tells_what_served_on_a_day_or_at_a_time_also_after_a_deletion(
    seatrial: Seatrial, records: Path, at: str, models: list[str]
) -> None:
    told = seatrial("audit", "dev-chat", "--records", f"{records}", "--at", at, "--format", "json")
    rows = json.loads(told.stdout)["records"]
    assert (told.returncode, [row["model"] for row in rows]) == (0, models)
    assert {row["signature"] for row in rows} <= {"verified"}


def test_each_row_has_its_end_its_evidence_and_who_deployed(seatrial: Seatrial, records: Path) -> None:
    told = seatrial("audit", "chat", "--records", f"{records}", "--format", "csv")
    rows = [*csv.DictReader(told.stdout.splitlines())]
    assert [(row["change"], row["to"]) for row in rows] == [
        ("create", "2026-02-01T10:00:00+00:00"),
        ("update", "2026-02-01T10:05:00+00:00"),
        ("rollback", "2026-03-01T10:00:00+00:00"),
    ]
    who = ("commit", "run", "actor", "approver", "licence", "result_uri")
    assert [rows[0][name] for name in who] == ["4f2b", "17", "ada", "unknown", "mit", "s3://results/trials/1.json"]
    assert "acme/two" in seatrial("audit", "chat", "--records", f"{records}").stdout


def test_a_record_that_is_made_up_changed_or_not_signed_is_told_and_ends_nothing(
    seatrial: Seatrial, records: Path
) -> None:
    late = replace(HISTORY[1], at="2026-01-10T00:00:00+00:00")
    changed = signed(HISTORY[0]).replace("acme/one", "acme/other")
    records.write_text("\n".join([*map(signed, HISTORY[:1]), changed, EvidenceKey().seal(write_document(late), "r")]))
    told = seatrial("audit", "chat", "--records", f"{records}", "--format", "json")
    rows = json.loads(told.stdout)["records"]
    assert [row["signature"] for row in rows] == ["verified", "forged", "forged"]
    assert (rows[0]["to"], told.returncode, told.stderr.count("SEA588")) == (None, 1, 2)
    records.write_text(write_document(HISTORY[0]))
    assert "the record is not signed" in seatrial("audit", "chat", "--records", f"{records}").stderr
    records.write_text("{}")
    assert "SEA587" in seatrial("audit", "chat", "--records", f"{records}").stderr
    assert "SEA589" in seatrial("audit", "chat", "--records", f"{records}", "--at", "soon").stderr
