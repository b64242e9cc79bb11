"""Speed of the commands over many specs: 100 endpoints in two environments, each command as a whole process.

    python benchmarks/many_specs.py

Every spec has a plan of its own: model, instance type and load vary. `diff` compares with the commit before a change of
one spec, or of all. The numbers depend on the machine, and on what else it does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from seatrial.operations.app import source_roots

ROOT = Path(__file__).parent.parent
COUNT = 100
ENVIRONMENTS = ("dev", "prod")
MODELS = (
    ("meta-llama/Llama-2-7b-chat-hf", "f5db02db724555f92da89c216ac04704f23d4590", "ml.g5.2xlarge"),
    ("mistralai/Mistral-7B-Instruct-v0.2", None, "ml.g5.2xlarge"),
    ("meta-llama/Llama-2-13b-chat-hf", None, "ml.g5.12xlarge"),
)
"""Models of the catalog, with an instance type that each of them fits on."""
SPEC = """name: chat-{number:03}
model:
  hub_id: {hub_id}
{revision}  accept_eula: true
workload:
  input_tokens: {input_tokens}
  output_tokens: {output_tokens}
  concurrency: {concurrency}
serving:
  instance_types: [{instance_type}]
scaling:
  min_copies: 1
  max_copies: 2
"""
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "bench@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def main() -> None:
    """Print a table: seconds of each command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in ("app.py", "cdk.json"):
            shutil.copy(ROOT / each, folder)
        for each in ("endpoints", "environments"):
            (folder / each).mkdir()
        for each in ENVIRONMENTS:
            shutil.copy(ROOT / "environments" / f"{each}.yaml", folder / "environments")
        print(f"{COUNT} specs in {len(ENVIRONMENTS)} environments{'':20}  wall s   CPU s")
        _measure(folder)


def _measure(folder: Path) -> None:
    _write(folder, range(COUNT), output_tokens=256)
    _row(folder, "validate", "validate", "endpoints")
    _row(folder, "plan --write, dev", "plan", "endpoints", "-e", "dev", "--write")
    _row(folder, "plan --write, prod", "plan", "endpoints", "-e", "prod", "--write")
    _row(folder, "plan --check, dev", "plan", "endpoints", "-e", "dev", "--check")
    _git(folder, "init", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "base")
    _row(folder, "diff, nothing changed", "diff", "--base", "HEAD", "--format", "markdown")
    for changed in (1, COUNT):
        _write(folder, range(changed), output_tokens=200)
        for environment in ENVIRONMENTS:
            _run(folder, "plan", "endpoints", "-e", environment, "--write")
        _row(folder, f"diff, {changed} changed", "diff", "--base", "HEAD", "--format", "markdown")
    began_s, began_cpu_s = time.monotonic(), _cpu_s()
    variables = {"CDK_OUTDIR": f"{folder}/cdk.out", "CDK_CONTEXT_JSON": "{}"}
    _process([sys.executable, "app.py"], folder, variables)
    _print("synth (python app.py)", began_s, began_cpu_s)


def _write(folder: Path, numbers: range, *, output_tokens: int) -> None:
    for number in numbers:
        hub_id, revision, instance_type = MODELS[number % len(MODELS)]
        text = SPEC.format(
            number=number,
            hub_id=hub_id,
            revision=f"  revision: {revision}\n" if revision else "",
            input_tokens=200 + number,
            output_tokens=output_tokens,
            concurrency=8 + number % 8,
            instance_type=instance_type,
        )
        (folder / "endpoints" / f"chat-{number:03}.yaml").write_text(text)


def _row(folder: Path, name: str, *arguments: str) -> None:
    began_s, began_cpu_s = time.monotonic(), _cpu_s()
    _run(folder, *arguments)
    _print(name, began_s, began_cpu_s)


def _print(name: str, began_s: float, began_cpu_s: float) -> None:
    print(f"{name:42}  {time.monotonic() - began_s:6.1f}  {_cpu_s() - began_cpu_s:6.1f}", flush=True)


def _cpu_s() -> float:
    """Return the CPU seconds of all processes that ended."""
    times = os.times()
    return times.children_user + times.children_system


def _run(folder: Path, *arguments: str) -> None:
    _process([sys.executable, "-m", "seatrial.cli", *arguments], folder, {})


def _process(command: list[str], folder: Path, variables: dict[str, str]) -> None:
    roots = os.pathsep.join(source_roots(ROOT))
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    given = {**os.environ, **GIT, "PYTHONPATH": roots, "PATH": tools, **variables}
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **GIT}, check=True)  # noqa: S607 (the user's git)


if __name__ == "__main__":
    main()
