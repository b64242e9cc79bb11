from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.text import printable, unprintable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ± 5 %", "plain text, ± 5 %"),
        ("\x1b]0;title\x07", "�]0;title�"),
        ("\x1b[2J", "�[2J"),
        ("\x9b31m", "�31m"),
        ("\u202egnp.exe", "�gnp.exe"),
        ("\u2066isolated\u2069", "�isolated�"),
        ("no\u200bwidth", "no�width"),
        ("half \udce9", "half �"),
        ("line\u2028separator", "line�separator"),
        ("over\rwritten", "over�written"),
        ("no\u00a0break", "no break"),
        ("two\nlines", "two\nlines"),
        ("a\ttab", "a�tab"),
    ],
)
def test_what_is_not_shown_as_itself_is_replaced(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_terminal_keeps_tabs() -> None:
    assert printable("a\tb\x1b", layout="\n\t") == "a\tb�"


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_of_any_text_no_control_or_direction_character_is_left(text: str) -> None:
    shown = printable(text)
    assert not {character for character in shown if unicodedata.category(character)[0] == "C" and character != "\n"}
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("plain", ""),
        ("a\x1bb", "U+001B (a control character)"),
        ("a\u202eb", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("\ud800", "U+D800 (half of a surrogate pair)"),
    ],
)
def test_the_character_is_named(text: str, named: str) -> None:
    assert unprintable(text) == named
