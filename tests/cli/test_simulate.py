"""`seatrial simulate` as a user runs it, and as docs/how-to/simulate.md shows it; UPDATE_GOLDEN=1 writes its screen."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.cli.simulate import prompts_seconds
from seatrial.documents.simulation import Simulation
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.load import load_spec
from tests.report.reading import Tables

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
    done = seatrial(*SPEC, "--format", "json", "--instance-start-s", "200", "--copy-start-s", "1290")
    assert done.stderr.startswith("warning: SEA571: A copy starts in 1,290 s (--copy-start-s)")
    made = Simulation.model_validate_json(done.stdout)
    assert [(part.seconds, part.source) for part in made.starts] == [
        (200.0, "--instance-start-s"),
        (1290.0, "--copy-start-s"),
    ]
    assert (len(made.minutes.requests), sum(made.minutes.requests), made.meets_slo) == (1440, made.requests, True)
    assert json.loads(seatrial("schema", "simulation").stdout)["title"] == "Simulation"


def test_the_page_draws_a_recording_whose_prompts_and_quota_count(seatrial: Seatrial, project: Path) -> None:
    lines = (
        f'{{"timestamp": {1000 * at}, "input_length": {9 + at}, "output_length": 300}}\n' for at in range(0, 3000, 2)
    )
    (project / "day.jsonl").write_text("".join(lines), encoding="utf-8")
    done = seatrial(*SPEC[:-3], "day.jsonl", "--format", "html", "--quota", "1")
    page, (data,) = done.stdout, re.findall(r'href="data:application/json;base64,([^"]*)"', done.stdout)
    made = Simulation.model_validate_json(base64.b64decode(data))
    assert (made.requests, made.quota_instances, "for the work on each" in str(made.not_simulated)) == (1500, 1, True)
    rows = Tables(page).by_caption["Counts of 10 min, else the most"]
    assert [sum(int(row[column][1]) for row in rows) for column in (1, 2, 3)] == [
        sum(values) for values in (made.minutes.requests, made.minutes.refused, made.minutes.late)
    ]
    charts = [json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', page)]
    assert [len(each["series"]) for each in charts] == [1, 2, 1, 2]
    assert {len(series["points"]) for chart in charts for series in chart["series"]} == {480}
    assert charts[0]["description"].startswith("Requests over time, at most: requests 30.0, hour ")
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_a_longer_prompt_takes_the_planners_prefill(project: Path) -> None:
    loaded = load_spec(project / "endpoints/llama-2-7b-chat.yaml", "dev", environments=project / "environments")
    plan = read_locked_plan(loaded)
    short_s, usual_s, long_s = prompts_seconds(loaded, plan, (64, 256, 1024))
    alone_s = plan.curve[0].ttft_ms / 1000
    assert -alone_s < short_s < usual_s == 0 < long_s < 3 * alone_s


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
