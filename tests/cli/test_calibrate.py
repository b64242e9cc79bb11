"""`seatrial calibrate` as a user runs it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Plan
from seatrial_load.documents.result import StartTime
from tests.cli.conftest import SPECS, files
from tests.report.samples import concluded, sample_level, sample_request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

SPEC = SPECS[1]
ON_DEV = (SPEC, "-e", "dev")
CALIBRATION = "endpoints/llama-2-7b-chat.calibration.json"
TABLE = "concurrency,output_tok_s,ms_per_token\n1,20,50\n8,140,58\n32,400,90\n"


@pytest.fixture
def locked(seatrial: Seatrial, project: Path) -> Path:
    """Lock the plan, and lay measured points beside it."""
    (project / "points.csv").write_text(TABLE)
    done = seatrial("plan", *ON_DEV, "--write", "--format", "json")
    assert done.returncode == 0, done.stderr
    return project


def test_measured_stands_beside_predicted_before_and_after(seatrial: Seatrial, locked: Path) -> None:
    before = files(locked)
    done = seatrial("calibrate", *ON_DEV, "--points", "points.csv", "--probes", "1,32")
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert words.startswith("Calibration of meta-llama/Llama-2-7b-chat-hf on ml.g")
    for part in ("Fixed time per step: x ", " 1 probe 20 ", " 32 probe 400 ", " 8 140 "):
        assert part in words
    assert "Mean error at the other levels: throughput " in words
    assert files(locked) == before  # nothing is written without --write


def test_what_is_written_is_used_by_the_next_plan(seatrial: Seatrial, locked: Path) -> None:
    plain = json.loads(seatrial("plan", *ON_DEV, "--format", "json").stdout)
    done = seatrial("calibrate", *ON_DEV, "--points", "points.csv", "--write")
    assert done.stderr.splitlines() == [
        f"calibration written to {CALIBRATION}",
        f"the lock is now stale; plan again: seatrial plan {SPEC} --environment dev --write",
    ]
    entry = json.loads((locked / CALIBRATION).read_text())["environments"]["dev"]
    assert [point["concurrency"] for point in entry["points"]] == [1, 8, 32]
    assert (entry["source"]["file"], entry["source"]["engine_note"]) == ("points.csv", "")

    stale = seatrial("render", *ON_DEV)
    assert stale.returncode == 2
    assert "SEA402" in stale.stderr
    plan = json.loads(seatrial("plan", *ON_DEV, "--format", "json").stdout)
    assert plan["band"]["because"].startswith("Calibrated with 3 points measured on ml.g")
    assert plan["spec_digest"] != plain["spec_digest"]


def test_the_start_that_a_trial_measured_is_part_of_the_next_plan(seatrial: Seatrial, locked: Path) -> None:
    document = json.loads(seatrial("plan", *ON_DEV, "--format", "json").stdout)
    assert {part["source"] for part in document.pop("start")["parts"]} == {"assumed, slow on purpose"}
    plan = Plan.model_validate(document)
    points = (plan.curve[0], plan.curve[2])
    levels = [replace(sample_level(each.concurrency, copies=1), output_tok_s=each.output_tok_s) for each in points]
    request = replace(sample_request(plan), endpoint="llama-2-7b-chat", copy_count=1)
    start = StartTime(created_at="2026-11-20T10:00:00+00:00", seconds=240, instances_added=0, because="seen")
    (locked / "result.json").write_text(replace(concluded(request, levels, ""), start=start).to_json())
    done = seatrial("calibrate", *ON_DEV, "--result", "result.json", "--write")
    assert "start of a copy: 240 s on an instance in service, seen" in " ".join(done.stdout.split())
    digest = json.loads((locked / CALIBRATION).read_text())["environments"]["dev"]["source"]["digest"]
    copy = json.loads(seatrial("plan", *ON_DEV, "--format", "json").stdout)["start"]["parts"][-1]
    assert (copy["part"], copy["seconds"]) == ("copy", 240)
    assert copy["source"] == copy["likely_source"] == f"measured by trial {digest} of 2026-11-20"


def test_calibrating_again_gives_the_same_bytes(seatrial: Seatrial, locked: Path) -> None:
    written = []
    for _ in range(2):
        assert seatrial("calibrate", *ON_DEV, "--points", "points.csv", "--write").returncode == 0
        written.append((locked / CALIBRATION).read_bytes())
    assert written[0] == written[1]


def test_without_a_lock_there_is_nothing_that_was_measured(seatrial: Seatrial, project: Path) -> None:
    (project / "points.csv").write_text(TABLE)
    (project / "endpoints" / "llama-2-7b-chat.lock.json").unlink()
    done = seatrial("calibrate", *ON_DEV, "--points", "points.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "endpoints/llama-2-7b-chat.lock.json: dev: SEA401: there is no lock\n"
        f"  hint: run `seatrial plan {SPEC} --environment dev --write`\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --result, --points and --benchmark"),
        (("--points", "points.csv", "--result", "points.csv"), "give one of --result, --points and --benchmark"),
        (("--points", "points.csv", "--probes", "1,many"), "'1,many' is not a list of whole numbers as in 1,64"),
        (("--points", "points.csv", "--probes", "2"), "SEA408: concurrency 2 was not measured"),
        (("--points", "absent.csv"), "absent.csv: SEA407: the measured points can't be read: "),
        (("--points", "wrong.csv"), "wrong.csv:2: output_tok_s: SEA407: '0' is not a number above 0"),
        (("--result", "points.csv"), "SEA501"),
        (("--benchmark", "16=absent.tar.gz"), "absent.tar.gz: SEA407: the benchmark can't be read: "),
    ],
)
def test_what_can_not_be_used_is_one_message_and_nothing_written(
    arguments: tuple[str, ...], message: str, seatrial: Seatrial, locked: Path
) -> None:
    (locked / "wrong.csv").write_text("concurrency,output_tok_s\n1,0\n")
    before = files(locked)
    done = seatrial("calibrate", *ON_DEV, *arguments, "--write")
    assert done.returncode != 0
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert files(locked) == before
