"""Draws predicted over measured of left-out rows, by family: `docs/images/accuracy.svg`.

Needs Matplotlib, which the project itself does not:

    uv run --isolated --with matplotlib==3.11.2 python -m benchmarks.planner_accuracy.scatter

Equal rows give equal bytes. The file's title names the digest of the rows, by which a test knows a stale picture.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.planner_accuracy.judged import LEFT_OUT, JudgedRow, read_judged
from benchmarks.planner_accuracy.questions import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

PICTURE = FOLDER.parents[1] / "docs" / "images" / "accuracy.svg"
PANELS = (
    ("Mean end-to-end latency (s)", ("e2e_mean_ms", "e2e_p50_ms"), 1e-3),
    ("Output tokens per second", ("output_tok_s",), 1.0),
)
COLOURS = {"dense": "#0b6e99", "MoE": "#d9730d", "MLA": "#6940a5"}
_SIZE_INCHES = (10.0, 5.0)
_POINTS_PER_INCH = 80
_AROUND = (0.8, 1.25)  # the dashed lines: 25 % more and the same less


def digest() -> str:
    """Return the digest of the rows."""
    return hashlib.sha256(LEFT_OUT.read_bytes()).hexdigest()[:12]


def draw(rows: Sequence[JudgedRow]) -> Figure:
    """Return the picture: one panel for latencies, one for throughputs."""
    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    for axes, (title, names, factor) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        for family in COLOURS:
            _points(axes, [row for row in rows if row.family == family], family, names, factor)
        _diagonal(axes)
        axes.set(title=title, xlabel="measured", ylabel="predicted, model left out of the fit")
        axes.legend(loc="upper left", frameon=False)
    return figure


def main() -> None:
    """Write the picture."""
    mpl.rcParams.update({"svg.hashsalt": "seatrial", "svg.fonttype": "none"})
    rows = [row for row in read_judged() if row.left_out == "model"]
    draw(rows).savefig(PICTURE, dpi=_POINTS_PER_INCH, metadata={"Date": None, "Title": f"left_out.csv {digest()}"})
    print(PICTURE.name)


def _points(axes: Axes, rows: Sequence[JudgedRow], family: str, names: tuple[str, ...], factor: float) -> None:
    pairs = [
        (measured * factor, predicted * factor)
        for row in rows
        for name in names
        if (measured := getattr(row.measured, name)) and (predicted := getattr(row.predicted, name))
    ]
    if pairs:
        across, up = zip(*pairs, strict=True)
        # Points as an image within the drawing: as paths they are nine tenths of its bytes.
        label = f"{family} ({len(pairs)})"
        axes.loglog(across, up, ".", markersize=3, alpha=0.6, color=COLOURS[family], label=label, rasterized=True)


def _diagonal(axes: Axes) -> None:
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    high = max(axes.get_xlim()[1], axes.get_ylim()[1])
    for around, style in ((1.0, "-"), *((around, "--") for around in _AROUND)):
        axes.plot([low, high], [low * around, high * around], style, color="#888888", linewidth=0.7)
    axes.set(xlim=(low, high), ylim=(low, high))
    axes.minorticks_off()


if __name__ == "__main__":
    main()
