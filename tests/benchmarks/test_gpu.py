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
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu.compare import compared_lines
from seatrial.documents.calibration import CalibrationSource
from seatrial.planner.calibration import calibrate_endpoint, measured_copy
from seatrial.planner.gpu_rows import gpu_points
from seatrial.planner.planner import make_plan
from seatrial.planner.predict.simulation import outcome
from seatrial.planner.search.capacity import trial_protocol
from seatrial_base.errors import SpecError
from tests.planner.conftest import ask  # noqa: F401 (a fixture)
from tests.waiting import until

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "benchmarks" / "planner_accuracy" / "measured_rows" / "gpu_at_hand.csv"
FAKE = """import sys, tests.cli.test_bench as bench
bench.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), bench.OpenAI).serve_forever()"""
NEVER = ("sh", "-c", "sleep 60 & echo $!; wait")
"""Never ready; its log has the process that it would leave behind."""


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
    config, tokenizer = (
        json.loads((tmp_path / "models" / "llama-3.1-8b" / f"{name}.json").read_text())
        for name in ("config", "tokenizer")
    )
    assert sorted(tokenizer["model"]["vocab"].values()) == [*range(config["vocab_size"])]


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
    for left in map(Path, (f"/proc/{process_id}/cmdline" for process_id in log.read_text().split())):
        until(lambda: not left.exists() or not left.read_bytes(), "the end of the server's process")  # noqa: B023 (now)


@pytest.mark.parametrize(
    ("driver", "arguments", "line"),
    [
        ("exit 9", ["llama-3.1-8b"], "no GPU at hand"),
        ("echo NVIDIA H200, 143771 MiB, 580.1", ["llama-3.1-8b"], "no vLLM at hand: there is no 'vllm serve'"),
        ("exit 9", ["llama-9b", "--runs", "1,77"], "unknown: 77, llama-9b"),
        ("exit 9", ["llama-3.1-8b", "--runs", "9"], "none of the runs has the model"),
    ],
)
def test_what_is_missing_is_said_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    driver: str,
    arguments: list[str],
    line: str,
) -> None:
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{driver}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["gpu", "30", *arguments])
    with pytest.raises(SystemExit, match="2"):
        gpu.main()
    assert re.fullmatch(f"{re.escape(line)}.*\n", capsys.readouterr().err)


def test_every_level_of_the_table_is_one_that_the_load_client_takes() -> None:
    loads = [load for loads in gpu.schedule([*gpu.DATA["models"]], [*gpu.RUNS]).values() for load in loads]
    assert {load["run"] for load in loads} == {*gpu.RUNS}
    sent = [gpu.request_of("http://127.0.0.1:1", load, {}, 60).load for load in loads]
    assert all(max(load.get("levels", 0), load.get("rate", 0)) for load in loads)
    assert {one.start for one in sent} == {"spread", "together"}


def test_rows_of_a_real_h200_stand_beside_their_predictions() -> None:
    rows: list[dict[str, Any]] = [
        {**row, "start": "together", "cut": "", "failed": 0, "instance_type": "NVIDIA H200"}
        | {"output_tok_s": float(row["output_tok_s"]), "ttft_ms_mean": float(row["ttft_ms"])}
        for row in csv.DictReader(MEASURED.read_text().splitlines())
    ]
    *_, cut, error, _, inside = compared_lines([*rows, {**rows[0], "cut": "no time was left"}])
    assert error.startswith(f"tok/s: mean |ln| of {len(rows)} levels 0.")
    assert float(error.split()[-1]) < 0.2
    assert inside.endswith(f" of {len(rows)}")
    assert cut.endswith("no time was left")


def test_rows_of_the_planned_deployment_calibrate_it_and_others_are_named(ask: Ask) -> None:  # noqa: F811
    serving = {"instance_types": ["ml.p5.4xlarge"], "engine": "vllm", "engine_version": "0.20.2"}
    workload = {"input_tokens": 1000, "output_tokens": 200, "concurrency": 16}
    loaded = ask(model={"hub_id": "meta-llama/Llama-3.1-8B-Instruct"}, serving=serving, workload=workload)
    plan, protocol = make_plan(loaded), trial_protocol(loaded.endpoint.trial)
    copy = measured_copy(loaded, plan)
    same = {"model": plan.model_name, "instance_type": "NVIDIA H100 80GB HBM3", "tp_degree": 1, "precision": "bf16"}
    same |= {"engine": "vllm", "engine_version": "0.20.2", **workload, "start": "spread", "cut": "", "failed": 0}
    speeds = {level: 0.8 * outcome(copy, level, protocol).output_tok_s for level in (1, 16)}
    rows = [{**same, "concurrency": level, "output_tok_s": speed} for level, speed in speeds.items()]
    others = [{**rows[0], "engine_version": "0.11.0", "instance_type": "NVIDIA L4"}, {**rows[0], "start": "together"}]

    points, left_out = gpu_points("\n".join(map(json.dumps, (*rows, *others))), "rows.jsonl", loaded, plan)
    entry = calibrate_endpoint(loaded, plan, points, CalibrationSource(file="rows.jsonl", digest=""))
    assert ([point.concurrency for point in points], left_out) == ([1, 16], 2)
    assert (entry.fixed, entry.marginal) == pytest.approx((1.25, 1.25), rel=0.03)
    with pytest.raises(SpecError) as refused:
        gpu_points(json.dumps(others[0]), "rows.jsonl", loaded, plan)
    assert [problem.place.field for problem in refused.value.problems] == ["instance_type", "engine_version"]
    with pytest.raises(SpecError, match=r"rows\.jsonl:2: SEA407"):
        gpu_points(f"{json.dumps(rows[0])}\n[]\n", "rows.jsonl", loaded, plan)
