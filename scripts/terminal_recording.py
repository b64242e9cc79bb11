"""Records a terminal and draws it as an animated SVG: `python scripts/terminal_recording.py record`, then `draw`.

`record` runs the commands below, which takes two minutes, and keeps each line with its time in
`docs/images/terminal.json`. `draw` writes `docs/images/terminal.svg` from that file alone: same input, same bytes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "docs" / "images" / "terminal.json"
DRAWING = ROOT / "docs" / "images" / "terminal.svg"
COMMANDS: Final = (
    "seatrial plan Qwen/Qwen3-32B --input 2000 --output 300 --concurrency 16 --ttft-p95 2500 --tpot-p95 60",
    "seatrial demo",
)
COLUMNS, ROWS = 96, 26
CHARACTER, LINE, EDGE = 8.4, 18, 16  # pixels
LONGEST_PAUSE_S: Final = 1.2
"""Between two lines that are shown; the times that stand in them are the real ones."""
SCREEN_S: Final = 2.5
"""How long a full screen, or the end of a command, stays."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Shown:
    """A line that is shown from one moment to another, in seconds, in a row of the terminal."""

    text: str
    row: int
    begin_s: float
    end_s: float


class Run(TypedDict):
    """A command, and its lines, each with the seconds since it began."""

    command: str
    lines: list[tuple[float, str]]


def recorded(command: str) -> Run:
    """Run a command and return its lines, each with the seconds since it began."""
    variables = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables.get("PATH", "")])
    began_s, lines = time.monotonic(), list[tuple[float, str]]()
    with subprocess.Popen(
        command.split(), cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            text = CONTROL.sub("", line).replace(f"{ROOT}/", "").rstrip()
            lines.append((round(time.monotonic() - began_s, 1), text))
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}:\n" + "\n".join(text for _, text in lines))
    return {"command": command, "lines": lines}


def screens(recording: Sequence[Run]) -> Iterator[list[tuple[float, str]]]:
    """Yield what stands on one screen: lines with the pause before each, in seconds."""
    for run in recording:
        screen, before_s = [(0.0, f"$ {run['command']}")], 0.0
        for at_s, text in run["lines"]:
            for part in _folded(text):
                if len(screen) == ROWS:
                    yield screen
                    screen = []
                screen.append((min(LONGEST_PAUSE_S, at_s - before_s), part))
                before_s = at_s
        yield screen


def _folded(text: str) -> list[str]:
    return [text[start : start + COLUMNS] for start in range(0, len(text), COLUMNS)] or [""]


def shown(recording: Sequence[Run]) -> tuple[list[Shown], float]:
    """Return every line with its row and times, and how long all of it takes."""
    lines, now_s = [], 0.0
    for screen in screens(recording):
        begins = []
        for pause_s, _ in screen:
            now_s += max(0.05, pause_s)
            begins.append(now_s)
        now_s += SCREEN_S
        lines += [
            Shown(text, row, begin_s, now_s)
            for row, ((_, text), begin_s) in enumerate(zip(screen, begins, strict=True))
            if text.strip()
        ]
    return lines, now_s


def drawing(recording: Sequence[Run]) -> str:
    """Return the SVG; without animation, as for those who asked for none, it shows the first screen."""
    lines, whole_s = shown(recording)
    width, height = round(COLUMNS * CHARACTER + 2 * EDGE), ROWS * LINE + 2 * EDGE
    first_s = lines[0].begin_s
    end_of_first_s = lines[0].end_s
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>seatrial plan, then the demo: deploy, trial, update, rollback</title>",
        "<style>",
        "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre;visibility:hidden}",
        "text.command{fill:#7fdbca;font-weight:bold}",
        "text.first{visibility:visible}",
        "@media(prefers-reduced-motion:no-preference){text.first{visibility:hidden}",
        *_moments(lines, whole_s),
        "}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#011627"/>',
    ]
    for number, line in enumerate(lines):
        is_first = first_s <= line.begin_s and line.end_s == end_of_first_s
        kind = " ".join((["command"] if line.text.startswith("$ ") else []) + (["first"] if is_first else []))
        attribute = f' class="{kind}"' if kind else ""
        y = EDGE + LINE * (line.row + 1) - 5
        length = f' textLength="{len(line.text) * CHARACTER:.0f}" lengthAdjust="spacingAndGlyphs"'
        parts.append(f'<text id="l{number}"{attribute} x="{EDGE}" y="{y}"{length}>{escape(line.text)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _moments(lines: Sequence[Shown], whole_s: float) -> Iterator[str]:
    for number, line in enumerate(lines):
        begin, end = (f"{100 * at_s / whole_s:.3f}%" for at_s in (line.begin_s, line.end_s))
        last = "" if line.end_s >= whole_s else f"{end}{{visibility:hidden}}"
        yield f"@keyframes k{number}{{0%{{visibility:hidden}}{begin}{{visibility:visible}}{last}}}"
        yield f"#l{number}{{animation:k{number} {whole_s:.1f}s step-end infinite}}"


def main() -> None:
    """Record or draw."""
    if sys.argv[1:] == ["record"]:
        runs = [recorded(command) for command in COMMANDS]
        RECORDING.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    elif sys.argv[1:] != ["draw"]:
        sys.exit(__doc__)
    DRAWING.write_text(drawing(json.loads(RECORDING.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
