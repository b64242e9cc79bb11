"""`seatrial plan` as a user runs it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.cli.conftest import SPECS, files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial


def test_json_is_the_plan_document(seatrial: Seatrial) -> None:
    done = seatrial("plan", SPECS[1], "-e", "dev", "--format", "json")
    assert json.loads(done.stdout)["endpoint"] == "llama-2-7b-chat"


def test_text_has_every_part_in_this_order(seatrial: Seatrial) -> None:
    done = seatrial("plan", SPECS[1], "-e", "dev", "--explain")
    parts = (
        "Plan for llama-2-7b-chat in dev\n",
        "\nDecisions\n",
        "\ntensor parallel degree ",
        "\nMemory of one accelerator\n",
        "The rule of thumb",
        "\nRegime\n",
        "\nPredicted for one copy; simulated, not measured\n",
        "Band: throughput ±",
        "\nCost $",
        "\nPareto front\n",
        "\nConsidered and rejected\n",
    )
    places = [done.stdout.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_a_terminal_without_unicode_gets_ascii(seatrial: Seatrial) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    text = seatrial("plan", SPECS[1], "-e", "dev", "--explain", env=ascii_only)
    assert (text.returncode, text.stderr) == (0, "")
    assert "Band: throughput +/-" in text.stdout
    document = seatrial("plan", SPECS[1], "-e", "dev", "--format", "json", env=ascii_only)
    whole = seatrial("plan", SPECS[1], "-e", "dev", "--format", "json")
    assert document.stdout.isascii()
    assert json.loads(document.stdout) == json.loads(whole.stdout)


def test_a_narrow_terminal_is_kept_to(seatrial: Seatrial) -> None:
    lines = seatrial("plan", SPECS[1], "-e", "dev", "--explain", env={"COLUMNS": "60"}).stdout.splitlines()
    assert max(map(len, lines)) <= 60


class TestWhy:
    def test_every_degree_has_its_verdict(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", SPECS[1], "-e", "dev", "--why", "ml.g5.12xlarge")
        assert done.returncode == 0
        assert done.stdout.startswith("ml.g5.12xlarge is not the plan\n")
        assert [line.split()[0] for line in done.stdout.splitlines() if line.strip()[:1].isdigit()] == ["1", "2", "4"]

    def test_json(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", SPECS[1], "-e", "dev", "--why", "ml.g5.12xlarge", "--format", "json")
        document = json.loads(done.stdout)
        assert (document["endpoint"], document["environment"]) == ("llama-2-7b-chat", "dev")
        degrees = [(verdict["tensor_parallel_degree"], verdict["won"]) for verdict in document["verdicts"]]
        assert degrees == [(1, False), (2, False), (4, False)]

    def test_the_type_of_the_plan_is_named_as_chosen(self, seatrial: Seatrial) -> None:
        made = json.loads(seatrial("plan", SPECS[1], "-e", "dev", "--format", "json").stdout)
        chosen, degree = made["instance_type"]["value"], made["tensor_parallel_degree"]["value"]
        done = seatrial("plan", SPECS[1], "-e", "dev", "--why", chosen)
        assert done.stdout.startswith(f"{chosen} is the plan, with degree {degree}\n")

    def test_an_unknown_type_is_one_message_with_the_nearest_names(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", SPECS[1], "-e", "dev", "--why", "ml.g5.13xlarge")
        assert (done.returncode, done.stdout) == (2, "")
        assert "ml.g5.12xlarge" in done.stderr
        assert "Traceback" not in done.stderr

    def test_it_writes_no_lock(self, seatrial: Seatrial, project: Path) -> None:
        before = files(project)
        done = seatrial("plan", SPECS[1], "-e", "dev", "--why", "ml.g5.12xlarge", "--write")
        assert done.returncode == 2
        assert "Invalid value for '--why': can't be combined with --write" in done.stderr
        assert files(project) == before


def test_a_model_too_big_names_the_nearest_and_by_how_much(seatrial: Seatrial, project: Path) -> None:
    spec = project / SPECS[0]
    text = spec.read_text().replace("instance_types: [", "instance_types: [ml.g5.2xlarge, ml.g5.xlarge] # [")
    spec.write_text(text)
    done = seatrial("plan", SPECS[0], "-e", "dev", "--write")
    assert done.returncode == 2
    assert "SEA202" in done.stderr
    assert "ml.g5.2xlarge" in done.stderr
    assert "GiB" in done.stderr


def test_a_stale_lock_is_refused_with_the_command_that_mends_it(seatrial: Seatrial, project: Path) -> None:
    assert seatrial("plan", SPECS[1], "-e", "dev", "--write").returncode == 0
    assert seatrial("render", SPECS[1], "-e", "dev").returncode == 0
    spec = project / SPECS[1]
    spec.write_text(spec.read_text().replace("output_tokens: 256", "output_tokens: 255"))
    done = seatrial("render", SPECS[1], "-e", "dev")
    assert done.returncode == 2
    assert "SEA402" in done.stderr
    assert f"seatrial plan {SPECS[1]} --environment dev --write" in done.stderr
    assert seatrial("plan", SPECS[1], "-e", "dev", "--write").returncode == 0
    assert seatrial("render", SPECS[1], "-e", "dev").returncode == 0


def test_another_instance_type_is_another_endpoint(seatrial: Seatrial, project: Path) -> None:
    seatrial("plan", SPECS[1], "-e", "dev", "--write")
    spec = project / SPECS[1]
    before = spec.read_text()
    spec.write_text(re.sub(r"instance_types: \[[^]]*\]", "instance_types: [ml.g6.12xlarge]", before))
    changed = seatrial("plan", SPECS[1], "-e", "dev", "--write").stderr.splitlines()
    assert changed[1].startswith(
        "  instance type changes from ml.g6e.2xlarge to ml.g6.12xlarge, tensor parallel degree changes"
    )
    assert changed[1].endswith(": a second endpoint is made, tried, and then takes the traffic")
    assert "  generation: 1 -> 2" in changed
    assert seatrial("plan", SPECS[1], "-e", "dev", "--write").stderr.splitlines()[1:] == ["  unchanged"]


def test_locking_again_says_what_changed(seatrial: Seatrial, project: Path) -> None:
    lock = "locked in endpoints/llama-2-7b-chat.lock.json\n"
    seatrial("plan", SPECS[1], "-e", "dev", "--write")
    assert seatrial("plan", SPECS[1], "-e", "dev", "--write").stderr == f"{lock}  unchanged\n"
    spec = project / SPECS[1]
    spec.write_text(spec.read_text().replace("max_copies: 2\n\nenv", "max_copies: 1\n\nenv"))
    done = seatrial("plan", SPECS[1], "-e", "dev", "--write")
    assert done.stderr.startswith(lock)
    assert "  max_copies: 2 -> 1\n" in done.stderr
    assert "spec_digest" not in done.stderr


def test_a_change_of_what_is_only_deployed_keeps_the_lock(seatrial: Seatrial, project: Path) -> None:
    assert seatrial("plan", SPECS[1], "-e", "dev", "--write").returncode == 0
    spec, place = project / SPECS[1], project / "environments" / "dev.yaml"
    spec.write_text(spec.read_text().replace("Chat for the support portal.", "Chat."))
    place.write_text(place.read_text().replace("removal: destroy", "removal: retain"))
    assert seatrial("render", SPECS[1], "-e", "dev").returncode == 0


class TestAdopt:
    LOCK = "endpoints/llama-2-7b-chat.lock.json"

    def edit(self, project: Path, field: str, value: object) -> None:
        path = project / self.LOCK
        document = json.loads(path.read_text(encoding="utf-8"))
        document["environments"]["dev"][field]["value"] = value
        path.write_text(json.dumps(document), encoding="utf-8")

    def test_nothing_was_edited(self, seatrial: Seatrial, project: Path) -> None:
        seatrial("plan", SPECS[1], "-e", "dev", "--write")
        before = (project / self.LOCK).read_bytes()
        done = seatrial("plan", SPECS[1], "-e", "dev", "--adopt")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "no value was set by hand in the lock\n"
        assert (project / self.LOCK).read_bytes() == before

    def test_a_hand_edit_is_refused_until_it_is_adopted(self, seatrial: Seatrial, project: Path) -> None:
        seatrial("plan", SPECS[1], "-e", "dev", "--write")
        self.edit(project, "copy_count", 2)
        refused = seatrial("render", SPECS[1], "-e", "dev")
        assert refused.returncode == 2
        assert "dev.copy_count: SEA411: changed by hand: now 2\n" in refused.stderr
        done = seatrial("plan", SPECS[1], "-e", "dev", "--adopt", "--section", "warnings")
        assert done.returncode == 0
        assert "  copy_count: planned 1, adopted 2\n" in done.stderr
        assert "  instance_count: 1 -> 2 (follows)\n" in done.stderr
        assert "copy_count was set by hand to 2; the planner chose 1." in " ".join(done.stdout.split())
        assert seatrial("render", SPECS[1], "-e", "dev").returncode == 0

    def test_what_breaks_a_guard_rail_is_not_adopted(self, seatrial: Seatrial, project: Path) -> None:
        seatrial("plan", SPECS[1], "-e", "dev", "--write")
        self.edit(project, "copy_count", 500)
        before = (project / self.LOCK).read_bytes()
        done = seatrial("plan", SPECS[1], "-e", "dev", "--adopt")
        assert (done.returncode, done.stdout) == (2, "")
        assert "dev.copy_count: SEA413: 500 copies exceed 2, which guard_rails.max_copies allows (" in done.stderr
        assert (project / self.LOCK).read_bytes() == before

    def test_it_makes_no_other_plan(self, seatrial: Seatrial) -> None:
        done = seatrial("plan", SPECS[1], "-e", "dev", "--adopt", "--write")
        assert done.returncode == 2
        assert "Invalid value for '--adopt': can't be combined with --write" in done.stderr
