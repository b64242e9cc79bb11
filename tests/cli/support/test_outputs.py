"""No output destroys an input, a full disk keeps the verdict, and what is read is a file that has an end."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import files
from tests.cli.test_bench import serving
from tests.report.samples import concluded, sample_level, sample_request
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Seatrial

PROMPTS = '{"prompt": "Why is the sea salt?"}\n'


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with serving() as origin:
        yield origin


@pytest.fixture
def inputs(project: Path) -> Path:
    (project / "p.jsonl").write_text(PROMPTS)
    (project / "base.json").write_text("{}")
    (project / "page").mkdir()
    (project / "page" / "report.json").write_text("{}")
    (project / "hard.jsonl").hardlink_to(project / "p.jsonl")
    (project / "soft.jsonl").symlink_to("p.jsonl")
    return project


def clash(option: str, path: str, name: str) -> str:
    message = f"command line: {option}: SEA514: {path} is also read as {name}"
    return f"{message}\n  hint: choose another output\n"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("--prompts p.jsonl --records p.jsonl", clash("--records", "p.jsonl", "--prompts")),
        ("--prompts p.jsonl --records ./page/../p.jsonl", clash("--records", "page/../p.jsonl", "--prompts")),
        ("--prompts p.jsonl --records hard.jsonl", clash("--records", "hard.jsonl", "--prompts")),
        ("--prompts soft.jsonl --records p.jsonl", clash("--records", "p.jsonl", "--prompts")),
        ("--trace p.jsonl --records p.jsonl", clash("--records", "p.jsonl", "--trace")),
        ("--tokenizer p.jsonl --records p.jsonl", clash("--records", "p.jsonl", "--tokenizer")),
        ("--against base.json --records base.json", clash("--records", "base.json", "--against")),
        ("--against page/report.json -o page", clash("--output (report.json)", "page/report.json", "--against")),
        (
            "--records page/report.json -o page",
            "command line: --output (report.json): SEA514: page/report.json is also the output --records\n"
            "  hint: choose two different files\n",
        ),
        (
            "--prompts p.jsonl --against base.json --records p.jsonl -o page",
            clash("--records", "p.jsonl", "--prompts"),
        ),
    ],
)
def test_a_trial_never_writes_over_what_it_reads(seatrial: Seatrial, inputs: Path, written: str, told: str) -> None:
    before = files(inputs)
    done = seatrial("bench", "--url", "http://localhost", *written.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
    assert files(inputs) == before


def test_a_report_never_writes_over_what_it_is_compared_with(seatrial: Seatrial, inputs: Path) -> None:
    done = seatrial("report", "base.json", "--against", "page/report.json", "-o", "page")
    assert (done.returncode, done.stderr) == (2, clash("--output (report.json)", "page/report.json", "--against"))


@pytest.mark.parametrize("command", [("plan", "--write"), ("images", "lock")])
def test_a_lock_that_is_a_link_to_the_spec_is_not_written(
    seatrial: Seatrial, project: Path, command: tuple[str, ...]
) -> None:
    lock = project / "endpoints" / "falcon-40b.lock.json"
    lock.unlink(missing_ok=True)
    lock.symlink_to("falcon-40b.yaml")
    before = files(project)
    done = seatrial(*command, "endpoints/falcon-40b.yaml", "-e", "dev")
    assert (done.returncode, done.stderr) == (2, clash("the lock", "endpoints/falcon-40b.lock.json", "SPEC"))
    assert files(project) == before


def test_a_calibration_is_not_written_over_its_points(seatrial: Seatrial, project: Path) -> None:
    points = project / "endpoints" / "falcon-40b.calibration.json"
    points.write_text("concurrency,output_tok_s,ms_per_token\n")
    spec = "endpoints/falcon-40b.yaml"
    name = points.relative_to(project).as_posix()
    done = seatrial("calibrate", spec, "-e", "dev", "--points", name, "--write")
    assert (done.returncode, done.stderr) == (2, clash("--write", name, "--points"))


MEASURED = "verdict: pass: no objective is set; 3 of 3 requests succeeded at concurrency 1 per copy"


def bench_on_a_full_disk(project: Path, origin: str, *outputs: str) -> subprocess.CompletedProcess[str]:
    """Run a trial whose files can have no byte, as on a disk that is full."""

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    command = [sys.executable, "-m", "seatrial.cli", "bench", "--url", f"{origin}/v1", "--requests", "3"]
    return subprocess.run(
        [*command, "--levels", "1,2", *outputs],
        cwd=project,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=fill,
    )


def test_a_full_disk_keeps_the_verdict_and_names_what_is_not_written(project: Path, origin: str) -> None:
    (project / "requests.jsonl").write_text("those of before\n")
    before = files(project)
    done = bench_on_a_full_disk(project, origin, "--records", "requests.jsonl", "-o", "page")
    assert MEASURED in done.stdout.splitlines()
    assert "concurrency 1" in [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (
        1,
        "requests.jsonl: SEA506: can't be written: File too large; the measurement continues\n"
        "page: SEA506: can't be written: File too large\n",
    )
    assert files(project) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_records_to_a_device_that_is_full_keep_the_verdict(seatrial: Seatrial, origin: str) -> None:
    done = seatrial("bench", "--url", f"{origin}/v1", "--requests", "3", "--levels", "1", "--records", "/dev/full")
    told = "/dev/full: SEA506: can't be written: No space left on device; the measurement continues\n"
    assert (done.returncode, done.stderr) == (1, told)
    assert MEASURED in done.stdout.splitlines()
    assert Path("/dev/full").is_char_device()


def test_an_interrupted_or_refused_trial_leaves_the_records_of_before(seatrial: Seatrial, inputs: Path) -> None:
    before = files(inputs)
    done = seatrial("bench", "--url", "http://localhost", "--against", "base.json", "--records", "soft.jsonl")
    assert done.returncode == 2
    assert files(inputs) == before


@pytest.mark.parametrize(
    "command",
    [
        ("report", "{}"),
        ("report", "page/report.json", "--against", "{}", "-o", "new"),
        ("bench", "--url", "http://localhost", "--against", "{}"),
        ("bench", "--url", "http://localhost", "--prompts", "{}"),
        ("bench", "--url", "http://localhost", "--trace", "{}"),
        ("validate", "{}", "--environments", "environments"),
        ("predict", "{}"),
        ("calibrate", "endpoints/falcon-40b.yaml", "-e", "dev", "--points", "{}"),
        ("convert", "{}", "--to", "tgi"),
    ],
)
def test_what_has_no_end_is_refused_with_a_rule(seatrial: Seatrial, inputs: Path, command: tuple[str, ...]) -> None:
    now = concluded(sample_request(sample_plan()), tuple(map(sample_level, (1, 4, 16))), "")
    (inputs / "page" / "report.json").write_text(now.to_json())
    done = seatrial(*(word.format("/dev/zero") for word in command))
    assert done.returncode in {1, 2}
    assert re.search(r"SEA\d{3}: .*(not a|no) regular file", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_is_not_waited_for(seatrial: Seatrial, inputs: Path) -> None:
    os.mkfifo(inputs / "pipe")
    done = seatrial("report", "pipe")
    told = "pipe: SEA501: the result can't be read: a pipe, not a regular file\n"
    assert (done.returncode, done.stderr) == (1, f"{told}  hint: give a file or an s3:// URI\n")
