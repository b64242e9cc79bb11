"""Lints 1,000 files as one process and prints the wall time: the target is 2 s or less.

    python benchmarks/lint/speed.py

The files are of four forms with about twenty keys each, half of them with findings. The time depends on the machine.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES = 1000
RUNS = 3
ROOT = Path(__file__).parents[2]
OPTIONS = {
    "model_id": "org/model",
    "revision": "abc",
    "rolling_batch": "vllm",
    "tensor_parallel_degree": "4",
    "dtype": "bf16",
    "max_model_len": "4096",
    "max_rolling_batch_size": "64",
    "gpu_memory_utilization": "0.9",
    "enable_prefix_caching": "true",
    "enable_chunked_prefill": "true",
    "enforce_eager": "false",
    "trust_remote_code": "false",
    "model_loading_timeout": "1800",
    "predict_timeout": "480",
    "seed": "1",
}
WRONG = {"max_rolling_batch": "64", "enable_prefix_cachin": "true", "swap_space": "4", "max_input_len": "1024"}


def main() -> None:
    """Write the files, lint them, print seconds and findings of each run."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(FILES):
            _write(Path(folder), number)
        for _ in range(RUNS):
            began_s, began_cpu_s = time.monotonic(), _cpu_s()
            command = [sys.executable, "-m", "seatrial.cli", "lint", folder, "--format", "json"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
            wall_s = time.monotonic() - began_s
            cpu_s = _cpu_s() - began_cpu_s
            found = len(json.loads(done.stdout))
            print(f"{FILES} files: {wall_s:.2f} s ({cpu_s:.2f} s of CPU), {found} findings, exit {done.returncode}")


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _write(folder: Path, number: int) -> None:
    options = OPTIONS | (WRONG if number % 2 else {}) | {f"unknown_{number}": "1"}
    home = folder / str(number)
    home.mkdir()
    env = {f"OPTION_{name.upper()}": value for name, value in options.items()}
    if number % 4 == 0:
        (home / "serving.properties").write_text("".join(f"option.{name}={value}\n" for name, value in options.items()))
    elif number % 4 == 1:
        (home / "container.env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    elif number % 4 == 2:  # noqa: PLR2004 (the third of four forms)
        (home / "env.json").write_text(json.dumps(env, indent=2))
    else:
        container = {"Image": "x/djl-inference:0.36.0-lmi27.0.0-cu130", "Environment": env}
        (home / "model.json").write_text(json.dumps({"ModelName": "m", "PrimaryContainer": container}, indent=2))


if __name__ == "__main__":
    main()
