"""Plans of 30 current models from their `config.json`: how many are answered, in how many CPU seconds and lines.

    python -m benchmarks.models_of_today.plans               # every plan, one line each, and the totals
    python -m benchmarks.models_of_today.plans --screens DIR # write each screen to a file, too

`configs.json` holds the architecture numbers of published configurations, and the parameters that their makers name in
billions; of the models under `catalog` they stand in `scripts/facts/configs.json`. Each is planned for three workloads,
as `seatrial plan FOLDER` does, from a folder with nothing but its `config.json`.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from seatrial.cli.support.model_options import ModelOptions, load_specs_or_model
from seatrial.planner.planner import make_plan
from seatrial.report.terminal.plan import plan_view
from seatrial_base.errors import PlanError, SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
FACTS = HERE.parent.parent / "scripts" / "facts" / "configs.json"
WORKLOADS = {
    "chat": ModelOptions(input_tokens=1000, output_tokens=300, concurrency=16, ttft_p95_ms=3000, tpot_p95_ms=60),
    "documents": ModelOptions(input_tokens=6000, output_tokens=500, concurrency=32, ttft_p95_ms=15_000, tpot_p95_ms=80),
    "rate": ModelOptions(input_tokens=500, output_tokens=200, requests_per_second=4),
}
COLUMNS, MOST_LINES, MOST_CPU_S, LEAST_ANSWERED = 100, 15, 1.5, 0.95


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of one plan.

    Attributes:
        model: Its id.
        workload: A key of `WORKLOADS`.
        cpu_s: CPU time of loading, planning and showing.
        screen: What the terminal shows, without trailing spaces.
        problem: Why it was refused; empty for a plan.
    """

    model: str
    workload: str
    cpu_s: float
    screen: str = ""
    problem: str = ""

    @property
    def lines(self) -> int:
        """Lines of the screen."""
        return len(self.screen.splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan everything, print it, and return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--screens", type=Path)
    parser.add_argument("--only", default="", help="part of a model's id")
    asked = parser.parse_args(arguments)
    found: list[Planned] = []
    plan_one(next(iter(configurations())), "chat")  # imports and caches
    for model in configurations():
        if asked.only in model:
            found += [_told(plan_one(model, name), asked.screens) for name in WORKLOADS]
    answered = [one for one in found if not one.problem]
    cpu_s, lines = [one.cpu_s for one in found], [one.lines for one in answered] or [0]
    print(f"answered {len(answered)} of {len(found)}")
    print(f"CPU s of a plan: median {statistics.median(cpu_s):.2f}, most {max(cpu_s):.2f}")
    print(f"lines at {COLUMNS} columns: median {statistics.median(lines):g}, most {max(lines)}")
    good = len(answered) >= LEAST_ANSWERED * len(found) and max(cpu_s) <= MOST_CPU_S and max(lines) <= MOST_LINES
    return 0 if good else 1


def configurations() -> dict[str, dict[str, object]]:
    """Return the configuration of each model by its id."""
    table = json.loads((HERE / "configs.json").read_text(encoding="utf-8"))
    facts = {fact["id"]: fact["config"] for fact in json.loads(FACTS.read_text(encoding="utf-8"))["models"]}
    return {**{row["id"]: row["config"] for row in table["own"]}, **{each: facts[each] for each in table["catalog"]}}


def plan_one(model: str, workload: str) -> Planned:
    """Plan one model for one workload, from a folder with its `config.json`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / model.rpartition("/")[2]
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(configurations()[model]), encoding="utf-8")
        began = time.process_time()
        try:
            screen = planned_screen(folder, WORKLOADS[workload])
        except (PlanError, SpecError) as error:
            return Planned(model, workload, time.process_time() - began, problem=str(error))
        return Planned(model, workload, time.process_time() - began, screen)


def planned_screen(folder: Path, asked: ModelOptions) -> str:
    """Return what `seatrial plan FOLDER` shows on a terminal of 100 columns.

    Raises:
        PlanError: There is no plan.
        SpecError: The folder or the options are wrong.
    """
    (loaded,) = load_specs_or_model([folder], None, folder.parent / "environments", asked)
    console = Console(width=COLUMNS, color_system=None, record=True, file=io.StringIO())
    console.print(plan_view(make_plan(loaded), loaded, ()))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def _told(one: Planned, screens: Path | None) -> Planned:
    outcome = one.problem.partition("\n")[0][:90] if one.problem else f"{one.lines} lines"
    print(f"{one.model:44} {one.workload:10} {one.cpu_s:5.2f} s  {outcome}", flush=True)
    if screens is not None:
        screens.mkdir(parents=True, exist_ok=True)
        file = screens / f"{one.model.replace('/', '--')}.{one.workload}.txt"
        file.write_text(one.problem or one.screen, encoding="utf-8")
    return one


if __name__ == "__main__":
    sys.exit(main())
