"""`seatrial simulate` as a user runs it, and as docs/how-to/simulate.md shows it; UPDATE_GOLDEN=1 writes its screen."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.documents.simulation import Simulation

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "simulate.md"
SCREEN = re.compile(r"(<!-- screen -->\n)(.*?)(<!-- end -->)", re.DOTALL)
SPEC = ("simulate", "endpoints/llama-2-7b-chat.yaml", "-e", "dev", "--traffic", "day.yaml", "--days", "1")


def test_the_page_shows_what_the_command_writes(seatrial: Seatrial, project: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (document,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^\$ seatrial (.*)$", text, re.MULTILINE)
    (project / "week.yaml").write_text(document, encoding="utf-8")
    done = seatrial(*command.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) <= 15
    screen = f"```text\n{done.stdout}```\n"
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(SCREEN.sub(lambda found: found[1] + screen + found[3], text), encoding="utf-8")
    else:
        assert SCREEN.findall(text)[0][1] == screen


def test_json_is_the_document_and_measured_starts_are_named(seatrial: Seatrial, project: Path) -> None:
    day = 'profile: {peak_requests_per_second: 0.1, hours: {"08-18": 1}}'
    (project / "day.yaml").write_text(day, encoding="utf-8")
    done = seatrial(*SPEC, "--format", "json", "--instance-start-s", "200", "--copy-start-s", "90")
    made = Simulation.model_validate_json(done.stdout)
    assert [(part.seconds, part.source) for part in made.starts] == [
        (200.0, "--instance-start-s"),
        (90.0, "--copy-start-s"),
    ]
    assert (len(made.minutes.requests), sum(made.minutes.requests), made.meets_slo) == (1440, made.requests, True)
    assert json.loads(seatrial("schema", "simulation").stdout)["title"] == "Simulation"


def test_the_cheapest_schedule_is_shown_and_written(seatrial: Seatrial, project: Path) -> None:
    (project / "day.yaml").write_text('profile: {peak_requests_per_second: 0.1, hours: {"08-18": 1}}', encoding="utf-8")
    spec, rails = project / "endpoints/llama-2-7b-chat.yaml", project / "environments/dev.yaml"
    types = ("[ml.g5.2xlarge, ml.g5.12xlarge, ml.g6e.2xlarge]", "[ml.g6e.2xlarge]")
    # One copy at most: few schedules, so that the search is short.
    for file, old, new in ((spec, *types), *((each, "max_copies: 2", "max_copies: 1") for each in (spec, rails))):
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    spec.with_suffix(".lock.json").unlink()
    refused = seatrial(*SPEC, "--share", "0.9")
    assert (refused.returncode, "needs --cheapest" in refused.stderr) == (2, True)
    done = seatrial(*SPEC, "--cheapest", "--share", "0.9", "--write")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line[:9].strip() for line in lines[2:6]] == ["As it is", "Cheapest", "Runner-up", "Changes"]
    assert lines[-1].startswith(f"Next         seatrial plan {SPEC[1]} -e dev --write, then seatrial diff")
    assert len(lines) <= 15
    assert "  dev:\n    scaling:\n      min_copies: 0\n" in spec.read_text(encoding="utf-8")
    assert json.loads(seatrial("schema", "schedule").stdout)["title"] == "CheapestSchedule"


def test_problems_are_listed_and_no_file_is_written_over(seatrial: Seatrial, project: Path) -> None:
    (project / "day.yaml").write_text("timezone: Nowhere", encoding="utf-8")
    done = seatrial(*SPEC)
    assert (done.returncode, done.stdout) == (2, "")
    assert [rule for rule in ("SEA560", "SEA561") if rule in done.stderr] == ["SEA560", "SEA561"]
    refused = seatrial(*SPEC, "--from-endpoint", "chat")
    assert (refused.returncode, "SEA565" in refused.stderr) == (2, True)
    assert (project / "day.yaml").read_text() == "timezone: Nowhere"
