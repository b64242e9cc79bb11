from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

import pytest

from seatrial.report.chart.panel import Band, Bound, Mark, Panel, Series
from seatrial.report.chart.scale import LinearScale, Log2Scale

SVG = "{http://www.w3.org/2000/svg}"


def panel(
    points: tuple[tuple[int, float | None], ...],
    *,
    bounds: tuple[Bound, ...] = (),
    marks: tuple[Mark, ...] = (),
    bands: tuple[Band, ...] = (),
) -> Panel:
    series = (Series("p95", "first", points),)
    return Panel(
        anchor="a", title="T", unit="ms", description="d", series=series, bounds=bounds, marks=marks, bands=bands
    )


def drawn(shown: Panel) -> ET.Element:
    return ET.fromstring(shown.svg)  # noqa: S314 (our own text)


def test_equal_factors_are_equal_steps() -> None:
    scale = Log2Scale.around([1, 4, 16], 0, 100)
    assert [scale.at(value) for value in (1, 2, 4, 16)] == [0, 25, 50, 100]


def test_a_single_concurrency_stands_in_the_middle() -> None:
    assert Log2Scale.around([8], 0, 100).at(8) == 50


def test_crowded_ticks_are_dropped_from_the_left() -> None:
    scale = Log2Scale.around([1, 60, 64], 0, 100)
    assert scale.ticks([1, 60, 64], distance=20) == (1, 64)


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0.9, ["0", "0.25", "0.5", "0.75", "1"]),
        (58.9, ["0", "20", "40", "60"]),
        (1_339, ["0", "500", "1,000", "1,500"]),
        (16_300, ["0", "5k", "10k", "15k", "20k"]),
        (0.0, ["0", "0.25", "0.5", "0.75", "1"]),
    ],
)
def test_ticks_are_round_and_reach_the_highest_value(most: float, labels: list[str]) -> None:
    scale = LinearScale.up_to(most, 100, 0)
    assert [scale.label(tick) for tick in scale.ticks] == labels
    assert scale.top >= most


def test_a_gap_is_not_bridged() -> None:
    svg = drawn(panel(((1, 10.0), (2, 20.0), (4, None), (8, 30.0), (16, 40.0))))
    lines = [line.get("points", "").split() for line in svg.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines] == [2, 2]
    assert len(list(svg.iter(f"{SVG}circle"))) == 4


def test_a_bound_far_above_the_data_is_named_and_does_not_flatten_the_curve() -> None:
    svg = drawn(panel(((1, 10.0), (2, 20.0)), bounds=(Bound(2000.0, "SLO p95 ≤ 2,000 ms"),)))
    assert "SLO p95 ≤ 2,000 ms ↑ above this axis" in [text.text for text in svg.iter(f"{SVG}text")]
    assert not [line for line in svg.iter(f"{SVG}line") if line.get("class") == "bound"]


@pytest.mark.parametrize("values", [(14.0, 14.5, 15.0), (19.9, 20.0, 20.0), (500.0, 501.0, 20.0), (0.1, 0.2, 0.3)])
def test_labels_of_bounds_do_not_overlap(values: tuple[float, ...]) -> None:
    bounds = tuple(Bound(value, f"SLO {value}") for value in values)
    svg = drawn(panel(((1, 10.0), (2, 20.0)), bounds=bounds))
    places = sorted(float(text.get("y", "")) for text in svg.iter(f"{SVG}text") if text.get("class") == "bound-label")
    assert all(lower - upper >= 12 for upper, lower in itertools.pairwise(places))


def test_a_text_is_escaped() -> None:
    svg = panel(((1, 10.0),), marks=(Mark(1, "</svg><script>", "gate"),)).svg
    assert "&lt;/svg&gt;&lt;script&gt;" in svg


@pytest.mark.parametrize("places", list(itertools.combinations_with_replacement((1, 2, 8, 32, 64), 3)))
def test_labels_of_marks_neither_overlap_nor_leave_the_paper(places: tuple[int, int, int]) -> None:
    labels = "gate", "knee (slo, kneedle)", "knee (kneedle)"
    marks = tuple(Mark(at, f"{label} at {at}", "knee") for at, label in zip(places, labels, strict=True))
    svg = drawn(panel(((1, 10.0), (64, 20.0)), marks=tuple(dict.fromkeys(marks))))
    texts = [text for text in svg.iter(f"{SVG}text") if str(text.get("class")).startswith("mark-label")]
    assert len({text.get("y") for text in texts}) == len(texts)
    for text in texts:
        x, width = float(text.get("x", "")), 6.1 * len(text.text or "")
        start = x if text.get("text-anchor") == "start" else x - width
        assert 0 <= start <= start + width <= 340
