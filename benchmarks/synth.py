"""Speed of synthesis: our stacks against bare CloudFormation resources of the same kinds and number, in the same run.

    python benchmarks/synth.py

Each synthesis is a process of its own, without what is in it before (imports, start of Node); medians of three.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNTS = (1, 100)
RUNS = 3


def main() -> None:
    """Print a table: seconds from the app to its assembly."""
    print(f"{'endpoints':>9}  {'resources':>9}  {'ours s':>7}  {'bare s':>7}  ratio")
    for count in COUNTS:
        ours, bare = (statistics.median(_run(kind, count)[0] for _ in range(RUNS)) for kind in ("ours", "bare"))
        print(f"{count:9}  {_run('ours', count)[1]:9}  {ours:7.2f}  {bare:7.2f}  {ours / bare:5.2f}")


def _run(kind: str, count: int) -> tuple[float, int]:
    command = [sys.executable, __file__, kind, f"{count}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, resources = done.stdout.split()[-2:]
    return float(seconds), int(resources)


def synthesize(kind: str, count: int) -> tuple[float, int]:
    """Synthesize endpoints of one environment; return the seconds that it took, and the resources that came of it."""
    sys.path[:0] = [str(ROOT), str(ROOT / "constructs")]
    from dataclasses import replace  # noqa: PLC0415 (the process of a measurement alone needs what follows)

    from aws_cdk import App, CfnResource, Stack  # noqa: PLC0415

    from seatrial.deployment.load import load_deployments  # noqa: PLC0415
    from stacks.app_stacks import add_stacks  # noqa: PLC0415

    (deployment,) = load_deployments(ROOT / "endpoints", ROOT / "environments", "dev", "llama-2-7b-chat")
    named = [deployment.endpoint.model_copy(update={"name": f"chat-{number}"}) for number in range(count)]
    deployments = [replace(deployment, endpoint=endpoint) for endpoint in named]
    with tempfile.TemporaryDirectory() as folder:
        ours = App(outdir=f"{folder}/ours", analytics_reporting=False)
        began_s = time.perf_counter()
        add_stacks(ours, deployments)
        ours.synth()
        seconds = time.perf_counter() - began_s
        templates = {
            path.name.partition(".")[0]: json.loads(path.read_text())["Resources"]
            for path in Path(folder, "ours").glob("*.template.json")
        }
        if kind == "bare":
            bare = App(outdir=f"{folder}/bare", analytics_reporting=False)
            began_s = time.perf_counter()
            for name, resources in templates.items():
                stack = Stack(bare, name)
                for logical_id, resource in resources.items():
                    kept = {key: value for key, value in resource.items() if key == "Properties"}
                    CfnResource(stack, logical_id, type=resource["Type"], properties=kept.get("Properties"))
            bare.synth()
            seconds = time.perf_counter() - began_s
    return seconds, sum(map(len, templates.values()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*synthesize(sys.argv[1], int(sys.argv[2])))
    else:
        main()
