"""Speed of synthesis: our stacks against bare resources and outputs of the same templates, in the same run.

    python benchmarks/synth.py

Each synthesis is a process of its own, timed from its first import to its assembly; medians of five, taken in turn.
The bare app is the least that the CDK can do: it takes each resource, as one dictionary, from our finished template.
It reads no spec and no lock, packs no code, and refers to nothing by tokens.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parent.parent
COUNTS = (1, 100)
RUNS = 5
BUNDLED_NODE = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
"""The variables of a process that finds the virtual environment's Node before any other, as the CDK CLI does."""


class Entry(TypedDict, total=False):
    """A resource or an output of a template."""

    Type: str
    Properties: dict[str, object]
    Value: object


def main() -> None:
    """Print a table: seconds of a process that synthesizes."""
    print(f"{'endpoints':>9}  {'resources':>9}  {'ours s':>7}  {'bare s':>7}  ratio")
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            resources = _run("ours", count, folder)[1]
            pairs = [(_run("ours", count, folder)[0], _run("bare", count, folder)[0]) for _ in range(RUNS)]
        ours_s, bare_s = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{count:9}  {resources:9}  {ours_s:7.2f}  {bare_s:7.2f}  {ours_s / bare_s:5.2f}")


def _run(kind: str, count: int, folder: str) -> tuple[float, int]:
    command = [sys.executable, __file__, kind, f"{count}", folder]
    done = subprocess.run(
        command, cwd=ROOT, env=BUNDLED_NODE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    seconds, resources = done.stdout.split()[-2:]
    return float(seconds), int(resources)


def ours(count: int, folder: Path) -> int:
    """Synthesize endpoints of one environment and their trial service; return how many resources came of it."""
    from dataclasses import replace  # noqa: PLC0415 (the process of a measurement alone needs what follows)

    from aws_cdk import App  # noqa: PLC0415

    from seatrial.deployment.load import load_deployments  # noqa: PLC0415
    from seatrial_stacks.app_stacks import add_stacks  # noqa: PLC0415

    (deployment,) = load_deployments(ROOT / "endpoints", ROOT / "environments", "dev", "llama-2-7b-chat").deployments
    named = [deployment.endpoint.model_copy(update={"name": f"chat-{number}"}) for number in range(count)]
    app = App(outdir=f"{folder}/ours", analytics_reporting=False)
    add_stacks(app, [replace(deployment, endpoint=endpoint) for endpoint in named])
    app.synth()
    return sum(len(template["Resources"]) for template in _templates(folder).values())


def bare(folder: Path) -> int:
    """Synthesize the resources and outputs of our templates; return how many resources there are."""
    from aws_cdk import App, CfnOutput, CfnResource, Stack  # noqa: PLC0415

    app = App(outdir=f"{folder}/bare", analytics_reporting=False)
    templates = _templates(folder)
    for name, template in templates.items():
        stack = Stack(app, name)
        for logical_id, resource in template["Resources"].items():
            CfnResource(stack, logical_id, type=resource["Type"], properties=resource.get("Properties"))
        for logical_id, output in template.get("Outputs", {}).items():
            CfnOutput(stack, f"{logical_id}Output", value=json.dumps(output["Value"]))
    app.synth()
    return sum(len(template["Resources"]) for template in templates.values())


def _templates(folder: Path) -> dict[str, dict[str, dict[str, Entry]]]:
    paths = sorted(Path(folder, "ours").glob("*.template.json"))
    return {path.name.partition(".")[0]: json.loads(path.read_text()) for path in paths}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        kind, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
        sys.path[:0] = [str(ROOT), str(ROOT / "constructs"), str(ROOT / "stacks")]
        began_s = time.perf_counter()
        made = ours(count, folder) if kind == "ours" else bare(folder)
        print(time.perf_counter() - began_s, made)
    else:
        main()
