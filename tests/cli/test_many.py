"""Many specs in one process: `plan`, `validate` and `render` of files and folders."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SPECS, files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

LLAMA = SPECS[1]
NAMES = ["falcon-40b", "llama-2-7b-chat", "mixtral-8x7b"]


def change(spec: Path, old: str, new: str) -> None:
    text = spec.read_text(encoding="utf-8")
    assert old in text
    spec.write_text(text.replace(old, new), encoding="utf-8")


class TestPlan:
    def test_a_folder_is_every_spec_in_it_one_line_each(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", "endpoints", "-e", "dev", env={"COLUMNS": "120"})
        assert (done.returncode, done.stderr) == (0, "")
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["endpoint", *NAMES]

    def test_json_of_many_is_a_list_and_of_one_file_an_object(self, seatrial: Seatrial, project: Path) -> None:
        many = json.loads(seatrial("plan", *SPECS[:2], "-e", "dev", "--format", "json").stdout)
        one = json.loads(seatrial("plan", LLAMA, "-e", "dev", "--format", "json").stdout)
        (project / SPECS[0]).unlink()
        (project / SPECS[2]).unlink()
        folder_of_one = json.loads(seatrial("plan", "endpoints", "-e", "dev", "--format", "json").stdout)
        assert [plan["endpoint"] for plan in many] == NAMES[:2]
        assert many[1] == one
        assert folder_of_one == [one]

    def test_a_spec_that_is_named_twice_is_planned_once(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", LLAMA, "endpoints", f"./{LLAMA}", "-e", "dev", "--format", "json")
        assert [plan["endpoint"] for plan in json.loads(done.stdout)] == [NAMES[1], NAMES[0], NAMES[2]]

    def test_every_lock_is_written_with_what_changed_in_it(self, seatrial: Seatrial, project: Path) -> None:
        seatrial("plan", "endpoints", "-e", "dev", "--write")
        change(project / LLAMA, "max_copies: 2\n\nenv", "max_copies: 1\n\nenv")
        done = seatrial("plan", "endpoints", "-e", "dev", "--write")
        lines = dict(line.split(": ", 1) for line in done.stderr.splitlines())
        assert list(lines) == [f"endpoints/{name}.lock.json" for name in NAMES]
        assert "max_copies: 2 -> 1" in lines["endpoints/llama-2-7b-chat.lock.json"].split("; ")
        assert lines["endpoints/falcon-40b.lock.json"] == "unchanged"

    def test_problems_of_all_specs_are_one_message_and_no_lock_is_written(
        self, seatrial: Seatrial, project: Path
    ) -> None:
        change(project / SPECS[0], "ttft_ms: {p95: 3000}", "ttft_ms: {p95: 1}")
        change(project / SPECS[2], "ttft_ms: {p95: 4000}", "ttft_ms: {p95: 1}")
        change(project / LLAMA, "min_copies: 1\n  max_copies: 2\n\nenv", "min_copies: 1\n  max_copies: 1\n\nenv")
        before = files(project)
        done = seatrial("plan", "endpoints", "-e", "dev", "--write")
        assert (done.returncode, done.stdout) == (2, "")
        told = [line.split(":")[0] for line in done.stderr.splitlines() if "SEA205" in line]
        assert told == [SPECS[0], SPECS[2]]
        assert files(project) == before

    def test_a_lock_that_cannot_be_read_stops_all_of_them(self, seatrial: Seatrial, project: Path) -> None:
        (project / "endpoints/mixtral-8x7b.lock.json").write_text("{", encoding="utf-8")
        change(project / LLAMA, "output_tokens: 256", "output_tokens: 255")
        before = files(project)
        done = seatrial("plan", "endpoints", "-e", "dev", "--write")
        assert done.returncode == 2
        assert "endpoints/mixtral-8x7b.lock.json: SEA403" in done.stderr
        assert files(project) == before

    def test_a_folder_without_specs_is_refused(self, seatrial: Seatrial, project: Path) -> None:
        (project / "empty").mkdir()
        done = seatrial("plan", "empty", "-e", "dev")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("empty: SEA420: ")

    def test_what_is_said_of_one_spec_takes_no_second(self, seatrial: Seatrial) -> None:
        for option in (("--why", "ml.g5.2xlarge"), ("--adopt",)):
            done = seatrial("plan", "endpoints", "-e", "dev", *option)
            assert done.returncode == 2
            assert f"Invalid value for '{option[0]}': needs exactly one spec" in done.stderr


class TestCheck:
    def test_fresh_locks_are_all_right(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", "endpoints", "-e", "prod", "--check")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [f"endpoints/{name}.yaml: prod: fresh" for name in NAMES]

    def test_each_lock_has_its_state_and_nothing_is_written(self, seatrial: Seatrial, project: Path) -> None:
        (project / "endpoints/falcon-40b.lock.json").unlink()
        change(project / LLAMA, "output_tokens: 256", "output_tokens: 255")
        lock = project / "endpoints/mixtral-8x7b.lock.json"
        document = json.loads(lock.read_text(encoding="utf-8"))
        document["environments"]["dev"]["max_model_len"]["value"] = 2048
        lock.write_text(json.dumps(document), encoding="utf-8")
        before = files(project)
        done = seatrial("plan", "endpoints", "-e", "dev", "--check")
        assert done.returncode == 1
        states = [line.split(": ")[2].split(" (")[0] for line in done.stdout.splitlines()]
        assert states == ["missing", "stale", "edited"]
        assert done.stdout.splitlines()[2].endswith(": edited (max_model_len)")
        assert files(project) == before

    def test_json_has_the_rules(self, seatrial: Seatrial, project: Path) -> None:
        change(project / LLAMA, "output_tokens: 256", "output_tokens: 255")
        done = seatrial("plan", "endpoints", "-e", "dev", "--check", "--format", "json")
        document = json.loads(done.stdout)
        assert done.returncode == 1
        assert [row["state"] for row in document["locks"]] == ["fresh", "stale", "fresh"]
        assert [(one["rule"], one["severity"]) for one in document["findings"]] == [("SEA402", "error")]

    def test_formats_of_findings_are_for_it_alone(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", "endpoints", "-e", "dev", "--format", "sarif")
        assert done.returncode == 2
        assert "Invalid value for '--format': sarif needs --check" in done.stderr

    def test_it_is_not_combined_with_what_plans(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", "endpoints", "-e", "dev", "--check", "--write")
        assert done.returncode == 2
        assert "Invalid value for '--check': can't be combined with --write" in done.stderr


@pytest.mark.parametrize(("name", "code", "rules"), [("16", 0, []), ("-1", 2, ["SEA107"])])
def test_validate_prints_findings_as_json(
    seatrial: Seatrial, project: Path, name: str, code: int, rules: list[str]
) -> None:
    change(project / LLAMA, "output_tokens: 256", f"output_tokens: {name}")
    done = seatrial("validate", LLAMA, "-e", "dev", "--format", "json")
    assert [one["rule"] for one in json.loads(done.stdout)["findings"]] == rules
    assert done.returncode == code


def test_validate_takes_a_folder(seatrial: Seatrial) -> None:
    done = seatrial("validate", "endpoints")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"endpoints/{name}.yaml: valid" for name in NAMES]


class TestRender:
    def test_many_specs_get_a_folder_each(self, seatrial: Seatrial, project: Path) -> None:
        done = seatrial("render", "endpoints", "-e", "dev", "--output", "out")
        assert done.returncode == 0
        assert sorted(folder.name for folder in (project / "out").iterdir()) == NAMES
        one = seatrial("render", LLAMA, "-e", "dev", "--output", "alone")
        assert one.returncode == 0
        assert files(project / "alone") == files(project / "out" / NAMES[1])

    def test_two_specs_of_one_name_are_refused(self, seatrial: Seatrial, project: Path) -> None:
        (project / "others").mkdir()
        (project / "others" / "falcon-40b.yaml").write_bytes((project / SPECS[0]).read_bytes())
        done = seatrial("render", "endpoints", "others", "-e", "dev", "--output", "out")
        assert (done.returncode, done.stdout) == (2, "")
        assert "SEA421" in done.stderr
        assert not (project / "out").exists()
