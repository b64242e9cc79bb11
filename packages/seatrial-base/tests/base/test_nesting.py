"""How deep JSON may be nested: alike on every Python, though each parses to another depth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.text import MOST_DEPTH, json_document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda held: st.lists(held, max_size=3) | st.dictionaries(st.text("ab", max_size=2), held, max_size=3),
)


@given(VALUES)
def test_what_is_written_is_read(value: object) -> None:
    assert json_document(json.dumps(value)) == value


@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"a":', "}"), ('[1,{"a":', ',"b":2}]')])
def test_a_hundred_levels_are_read_and_no_more(before: str, behind: str) -> None:
    count = MOST_DEPTH // (before.count("[") + before.count("{"))
    assert json_document(before * count + "1" + behind * count)
    for deeper in (count + 1, 5_000, 100_000):
        with pytest.raises(ValueError, match=r"^nested more than 100 deep$"):
            json_document(before * deeper + "1" + behind * deeper)


def test_wide_is_not_deep() -> None:
    assert json_document(f"[{','.join(['[]'] * 10_000)}]") == [[]] * 10_000
