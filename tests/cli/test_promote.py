"""`seatrial promote`: what it shows, writes and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.trial import trial_request
from seatrial.engines.render import render_plan
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_load.documents.request import Expected, TrialTarget
from tests.constructs.conftest import EvidenceKey, level, passing_result

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

NAME = "llama-2-7b-chat"


@pytest.fixture
def result(project: Path) -> Path:
    """Return the result of a passed trial of what is locked for dev; it ended in the far future, so it never ages."""
    spec = project / "endpoints" / f"{NAME}.yaml"
    written = spec.read_text(encoding="utf-8")
    spec.write_text(written.replace("serving:", "trial: {confidence: 0}\nserving:", 1), encoding="utf-8")
    loaded = load_spec(spec, "dev", environments=project / "environments")
    plan = make_plan(loaded)
    write_lock(plan, spec)
    target = TrialTarget(endpoint_name=f"dev-{NAME}", inference_component="c", region="us-east-1")
    expected = Expected(endpoint_config_name="config-2", model_name="model-2")
    request = trial_request(loaded, plan, render_plan(loaded, plan), target, expected)
    levels = tuple(level(each, 400.0) for each in plan.concurrency_levels.value)
    measured = replace(passing_result(), request=request, levels=levels, started_at="2999-01-01T00:00:00+00:00")
    path = project / "result.json"
    path.write_text(measured.to_json(), encoding="utf-8")
    return path


def test_it_shows_what_would_change_and_writes_when_asked(seatrial: Seatrial, project: Path, result: Path) -> None:
    lock = project / "endpoints" / f"{NAME}.lock.json"
    before = lock.read_bytes()
    asked = ("promote", NAME, "--from", "dev", "--to", "prod", "--result", result.name)
    shown = seatrial(*asked)
    assert (shown.returncode, lock.read_bytes()) == (0, before), shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == f"endpoints/{NAME}.yaml: prod"
    assert lines[1].startswith("  promoted from dev: trial passed, ended 2999-01-01T00:01:01+00:00, knee 16")
    assert "  not signed: nothing proves that it is as it was" in lines
    written = seatrial(*asked, "--write", "--format", "json")
    (row,) = json.loads(written.stdout)
    environments = json.loads(lock.read_bytes())["environments"]
    assert environments["prod"] == row["plan"]
    assert environments["dev"] == json.loads(before)["environments"]["dev"]
    assert row["plan"]["promoted"]["source"] == "dev"
    rendered = seatrial("render", f"endpoints/{NAME}.yaml", "-e", "prod")
    assert "note: " in rendered.stderr
    assert "promoted from dev" in rendered.stderr


def test_planning_anew_drops_the_provenance_and_says_so(seatrial: Seatrial, project: Path, result: Path) -> None:
    seatrial("promote", NAME, "--from", "dev", "--to", "prod", "--result", result.name, "--write")
    again = seatrial("plan", f"endpoints/{NAME}.yaml", "-e", "prod", "--write")
    assert "promoted: dropped" in again.stderr
    lock = json.loads((project / "endpoints" / f"{NAME}.lock.json").read_bytes())
    assert "promoted" not in lock["environments"]["prod"]


def test_a_hand_edit_that_is_adopted_drops_it_too(seatrial: Seatrial, project: Path, result: Path) -> None:
    seatrial("promote", NAME, "--from", "dev", "--to", "prod", "--result", result.name, "--write")
    path = project / "endpoints" / f"{NAME}.lock.json"
    lock = json.loads(path.read_bytes())
    lock["environments"]["prod"]["startup_timeout_s"]["value"] = 1801
    path.write_text(json.dumps(lock), encoding="utf-8")
    adopted = seatrial("plan", f"endpoints/{NAME}.yaml", "-e", "prod", "--adopt")
    assert adopted.returncode == 0, adopted.stderr
    assert "promoted: dropped" in adopted.stderr


def test_nothing_is_written_where_one_endpoint_is_refused(seatrial: Seatrial, project: Path) -> None:
    before = (project / "endpoints" / f"{NAME}.lock.json").read_bytes()
    done = seatrial("promote", NAME, "mine", "--to", "prod", "--write")
    assert (done.returncode, "endpoints/mine.yaml: SEA101" in done.stderr) == (2, True)
    done = seatrial("promote", NAME, "falcon-40b", "--to", "prod", "--write")
    assert (done.returncode, done.stderr.count("SEA470")) == (2, 1)
    assert (project / "endpoints" / f"{NAME}.lock.json").read_bytes() == before


def test_where_it_is_required_only_promoted_plans_are_written(seatrial: Seatrial, project: Path, result: Path) -> None:
    place = project / "environments" / "prod.yaml"
    key = EvidenceKey()
    required = f"promotion: {{source: dev, required: true, public_keys: [{key.public}]}}\n"
    place.write_text(place.read_text(encoding="utf-8") + required)
    unsigned = seatrial("promote", NAME, "--to", "prod", "--result", result.name, "--write")
    assert (unsigned.returncode, "SEA580: the result of the trial is not signed" in unsigned.stderr) == (2, True)
    started = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    text = result.read_text(encoding="utf-8").replace("2999-01-01T00:00:00+00:00", started)
    result.write_text(key.seal(text, "request-1"), encoding="utf-8")
    spec = f"endpoints/{NAME}.yaml"
    refused = seatrial("plan", spec, "-e", "prod", "--write")
    assert (refused.returncode, "SEA478: prod takes promoted plans alone" in refused.stderr) == (2, True)
    waiting = seatrial("plan", spec, "-e", "prod", "--check")
    assert (waiting.returncode, waiting.stdout.startswith(f"{spec}: prod: awaiting promotion (SEA402")) == (0, True)
    skipped = seatrial("render", "endpoints", "-e", "prod", "--output", "rendered")
    assert f"note: {spec}: skipped until its plan is promoted" in skipped.stderr
    assert not (project / "rendered" / NAME).exists()
    signed = seatrial("promote", NAME, "--to", "prod", "--result", result.name, "--write")
    assert "  signed in arn:aws:states:" in signed.stdout, signed.stderr
    assert seatrial("plan", spec, "-e", "prod", "--check").stdout == f"{spec}: prod: fresh\n"
    lock = project / "endpoints" / f"{NAME}.lock.json"
    lock.write_text(
        lock.read_text(encoding="utf-8").replace('\\"duration_s\\":', '\\"duration_s\\":1'), encoding="utf-8"
    )
    forged = seatrial("plan", spec, "-e", "prod", "--check")
    assert (forged.returncode, f"{spec}: prod: unproven (SEA581" in forged.stdout) == (1, True)
