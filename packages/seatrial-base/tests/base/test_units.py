from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.units import as_exported, exported, fine_percent, tenths


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.56, "1234.6"),
        (12.34, "12.3"),
        (0.1, "0.1"),
        (0.0999, "0.1"),
        (0.04, "0.04"),
        (0.01, "0.01"),
        (0.00123, "0.0012"),
        (0.0, "0.0"),
    ],
)
def test_a_measured_number_keeps_a_digit_that_is_not_zero(value: float, text: str) -> None:
    assert tenths(value) == text


def test_thousands_are_grouped_when_asked() -> None:
    assert tenths(12345.67, grouped=True) == "12,345.7"


@pytest.mark.parametrize(
    ("share", "text"), [(0.125, "12.50 %"), (0.0001, "0.01 %"), (0.000025, "0.0025 %"), (0.0, "0.00 %")]
)
def test_a_small_share_keeps_a_digit_that_is_not_zero(share: float, text: str) -> None:
    assert fine_percent(share) == text


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_only_zero_reads_as_zero(value: float) -> None:
    assert float(tenths(value)) > 0
    assert float(fine_percent(value).removesuffix(" %")) > 0


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_what_is_exported_and_read_again_is_what_was_decided(value: float) -> None:
    assert float(exported(as_exported(value))) == as_exported(value)
