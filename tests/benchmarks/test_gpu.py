"""The planner on a GPU at hand: the whole path against a server that stands for vLLM, and rows of a real H200."""

from __future__ import annotations

import csv
import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu.compare import compared_lines
from benchmarks.planner_accuracy.measured import FOLDER
from tests.waiting import until

ROOT = Path(__file__).parents[2]
FAKE = """import sys, tests.cli.test_bench as bench
bench.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), bench.OpenAI).serve_forever()"""
NEVER = ("sh", "-c", "sleep 60 & echo $!; wait")
"""Never ready; its log names the process that it would leave behind."""


def started(out: Path, seconds: float, *engine: str) -> subprocess.Popen[str]:
    options = ["--simulated", "--runs", "0", "--engine-command", shlex.join(engine), "--out", str(out)]
    command = [sys.executable, "-m", "benchmarks.gpu", str(seconds), "llama-3.1-8b", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def test_a_level_is_measured_and_compared_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    told, _ = (process := started(tmp_path, 40, sys.executable, "-c", FAKE)).communicate(timeout=40)
    (row,) = map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())
    assert (process.returncode, row["instance_type"]) == (0, "none (simulated)")
    assert told.startswith("none (simulated), vllm 0.20.2\n")
    assert (row["requests"], row["failed"], row["start"], row["weights"]) == (3, 0, "spread", "dummy")
    assert 0 < row["ttft_ms_p50"] <= row["ttft_ms_p95"] < 1000 * 8 / row["output_tok_s"] * 10
    written = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("models/llama-3.1-8b/*.json")}
    words = written["tokenizer"]["model"]["vocab"]
    assert sorted(words.values()) == [*range(written["config"]["vocab_size"])]


@pytest.mark.parametrize(
    ("engine", "seconds", "sent", "code", "words"),
    [
        (("sh", "-c", "exit 7"), 30, None, 1, "the server ended with status 7"),
        (NEVER, 6.5, None, 1, "the 6.5 s are over"),
        (NEVER, 30, signal.SIGINT, 130, "interrupted"),
    ],
)
def test_a_server_that_never_serves_ends_with_a_line_and_all_its_processes(
    tmp_path: Path, engine: tuple[str, ...], seconds: float, sent: signal.Signals | None, code: int, words: str
) -> None:
    process, log = started(tmp_path, seconds, *engine), tmp_path / "llama-3.1-8b.log"
    if sent:
        until(lambda: log.exists() and log.read_text(), "the server's start")
        process.send_signal(sent)
    told = process.communicate(timeout=30)
    assert (process.returncode, words in told[1], "Traceback" in told[1]) == (code, True, False), told
    for left in (Path(f"/proc/{number}/cmdline") for number in log.read_text().split()):
        until(lambda: not left.exists() or not left.read_bytes(), "the server's end")  # noqa: B023 (it is read at once)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("llama-3.1-8b", "no GPU at hand"),
        ("llama-3.1-8b", "no vLLM at hand: there is no 'vllm serve'"),
        ("llama-9b --runs 1,77", "unknown: 77, llama-9b"),
        ("llama-3.1-8b --runs 9", "none of the runs has the model"),
    ],
)
def test_what_is_missing_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, line: str
) -> None:
    driver = "exit 9" if "no GPU" in line else "echo NVIDIA H200, 143771 MiB, 580.1"
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{driver}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["gpu", "30", *arguments.split()])
    with pytest.raises(SystemExit, match="2"):
        gpu.main()
    assert re.fullmatch(f"{re.escape(line)}.*\n", capsys.readouterr().err)


def test_every_level_of_the_table_is_one_that_the_load_client_takes() -> None:
    loads = [load for loads in gpu.schedule([*gpu.DATA["models"]], [*gpu.RUNS]).values() for load in loads]
    assert {load["run"] for load in loads} == {*gpu.RUNS}
    for load in loads:
        sent = gpu.request_of("http://127.0.0.1:1", load, {}, 60).load
        assert [*(sent.rates_per_s or sent.concurrency_levels)] == [load.get("levels") or load["rate"]]


def test_rows_of_a_real_h200_stand_beside_their_predictions() -> None:
    cells = [*csv.DictReader((FOLDER / "gpu_at_hand.csv").read_text().splitlines())]
    same = {"instance_type": "NVIDIA H200", "start": "together", "cut": "", "failed": 0}
    rows = [{**row, **same, "output_tok_s": float(row["output_tok_s"])} for row in cells]
    unjudged = [{**rows[0], "arrival": "constant"}, {**rows[0], "cut": "no time"}]
    *_, burst, cut, error, inside = compared_lines([*rows, *unjudged])
    assert error.startswith(f"tok/s: mean |ln| of {len(cells)} levels 0.")
    assert float(error.split()[-1]) < 0.2
    assert inside.endswith(f" of {len(cells)}")
    assert burst.endswith(" a burst is not predicted")
    assert cut.endswith("no time")
