from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.report.terminal.axis import linear, linear_or_logarithmic
from seatrial.report.terminal.plot import NARROWEST, ROWS, WIDEST, Dot, Plot, draw

DOTS = (Dot(100, 20, "1"), Dot(300, 25, "4"), Dot(700, 30, "G 16", marked=True), Dot(800, 60, "K 32", marked=True))
PLOT = Plot("output tok/s of one copy", "TPOT p95, ms", DOTS, bound=50.0)


def test_a_plot_in_ascii() -> None:
    assert draw(PLOT, width=44, ascii_only=True) == [
        "TPOT p95, ms",
        "80.0 +",
        "     |",
        "     |                          K 32",
        "     |                             .o",
        "     |- - - - - - - - - - - - - - ..- - - -",
        "     |                            .",
        "40.0 +                           ..",
        "     |          4           G 16..",
        "     |   1     ..o..............o",
        "     |    o.....",
        "     |",
        "     |",
        "   0 +",
        "     +--------------------------------------",
        "      0                 500            1,000",
        "                    output tok/s of one copy",
    ]


def test_the_bound_is_drawn_below_the_curve_and_the_names() -> None:
    lines = draw(PLOT, width=60, ascii_only=False)
    assert sum("╌╌╌" in line for line in lines) == 1
    assert all(name in "\n".join(lines) for name in ("1", "4", "G 16", "K 32"))


def test_a_bound_far_above_the_curve_is_not_drawn() -> None:
    far = Plot(PLOT.x_title, PLOT.y_title, DOTS, bound=181.0)  # 3 × 60 is the highest that is drawn
    assert far.drawn_bound == ()
    assert Plot(PLOT.x_title, PLOT.y_title, DOTS, bound=180.0).drawn_bound == (180.0,)
    assert not any("╌" in line for line in draw(far, width=60, ascii_only=False))


def test_values_that_differ_tenfold_get_a_logarithmic_axis() -> None:
    steep = Plot(PLOT.x_title, PLOT.y_title, (*DOTS, Dot(801, 200, "64")))
    assert draw(steep, width=60, ascii_only=True)[0] == "TPOT p95, ms, logarithmic"
    assert not linear_or_logarithmic((20, 199)).logarithmic


@pytest.mark.parametrize(
    ("highest", "end"), [(0.7, 0.8), (94, 100), (96, 120), (610, 800), (1_200, 1_600), (9_600, 12_000)]
)
def test_a_linear_axis_ends_at_a_round_number(highest: float, end: float) -> None:
    assert linear((highest,)).high == pytest.approx(end)


def test_a_terminal_too_narrow_gets_a_sentence() -> None:
    assert draw(PLOT, width=NARROWEST - 1, ascii_only=True) == ["(the plot needs 40 columns)"]
    assert len(draw(PLOT, width=NARROWEST, ascii_only=True)) == ROWS + 4


positive = st.floats(min_value=1e-3, max_value=1e7)
latencies = st.just(0.0) | positive  # one output token has no time per further token


@given(
    points=st.lists(st.tuples(positive, latencies), min_size=1, max_size=12),
    bound=st.none() | positive,
    width=st.integers(min_value=0, max_value=300),
    characters=st.sampled_from(("ascii", "unicode")),
)
def test_every_plot_keeps_to_its_width_and_its_characters(
    points: list[tuple[float, float]], bound: float | None, width: int, characters: Literal["ascii", "unicode"]
) -> None:
    dots = tuple(Dot(x, y, str(index)) for index, (x, y) in enumerate(points))
    lines = draw(Plot("across", "up", dots, bound), width=width, ascii_only=characters == "ascii")
    if width >= NARROWEST:
        assert max(map(len, lines)) <= min(width, WIDEST)
    assert "".join(lines).isascii() or characters == "unicode"
