from __future__ import annotations

import pytest

from seatrial.report.values import count_cell, missing_cell, money_cell, number_cell, percent, seconds
from seatrial_base.table import Cell, html_cell
from seatrial_base.units import digits


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (12_340.4, "12,340"),
        (123.4, "123"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.01234, "0.012"),
        (0.00004, "4e-05"),
        (0.0, "0"),
    ],
)
def test_a_number_has_the_digits_that_it_deserves(value: float, written: str) -> None:
    assert digits(value) == written


@pytest.mark.parametrize(("value", "written"), [(0.0, "0 %"), (0.0001, "<0.1 %"), (0.0125, "1.2 %"), (1.0, "100.0 %")])
def test_only_nothing_reads_as_zero_percent(value: float, written: str) -> None:
    assert percent(value) == written


@pytest.mark.parametrize(("value_s", "written"), [(48.23, "48.2 s"), (59.9, "1 min 0 s"), (252.4, "4 min 12 s")])
def test_a_duration_is_read_in_minutes_from_one_on(value_s: float, written: str) -> None:
    assert seconds(value_s) == written


def test_a_missing_number_is_a_dash_with_its_reason() -> None:
    assert html_cell(number_cell(None, "nothing streamed")) == '<abbr title="nothing streamed">–</abbr>'
    assert money_cell(None, "no price") == missing_cell("no price")


def test_zero_is_not_missing() -> None:
    assert html_cell(number_cell(0.0, "nothing streamed")) == '<data value="0.0">0</data>'


def test_a_cell_holds_the_exact_number_beside_the_rounded() -> None:
    assert html_cell(number_cell(1234.56, "", unit="ms")) == '<data value="1234.56">1,235 ms</data>'
    assert html_cell(count_cell(1234)) == '<data value="1234">1,234</data>'


@pytest.mark.parametrize("tone", ["plain", "good", "code"])
def test_every_text_is_escaped(tone: str) -> None:
    cell = Cell("<b>", tone="good" if tone == "good" else "code" if tone == "code" else "plain")
    assert "&lt;b&gt;" in html_cell(cell)


def test_every_reason_is_escaped() -> None:
    assert html_cell(missing_cell('" onclick="x')) == '<abbr title="&quot; onclick=&quot;x">–</abbr>'
